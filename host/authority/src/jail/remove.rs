//! Deleting what a jail wrote, whatever it wrote.
//!
//! A program can nest directories deeper than a process has handles, and make them without any
//! permission. So the walk keeps few handles, moves what is too deep to the top, and gives itself
//! permission on the way.

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;

/// Handles one walk holds. Below this a directory is moved up and deleted on its own.
const DEEPEST: usize = 64;

/// Deletes a directory and all below it, never following a link.
pub(super) fn tree(path: &Path) -> io::Result<()> {
    let top = match open(CWD, &super::plan::c_path(path).map_err(io::Error::other)?) {
        Ok(top) => top,
        Err(Errno::NOENT) => return Ok(()),
        Err(errno) => return Err(errno.into()),
    };
    let mut moved = 0;
    // What is moved to the top is met there in the next round, and each round deletes something.
    loop {
        let before = moved;
        empty(&top, top.as_fd(), 1, &mut moved)?;
        match std::fs::remove_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty && moved > before => {}
            other => return other,
        }
    }
}

fn empty(directory: &OwnedFd, top: BorrowedFd<'_>, depth: usize, moved: &mut u64) -> io::Result<()> {
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let is_directory = match entry.file_type() {
            FileType::Directory => true,
            FileType::Unknown => {
                let stat = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
                FileType::from_raw_mode(stat.st_mode) == FileType::Directory
            }
            _ => false,
        };
        if !is_directory {
            rustix::fs::unlinkat(directory, name, AtFlags::empty())?;
        } else if depth == DEEPEST {
            *moved += 1;
            // A directory changes its parent entry when it moves, so it must be writable itself.
            rustix::fs::chmodat(directory, name, Mode::RWXU, AtFlags::empty())?;
            rustix::fs::renameat(directory, name, top, format!(".leasehold-deep.{moved}"))?;
        } else {
            let below = open(directory.as_fd(), name)?;
            empty(&below, top, depth + 1, moved)?;
            drop(below);
            match rustix::fs::unlinkat(directory, name, AtFlags::REMOVEDIR) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
    Ok(())
}

fn open(at: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = match rustix::fs::openat(at, name, flags, Mode::empty()) {
        // An ordinary user's own directory, made unreadable.
        Err(Errno::ACCESS) => {
            rustix::fs::chmodat(at, name, Mode::RWXU, AtFlags::empty())?;
            rustix::fs::openat(at, name, flags, Mode::empty())?
        }
        other => other?,
    };
    // Readable is not enough: entries are removed through it.
    let mode = Mode::from_raw_mode(rustix::fs::fstat(&opened)?.st_mode);
    if !mode.contains(Mode::RWXU) {
        // Refused to somebody who does not own it and may delete all the same: a root host.
        let _ = rustix::fs::fchmod(&opened, Mode::RWXU);
    }
    Ok(opened)
}
