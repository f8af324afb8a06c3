//! A jail that runs, as the process that runs it knows it.

use super::cgroup::{self, Cgroups};
use super::directory::{Locked, Root};
use super::end::{self, Init};
use super::error::{LimitHit, io_at};
use super::protocol::Request;
use super::record::{Process, Record};
use super::start::{Started, start};
use super::usage;
use super::watch::Pulse;
use super::{Bounds, Enforcement, Grant, Isolation, JailError, Layer};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// A jail of this process.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) name: String,
    pub(super) bounds: Bounds,
    pub(super) layers: BTreeMap<Layer, Grant>,
    pub(super) enforcement: BTreeMap<&'static str, Enforcement>,
    pub(super) locked: Locked,
    /// The jail's own /proc and /dev/shm.
    pub(super) proc: OwnedFd,
    pub(super) shared: OwnedFd,
    pub(super) cgroups: Cgroups,
    /// Bytes its files took when they were counted last, and what was placed since.
    pub(super) disk_used: AtomicU64,
    /// Bytes free on their file system then.
    pub(super) disk_free: AtomicU64,
    pub(super) pulse: Pulse,
    /// Commands under way. One that was asked for may not have a process yet.
    pub(super) commands: AtomicUsize,
    init: Init,
    control: Mutex<OwnedFd>,
    next: AtomicU64,
    limit: OnceLock<LimitHit>,
    /// From then on the jail may be another process's, and is left alone.
    stopped: Mutex<bool>,
}

/// First host id for the users of jails when the host is root, and how many there are. The range is
/// unused by every common scheme (systemd's container range ends right below it), so that such a file
/// or process never belongs to a person.
const FIRST_ID: u32 = 0x7000_0000;
const IDS: u32 = 0x0800_0000;

/// Whether this process may act as users of its choice. The first user of a user namespace (`unshare -r`,
/// rootless containers) is called root there and may not.
fn other_users() -> bool {
    let covers = |map: &str| {
        let text = std::fs::read_to_string(map).unwrap_or_default();
        text.lines().any(|line| {
            let mut numbers = line.split_ascii_whitespace().map(|field| field.parse().unwrap_or(0));
            let (first, count) = (numbers.next().unwrap_or(0_u64), numbers.nth(1).unwrap_or(0));
            first <= u64::from(FIRST_ID) && u64::from(FIRST_ID) + u64::from(IDS) <= first + count
        })
    };
    rustix::process::geteuid().is_root() && covers("/proc/self/uid_map") && covers("/proc/self/gid_map")
}

impl Running {
    /// Starts the jail in this directory, whatever a host that died left of it. One that is new and does not
    /// come up leaves nothing.
    pub(super) fn start(
        root: &Root,
        name: &str,
        locked: Locked,
        bounds: Bounds,
        isolation: &Isolation,
        pulse: Pulse,
    ) -> Result<Running, JailError> {
        let new = locked.record()?.is_none();
        let brought_up = usage::disk(&locked.files())
            .map_err(JailError::Limit)
            .and_then(|used| Ok((used, bring_up(root, name, &locked, bounds, isolation)?)));
        let (used, started) = match brought_up {
            Ok(brought_up) => brought_up,
            Err(error) => {
                // Its process is gone by now; what it left goes too, and the first error is the one to tell.
                let _ = clear(name, &locked);
                if new {
                    let _ = root.delete(locked);
                }
                return Err(error);
            }
        };
        let free = locked.free();
        let Started { init, control, proc, shared, cgroups, layers, enforcement } = started;
        Ok(Running {
            name: name.into(),
            bounds,
            layers,
            enforcement,
            locked,
            proc,
            shared,
            cgroups,
            disk_used: AtomicU64::new(used),
            disk_free: AtomicU64::new(free),
            pulse,
            commands: AtomicUsize::new(0),
            init,
            control: Mutex::new(control),
            next: AtomicU64::new(1),
            limit: OnceLock::new(),
            stopped: Mutex::new(false),
        })
    }

    /// Whether anything can run in it. One that a limit ended may take a moment to be gone.
    pub(super) fn alive(&self) -> bool {
        self.limit().is_none() && self.init.alive()
    }

    /// The limit that ended it.
    pub(super) fn limit(&self) -> Option<LimitHit> {
        self.limit.get().copied()
    }

    /// Ends it because of a limit. The first limit is the one that is told.
    pub(super) fn hit(&self, limit: LimitHit) {
        if self.limit.set(limit).is_ok() {
            tracing::info!(jail = self.name, %limit, "ending the jail");
        }
        if let Err(error) = self.init.kill() {
            tracing::warn!(jail = self.name, %error, "the jail could not be ended");
        }
    }

    /// Why nothing runs in it any more.
    pub(super) fn end_reason(&self) -> JailError {
        match self.limit() {
            Some(limit) => limit.into(),
            None => JailError::Ended { name: self.name.clone() },
        }
    }

    /// Ends every process, cleans up what is not a file, and lets others have the jail.
    pub(super) fn stop(&self) -> Result<(), JailError> {
        let mut stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        if *stopped {
            return Ok(());
        }
        if !self.init.end().map_err(io_at("end", &self.locked.path))? {
            return Err(too_slow(&self.name));
        }
        // By what this value knows, too: the record may be gone with its directory.
        let _ = cgroup::remove(&self.cgroups.paths());
        clear(&self.name, &self.locked)?;
        *stopped = true;
        self.locked.unlock();
        Ok(())
    }

    /// A number for a command.
    pub(super) fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Asks something of the first process.
    pub(super) fn ask(&self, request: Request, handles: &[BorrowedFd<'_>]) -> Result<(), JailError> {
        use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
        let bytes = request.encode();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(super::protocol::RUN_HANDLES))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !handles.is_empty() {
            ancillary.push(SendAncillaryMessage::ScmRights(handles));
        }
        let control = self.control.lock().unwrap_or_else(PoisonError::into_inner);
        // May wait until the first process has read what came before, which it does at once: it waits for
        // nothing else, and if it ended the socket is closed.
        match sendmsg(control.as_fd(), &[IoSlice::new(&bytes)], &mut ancillary, SendFlags::NOSIGNAL) {
            Ok(_) => Ok(()),
            Err(Errno::PIPE | Errno::CONNRESET) => Err(self.end_reason()),
            Err(errno) => Err(io_at("ask", &self.locked.path)(errno.into())),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Err(error) = self.stop() {
            tracing::warn!(jail = self.name, %error, "the jail could not be stopped");
        }
    }
}

/// Everything that is written down before the first process is started, and then that.
fn bring_up(
    root: &Root,
    name: &str,
    locked: &Locked,
    bounds: Bounds,
    isolation: &Isolation,
) -> Result<Started, JailError> {
    let mut record = clear(name, locked)?;
    record.bounds = bounds;
    record.owner = Process::own();
    if record.host_id.is_none() && other_users() {
        let mut random = [0; 4];
        getrandom::fill(&mut random)
            .map_err(|error| io_at("draw a user for", &locked.path)(std::io::Error::other(error)))?;
        record.host_id = Some(FIRST_ID + u32::from_ne_bytes(random) % IDS);
    }
    locked.prepare(record.host_id)?;
    let cgroups = match isolation.waived(Layer::Cgroup) {
        true => Cgroups::default(),
        false => cgroup::planned(&bounds, &format!("leasehold-{}-{name}", root.tag())),
    };
    record.cgroups = cgroups.paths();
    locked.write_record(&record)?;
    start(locked, name, cgroups, bounds, isolation, &mut record)
}

/// Ends and removes what is left of a jail that this process does not run: only the holder of its lock
/// does this. Returns its record, without what is gone now.
pub(super) fn clear(name: &str, locked: &Locked) -> Result<Record, JailError> {
    let Some(mut record) = locked.record()? else { return Ok(Record::default()) };
    if let Some(init) = &record.init
        && !end::end_left_over(init).map_err(io_at("end", &locked.path))?
    {
        return Err(too_slow(name));
    }
    if record.owner.is_some() || record.init.is_some() || !record.cgroups.is_empty() {
        record.owner = None;
        record.init = None;
        record.cgroups = cgroup::remove(&record.cgroups);
        locked.write_record(&record)?;
    }
    Ok(record)
}

fn too_slow(name: &str) -> JailError {
    JailError::TooSlow { name: name.into(), doing: "end", seconds: end::PATIENCE.as_secs() }
}
