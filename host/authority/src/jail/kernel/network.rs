//! The loopback device of a new network namespace.

use super::last_error;
use rustix::io::Errno;
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// Switches `lo` on; programs expect 127.0.0.1 to work among themselves.
pub(in crate::jail) fn loopback_up(socket: BorrowedFd<'_>) -> Result<(), Errno> {
    // SAFETY: all bytes zero is a valid value of this plain record.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = from.cast_signed() as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: the kernel reads the record, which outlives the call.
    let answer = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw const request) };
    if answer == 0 { Ok(()) } else { Err(last_error()) }
}
