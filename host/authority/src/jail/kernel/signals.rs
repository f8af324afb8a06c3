//! Signals of the jail's first process and of what it starts.

use super::last_error;
use rustix::io::Errno;
use std::os::fd::{FromRawFd as _, OwnedFd};

/// The last signal number of Linux; signals above 31 are the real-time ones.
const LAST: i32 = 64;

/// Forgets what the host set: handlers would run the host's code, and an ignored signal stays ignored
/// through an exec (Rust programs ignore SIGPIPE, which most commands rely on).
pub(in crate::jail) fn default_signals() {
    for signal in 1..=LAST {
        // SAFETY: sets the default action; the numbers that cannot be set are refused, which is fine.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// A handle that is readable when a child ended. Every signal stays blocked otherwise.
pub(in crate::jail) fn child_signals() -> Result<OwnedFd, Errno> {
    // SAFETY: plain sets of bits on this stack, filled by the calls that take them.
    let handle = unsafe {
        let mut every: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut every);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const every, std::ptr::null_mut());
        let mut child: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut child);
        libc::sigaddset(&raw mut child, libc::SIGCHLD);
        libc::signalfd(-1, &raw const child, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
    };
    if handle < 0 {
        return Err(last_error());
    }
    // SAFETY: the kernel just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(handle) })
}

/// Lets every signal through again, for a command.
pub(in crate::jail) fn unblock_signals() {
    // SAFETY: as above.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}
