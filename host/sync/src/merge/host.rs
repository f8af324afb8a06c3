//! What the host holds at a path now.

use super::decide::Host;
use crate::confine::{became_other, open_directory, open_file, split};
use crate::limits::CHUNK;
use crate::manifest::{Entry, Kind, MODE_MASK};
use crate::tree::mtime;
use rustix::fs::{AtFlags, FileType, fstat, readlinkat, statat};
use rustix::io::Errno;
use std::ffi::OsString;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::path::Path;

/// Reads the state of a path. A file whose size is not that of any entry to compare with is not read.
pub(super) fn state(root: &OwnedFd, path: &Path, compare: &[&Entry]) -> io::Result<Option<Host>> {
    let (parent, name) = split(path);
    let parent = match open_directory(root, parent) {
        Ok(parent) => parent,
        Err(error) if became_other(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let status = match statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(status) => status,
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(errno.into()),
    };
    let kind = match FileType::from_raw_mode(status.st_mode) {
        FileType::Directory => Kind::Directory,
        FileType::Symlink => match readlinkat(&parent, name, Vec::new()) {
            Ok(target) => Kind::Link { target: OsString::from_vec(target.into_bytes()) },
            Err(_) => return Ok(Some(Host::Other)),
        },
        FileType::RegularFile => return file(&parent, name, compare).map(Some),
        _ => return Ok(Some(Host::Other)),
    };
    Ok(Some(Host::Entry(Entry { kind, mode: status.st_mode & MODE_MASK, mtime: mtime(&status) })))
}

fn file(parent: &OwnedFd, name: &Path, compare: &[&Entry]) -> io::Result<Host> {
    let mut file = match open_file(parent, name) {
        Ok(file) => file,
        Err(error) if became_other(&error) => return Ok(Host::Other),
        Err(error) => return Err(error),
    };
    let status = fstat(&file)?;
    let size = u64::try_from(status.st_size).unwrap_or_default();
    if !compare.iter().any(|entry| matches!(entry.kind, Kind::File { size: other, .. } if other == size)) {
        return Ok(Host::Other);
    }
    let mut digest = blake3::Hasher::new();
    let mut piece = vec![0; CHUNK];
    loop {
        let length = file.read(&mut piece)?;
        if length == 0 {
            break;
        }
        digest.update(piece.get(..length).unwrap_or_default());
    }
    let kind = Kind::File { size: digest.count(), blake3: digest.finalize() };
    Ok(Host::Entry(Entry { kind, mode: status.st_mode & MODE_MASK, mtime: mtime(&status) }))
}
