//! The kernel's way: one call that refuses every link and every step out.

use super::DIRECTORY;
use rustix::fs::{Mode, ResolveFlags, openat2};
use rustix::io::Errno;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;

/// Times a lookup is tried again when a rename elsewhere made the kernel unsure.
const ATTEMPTS: usize = 16;

/// `None` where the kernel, or the sandbox the host itself runs in, does not offer the call.
pub(super) fn open_directory(root: BorrowedFd<'_>, path: &Path) -> Option<io::Result<OwnedFd>> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let mut result = Err(Errno::AGAIN);
    for _ in 0..ATTEMPTS {
        result = openat2(root, path, DIRECTORY, Mode::empty(), resolve);
        if !matches!(result, Err(Errno::AGAIN | Errno::INTR)) {
            break;
        }
    }
    match result {
        // Filters of older container engines answer an unknown call with EPERM.
        Err(Errno::NOSYS | Errno::PERM | Errno::AGAIN) => None,
        other => Some(other.map_err(io::Error::from)),
    }
}
