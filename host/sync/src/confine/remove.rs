//! Removing a tree by handle, following no link.

use super::{DIRECTORY, open_directory};
use rustix::fs::{AtFlags, Dir, FileType, Mode, openat, unlinkat};
use rustix::io::Errno;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

/// Removes what a directory holds. Keeps one handle open for each level.
pub(crate) fn remove_below(directory: impl AsFd) -> io::Result<()> {
    // A handle of its own: reading moves the position of the handle it reads.
    let own = open_directory(directory, Path::new(""))?;
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
            Err(Errno::NOTDIR | Errno::LOOP) => unlinkat(&own, name, AtFlags::empty())?,
            Err(other) => return Err(other.into()),
        }
    }
    Ok(())
}
