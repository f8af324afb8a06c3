//! Attributes of a mount and everything below it, in one call.

use super::last_error;
use rustix::io::Errno;
use std::ffi::CStr;
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// What a mount forbids.
#[derive(Clone, Copy)]
pub(in crate::jail) struct Forbids {
    pub(in crate::jail) writing: bool,
    pub(in crate::jail) devices: bool,
}

/// Sets attributes; a path of no length means the handle itself. Programs with a set-user bit never
/// count, and nothing mounted later shows through.
pub(in crate::jail) fn set_mount_attributes(
    at: BorrowedFd<'_>,
    path: &CStr,
    forbids: Forbids,
    below: bool,
) -> Result<(), Errno> {
    let mut set = libc::MOUNT_ATTR_NOSUID;
    set |= if forbids.writing { libc::MOUNT_ATTR_RDONLY } else { 0 };
    set |= if forbids.devices { libc::MOUNT_ATTR_NODEV } else { 0 };
    // SAFETY: all bytes zero is a valid value of this plain record.
    let mut attributes: libc::mount_attr = unsafe { std::mem::zeroed() };
    attributes.attr_set = set;
    attributes.propagation = libc::MS_PRIVATE;
    let flags = libc::AT_EMPTY_PATH | if below { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the path ends with zero, and the kernel reads the record of the size given.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            at.as_raw_fd(),
            path.as_ptr(),
            flags,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    if answer == 0 { Ok(()) } else { Err(last_error()) }
}
