//! The directory of all jails, and the directory of each.
//!
//! ```text
//! <root>/<name>/            0711, locked (flock) by the process that runs the jail
//! <root>/<name>/record      what another process must know to clean up
//! <root>/<name>/root        empty; the jail's root is put together over it, unseen by the host
//! <root>/<name>/files/…     workspace, home, tmp: all a jail can write, and what survives a stop
//! <root>/.gone.<random>     a jail that is being deleted
//! ```

use super::error::io_at;
use super::machine::Machine;
use super::plan::{SYSTEM, WRITABLE};
use super::record::{self, Record};
use super::{Bounds, JailError, remove, usage};
use rustix::fs::{FlockOperation, Gid, Mode, OFlags, Uid, flock};
use rustix::io::Errno;
use std::fs::DirBuilder;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The directory that holds every jail of one user.
#[derive(Clone, Debug)]
pub(super) struct Root(PathBuf);

/// A jail's directory, locked: no other process starts, stops or deletes this jail.
#[derive(Debug)]
pub(super) struct Locked {
    pub(super) path: PathBuf,
    handle: OwnedFd,
}

/// How long another process may hold a lock in passing (a look for leftovers takes milliseconds); after
/// that the jail counts as busy.
const PASSING: Duration = Duration::from_secs(5);
/// Pause between two tries for such a lock.
const RETRY: Duration = Duration::from_millis(10);

/// Longest name. Names become directories, control groups and parts of messages.
const LONGEST_NAME: usize = 200;

/// Prefix of directories that are being deleted; no name of a jail starts with a dot.
const GONE: &str = ".gone.";

/// Refuses a name that could be anything but a plain file name.
pub(super) fn check_name(name: &str) -> Result<(), JailError> {
    let fits = (1..=LONGEST_NAME).contains(&name.len());
    if fits && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_') {
        Ok(())
    } else {
        Err(JailError::Name { name: name.chars().take(LONGEST_NAME).collect() })
    }
}

impl Root {
    /// Makes the directory, or checks that nobody else can enter it.
    pub(super) fn open(path: &Path) -> Result<Root, JailError> {
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(io_at("make", path))?;
        let metadata = std::fs::symlink_metadata(path).map_err(io_at("look at", path))?;
        let refuse = |reason| Err(JailError::UnsafeRoot { path: path.into(), reason });
        if !metadata.is_dir() {
            return refuse("it is no directory");
        }
        if metadata.uid() != rustix::process::geteuid().as_raw() {
            return refuse("it belongs to somebody else");
        }
        if metadata.mode() & 0o077 != 0 {
            return refuse("others can enter it");
        }
        // The jail's first process finds it from another working directory.
        let path = path.canonicalize().map_err(io_at("resolve", path))?;
        if SYSTEM.iter().any(|system| path.starts_with(system)) {
            return Err(JailError::UnsafeRoot { path, reason: "every jail sees this part of the system" });
        }
        Ok(Root(path))
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// A short text that differs between roots, for names that are shared with others on the machine: which
    /// file system, and which directory of it.
    pub(super) fn tag(&self) -> String {
        let metadata = std::fs::metadata(&self.0);
        metadata.map_or_else(|_| "unknown".into(), |found| format!("{:x}-{:x}", found.dev(), found.ino()))
    }

    /// The bounds of a jail that asks for these, new or started again.
    pub(super) fn fitted(&self, name: &str, asked: Bounds, ceilings: Bounds) -> Result<Bounds, JailError> {
        let machine = Machine::look(&self.0, usage::disk(&files_of(&self.path(name)))?)?;
        asked.fitted(Bounds::usual(&machine), ceilings.or(Bounds::most(&machine)))
    }

    /// Names of all jails, and directories that are being deleted.
    pub(super) fn entries(&self) -> Result<(Vec<String>, Vec<PathBuf>), JailError> {
        let (mut names, mut gone) = (Vec::new(), Vec::new());
        for entry in std::fs::read_dir(&self.0).map_err(io_at("list", &self.0))? {
            let entry = entry.map_err(io_at("list", &self.0))?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            if check_name(&name).is_ok() {
                names.push(name);
            } else if name.starts_with(GONE) {
                gone.push(entry.path());
            }
        }
        names.sort_unstable();
        Ok((names, gone))
    }

    /// Makes the jail's directory if need be, and locks it.
    pub(super) fn lock_or_make(&self, name: &str) -> Result<Locked, JailError> {
        loop {
            let path = self.path(name);
            match DirBuilder::new().mode(0o711).create(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                    return Err(io_at("make", path)(error));
                }
                _ => {}
            }
            // None: somebody deleted it in between, so make it again.
            if let Some(locked) = self.lock(name)? {
                return Ok(locked);
            }
        }
    }

    /// Locks an existing jail, waiting for those who hold it in passing. None when there is none.
    pub(super) fn lock(&self, name: &str) -> Result<Option<Locked>, JailError> {
        let patience = Instant::now() + PASSING;
        loop {
            match lock_directory(&self.path(name))? {
                Attempt::Locked(locked) => return Ok(Some(locked)),
                Attempt::Absent => return Ok(None),
                Attempt::Taken => {}
            }
            let owner = record::read(&self.path(name))?.and_then(|record| record.owner);
            match owner.filter(record::Process::alive) {
                Some(owner) => return Err(JailError::Busy { name: name.into(), owner: owner.pid }),
                None if Instant::now() > patience => {
                    return Err(JailError::Busy { name: name.into(), owner: 0 });
                }
                None => std::thread::sleep(RETRY),
            }
        }
    }

    /// Locks it now or not at all.
    pub(super) fn try_lock(&self, name: &str) -> Result<Option<Locked>, JailError> {
        match lock_directory(&self.path(name))? {
            Attempt::Locked(locked) => Ok(Some(locked)),
            Attempt::Absent | Attempt::Taken => Ok(None),
        }
    }

    /// Deletes a jail's directory. It loses its name first, so that a new jail of that name can be made
    /// and a half-deleted one is never found.
    pub(super) fn delete(&self, locked: Locked) -> Result<(), JailError> {
        let mut random = [0; 8];
        getrandom::fill(&mut random)
            .map_err(|error| io_at("draw a name in", &self.0)(std::io::Error::other(error)))?;
        let gone = self.0.join(format!("{GONE}{:016x}", u64::from_ne_bytes(random)));
        std::fs::rename(&locked.path, &gone).map_err(io_at("rename", &locked.path))?;
        remove::tree(&gone).map_err(io_at("delete", gone))
    }

    /// Deletes what a process that died left half-deleted.
    pub(super) fn delete_gone(path: &Path) -> Result<(), JailError> {
        match lock_directory(path)? {
            Attempt::Locked(_locked) => remove::tree(path).map_err(io_at("delete", path)),
            Attempt::Absent | Attempt::Taken => Ok(()),
        }
    }
}

enum Attempt {
    Locked(Locked),
    Taken,
    Absent,
}

fn lock_directory(path: &Path) -> Result<Attempt, JailError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(handle) => handle,
        Err(Errno::NOENT) => return Ok(Attempt::Absent),
        Err(errno) => return Err(io_at("open", path)(errno.into())),
    };
    match flock(&handle, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Ok(Attempt::Taken),
        Err(errno) => return Err(io_at("lock", path)(errno.into())),
    }
    // Whoever held it before may have deleted it; then this handle is of something without a name.
    let own = rustix::fs::fstat(&handle).map_err(|errno| io_at("look at", path)(errno.into()))?;
    match rustix::fs::lstat(path) {
        Ok(now) if (now.st_dev, now.st_ino) == (own.st_dev, own.st_ino) => {
            Ok(Attempt::Locked(Locked { path: path.into(), handle }))
        }
        _ => Ok(Attempt::Absent),
    }
}

impl Locked {
    /// The directories of the jail, owned by the user its processes are on the host.
    pub(super) fn prepare(&self, host_id: Option<u32>) -> Result<(), JailError> {
        let make = |path: &Path, mode: u32| match DirBuilder::new().mode(mode).create(path) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                Err(io_at("make", path)(error))
            }
            _ => Ok(()),
        };
        make(&self.path.join("root"), 0o755)?;
        let files = self.files();
        make(&files, 0o755)?;
        for name in WRITABLE {
            let path = files.join(name);
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let fail = |errno: Errno| io_at("prepare", &path)(errno.into());
            make(&path, 0o700)?;
            let handle = rustix::fs::open(&path, flags, Mode::empty()).map_err(fail)?;
            if let Some(id) = host_id {
                let (user, group) = (Uid::from_raw(id), Gid::from_raw(id));
                rustix::fs::fchown(&handle, Some(user), Some(group)).map_err(fail)?;
            }
            let mode = if name == "tmp" { 0o1777 } else { 0o755 };
            rustix::fs::fchmod(&handle, Mode::from_raw_mode(mode)).map_err(fail)?;
        }
        Ok(())
    }

    /// Where everything a jail can write lies.
    pub(super) fn files(&self) -> PathBuf {
        files_of(&self.path)
    }

    /// Bytes free on its file system.
    pub(super) fn free(&self) -> u64 {
        rustix::fs::fstatvfs(&self.handle).map_or(0, |space| space.f_bavail * space.f_frsize)
    }

    pub(super) fn record(&self) -> Result<Option<Record>, JailError> {
        record::read(&self.path)
    }

    pub(super) fn write_record(&self, record: &Record) -> Result<(), JailError> {
        record::write(&self.path, record)
    }

    /// Lets others have it, although a command that is just ending may keep this value a little longer.
    pub(super) fn unlock(&self) {
        let _ = flock(&self.handle, FlockOperation::Unlock);
    }
}

/// The files of the jail in this directory.
pub(super) fn files_of(jail: &Path) -> PathBuf {
    jail.join("files")
}
