//! The portable way: one component at a time, each opened from the handle before it.

use super::DIRECTORY;
use rustix::fs::{Mode, openat};
use rustix::io::Errno;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Component, Path};

pub(super) fn open_directory(root: BorrowedFd<'_>, path: &Path) -> io::Result<OwnedFd> {
    let mut directory = openat(root, ".", DIRECTORY, Mode::empty())?;
    for component in path.components() {
        match component {
            Component::Normal(name) => directory = openat(&directory, name, DIRECTORY, Mode::empty())?,
            Component::CurDir => {}
            // The kernel's way answers a step out of the tree the same.
            _ => return Err(Errno::XDEV.into()),
        }
    }
    Ok(directory)
}
