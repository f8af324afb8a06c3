//! Confinement: by the text of a path before anything is sent, then by directory handle.
//!
//! Opening below a directory handle without ever following a link.
//!
//! The kernel's way and the portable way stand side by side and are tested against each other.

#[cfg(target_os = "linux")]
mod beneath;
mod lexical;
mod remove;
mod stepwise;
#[cfg(all(test, target_os = "linux"))]
mod tests;

pub use lexical::{ConfineError, Roots, confine};
pub(crate) use remove::remove_below;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

pub(crate) const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens a directory the user names. Links in this path are followed: it is the user's own.
pub(crate) fn open_root(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

/// Opens a directory below `root`. The empty path is `root` itself.
pub(crate) fn open_directory(root: impl AsFd, path: &Path) -> io::Result<OwnedFd> {
    #[cfg(target_os = "linux")]
    if let Some(opened) = beneath::open_directory(root.as_fd(), path) {
        return opened;
    }
    stepwise::open_directory(root.as_fd(), path)
}

/// Opens a directory below `root`, and makes what is missing of it.
pub(crate) fn made_directory(root: &OwnedFd, path: &Path) -> io::Result<OwnedFd> {
    match open_directory(root, path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        other => return other,
    }
    let (parent, name) = split(path);
    let parent = made_directory(root, parent)?;
    match rustix::fs::mkdirat(&parent, name, Mode::from_raw_mode(0o755)) {
        Ok(()) | Err(Errno::EXIST) => open_directory(&parent, name),
        Err(errno) => Err(errno.into()),
    }
}

/// Opens a regular file of a directory for reading, and nothing else: a pipe put there does not block.
pub(crate) fn open_file(directory: impl AsFd, name: &Path) -> io::Result<File> {
    regular(directory, name, OFlags::NOFOLLOW)
}

/// Opens a regular file of a directory, or one that a link there leads to.
pub(crate) fn open_followed_file(directory: impl AsFd, name: &Path) -> io::Result<File> {
    regular(directory, name, OFlags::empty())
}

fn regular(directory: impl AsFd, name: &Path, follow: OFlags) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC | follow;
    let file = File::from(rustix::fs::openat(directory, name, flags, Mode::empty())?);
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"))
    }
}

/// Whether an open failed because the path is gone or is now something else.
pub(crate) fn became_other(error: &io::Error) -> bool {
    match Errno::from_io_error(error) {
        Some(errno) => {
            matches!(errno, Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::INVAL | Errno::NXIO)
        }
        None => error.kind() == io::ErrorKind::InvalidInput,
    }
}

/// Splits a path into the directory that holds it and its name there.
pub(crate) fn split(path: &Path) -> (&Path, &Path) {
    let parent = path.parent().unwrap_or(Path::new(""));
    (parent, path.file_name().map_or(Path::new(""), Path::new))
}

/// A name nobody else has: the prefix and 128 random bits.
pub(crate) fn scratch_name(prefix: &str) -> io::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(format!("{prefix}{:032x}", u128::from_le_bytes(bytes)))
}
