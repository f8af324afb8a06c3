//! Ending the first process of a jail, and with it every other one.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Signal, WaitId, WaitIdOptions, pidfd_send_signal, waitid};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Duration;

/// How long the end of a jail is waited for. The kernel takes every process of it away first, which takes
/// milliseconds unless one hangs in a driver; then the caller is told.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// The first process of a jail. It ends with this value.
#[derive(Debug)]
pub(super) struct Init(pub(super) OwnedFd);

impl Init {
    /// Ends it and waits until it and all it could start are gone. `Ok(false)`: still there.
    pub(super) fn end(&self) -> io::Result<bool> {
        self.kill()?;
        gone(&self.0, PATIENCE)
    }

    /// Ends it without waiting.
    pub(super) fn kill(&self) -> io::Result<()> {
        match pidfd_send_signal(&self.0, Signal::KILL) {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Whether it still runs.
    pub(super) fn alive(&self) -> bool {
        !gone(&self.0, Duration::ZERO).unwrap_or(true)
    }
}

impl Drop for Init {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            tracing::warn!(%error, "the first process of a jail could not be ended");
        }
    }
}

/// Whether the process is gone, waiting for it that long. A process that leads a namespace of processes is
/// not gone before all others in it are. One of our own is also taken away.
fn gone(init: &OwnedFd, patience: Duration) -> io::Result<bool> {
    let mut handles = [PollFd::new(init, PollFlags::IN)];
    let time = Timespec { tv_sec: patience.as_secs().cast_signed(), tv_nsec: patience.subsec_nanos().into() };
    let ready = loop {
        match poll(&mut handles, Some(&time)) {
            Err(Errno::INTR) => {}
            other => break other?,
        }
    };
    if ready == 0 {
        return Ok(false);
    }
    // Not found: it is a child of another process, or was taken away before.
    let any_kind = WaitIdOptions::from_bits_retain(libc::__WALL.cast_unsigned());
    let _ = waitid(WaitId::PidFd(init.as_fd()), WaitIdOptions::EXITED | WaitIdOptions::NOHANG | any_kind);
    Ok(true)
}

/// Ends the first process of a jail whose host died, if it is still there.
pub(super) fn end_left_over(process: &super::record::Process) -> io::Result<bool> {
    use rustix::process::{Pid, PidfdFlags, pidfd_open};
    let Some(pid) = Pid::from_raw(process.pid) else { return Ok(true) };
    let handle = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(handle) => handle,
        Err(Errno::SRCH) => return Ok(true),
        Err(errno) => return Err(errno.into()),
    };
    // Compared once the handle is there: from here on the number cannot come to mean another process.
    if process.alive() { Init(handle).end() } else { Ok(true) }
}
