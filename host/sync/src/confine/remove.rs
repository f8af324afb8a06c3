//! Removing a tree by handle, following no link.

use super::{DIRECTORY, open_directory};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, fchmod, openat, unlinkat};
use rustix::io::Errno;
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::path::Path;

/// Removes what a directory holds. Keeps one handle open for each level.
pub(crate) fn remove_below(directory: impl AsFd) -> io::Result<()> {
    // A handle of its own: reading moves the position of the handle it reads.
    let own = open_directory(directory, Path::new(""))?;
    // What a tree closed to its owner cannot be emptied; a user's own can be opened.
    let _ = fchmod(&own, Mode::RWXU);
    for entry in Dir::read_from(&own)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        if !matches!(entry.file_type(), FileType::Directory | FileType::Unknown) {
            unlinkat(&own, name, AtFlags::empty())?;
            continue;
        }
        match openat(&own, name, DIRECTORY, Mode::empty()) {
            Ok(inner) => {
                remove_below(&inner)?;
                unlinkat(&own, name, AtFlags::REMOVEDIR)?;
            }
            Err(Errno::ACCESS) if open_up(&own, name).is_ok() => {
                remove_below(openat(&own, name, DIRECTORY, Mode::empty())?)?;
                unlinkat(&own, name, AtFlags::REMOVEDIR)?;
            }
            Err(Errno::NOTDIR | Errno::LOOP) => unlinkat(&own, name, AtFlags::empty())?,
            Err(other) => return Err(other.into()),
        }
    }
    Ok(())
}

/// Lets the owner into a directory that is closed to everybody, through a handle that follows no link.
fn open_up(parent: &OwnedFd, name: &CStr) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = openat(parent, name, flags, Mode::empty())?;
    Ok(rustix::fs::chmod(format!("/proc/self/fd/{}", handle.as_raw_fd()), Mode::RWXU)?)
}
