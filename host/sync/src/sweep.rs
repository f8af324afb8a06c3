//! What a host that died has left in a directory.

use crate::confine::open_root;
use crate::incoming::{remove, sweep_prefixes};
use rustix::fs::{Dir, FlockOperation, Mode, OFlags, flock, openat};
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

/// Removes the staging directories and files in this directory that no process uses. Returns how many went.
///
/// # Errors
/// When the directory cannot be read. One that is gone has nothing left in it.
pub fn sweep(directory: &Path) -> io::Result<usize> {
    let handle = match open_root(directory) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(0);
        }
        other => other?,
    };
    let mut left = Vec::new();
    for entry in Dir::read_from(handle.as_fd())? {
        let name = OsString::from_vec(entry?.file_name().to_bytes().to_vec());
        if sweep_prefixes().iter().any(|prefix| name.as_bytes().starts_with(prefix.as_bytes())) {
            left.push(name);
        }
    }
    let mut removed = 0;
    for name in left {
        if let Some(_held) = unused(&handle, Path::new(&name)) {
            remove(&handle, Path::new(&name));
            removed += 1;
        }
    }
    Ok(removed)
}

/// The lock of what nobody uses any more. A link has none, and nobody keeps one.
fn unused(directory: &OwnedFd, name: &Path) -> Option<Option<OwnedFd>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    match openat(directory, name, flags, Mode::empty()) {
        Ok(file) => flock(&file, FlockOperation::NonBlockingLockExclusive).ok().map(|()| Some(file)),
        Err(rustix::io::Errno::LOOP) => Some(None),
        Err(_) => None,
    }
}
