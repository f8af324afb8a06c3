//! Paths of a jail, resolved by the host without ever leaving the jail's files.
//!
//! A program inside can put any link anywhere. The kernel resolves every path here as if the jail's files
//! were the root of the file system, links included, and never through the links of /proc.

use super::JailError;
use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, ResolveFlags, Uid, openat2};
use rustix::io::Errno;
use std::os::fd::{AsFd as _, OwnedFd};

/// Tries while somebody renames directories on the way; then the path counts as busy.
const TRIES: u32 = 64;

/// A directory of the jail and a name in it.
pub(super) struct Place {
    pub(super) directory: OwnedFd,
    pub(super) name: String,
}

/// Opens what is at a path.
pub(super) fn open(files: &OwnedFd, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    for _ in 0..TRIES {
        match openat2(files, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve) {
            Err(Errno::AGAIN) => {}
            other => return other,
        }
    }
    Err(Errno::BUSY)
}

/// Finds the directory that a path is in, making what is missing for the jail's user.
pub(super) fn place(files: &OwnedFd, path: &str, owner: Option<u32>) -> Result<Place, JailError> {
    let refuse = |reason: &str| JailError::Path { path: path.into(), reason: reason.into() };
    let (parent, name) = match path.rsplit_once('/') {
        Some((parent, name)) if path.starts_with('/') => (parent, name),
        _ => return Err(refuse("it must be absolute")),
    };
    if name.is_empty() || name == "." || name == ".." {
        return Err(refuse("it must end with the name of a file"));
    }
    let root = rustix::fs::fstat(files).map_err(|errno| refuse(&errno.to_string()))?;
    let writable = |handle: OwnedFd| match rustix::fs::fstat(&handle) {
        Ok(stat) if (stat.st_dev, stat.st_ino) != (root.st_dev, root.st_ino) => Ok(handle),
        Ok(_) => Err(refuse("only /workspace, /home and /tmp can be written")),
        Err(errno) => Err(refuse(&errno.to_string())),
    };
    let flags = OFlags::PATH | OFlags::DIRECTORY;
    let fail = |errno: Errno| JailError::Transfer { path: path.into(), source: errno.into() };
    let directory = match open(files, &format!("{parent}/"), flags) {
        Err(Errno::NOENT) => {
            let mut so_far = String::from("/");
            let mut above = open(files, &so_far, flags).map_err(fail)?;
            for part in parent.split('/').filter(|part| !part.is_empty()) {
                so_far.push_str(part);
                so_far.push('/');
                above = match open(files, &so_far, flags) {
                    Err(Errno::NOENT) => {
                        above = writable(above)?;
                        make(&above, part, owner).map_err(fail)?;
                        open(files, &so_far, flags).map_err(fail)?
                    }
                    other => other.map_err(fail)?,
                };
            }
            above
        }
        other => other.map_err(fail)?,
    };
    Ok(Place { directory: writable(directory)?, name: name.into() })
}

fn make(above: &OwnedFd, name: &str, owner: Option<u32>) -> Result<(), Errno> {
    match rustix::fs::mkdirat(above, name, Mode::from_raw_mode(0o755)) {
        Ok(()) => {}
        // A link that leads nowhere, or somebody was faster: opening it decides.
        Err(Errno::EXIST) => return Ok(()),
        Err(errno) => return Err(errno),
    }
    if let Some(id) = owner {
        let (user, group) = (Uid::from_raw(id), Gid::from_raw(id));
        rustix::fs::chownat(above.as_fd(), name, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW)?;
    }
    Ok(())
}

/// Whether a handle is of a regular file.
pub(super) fn is_file(handle: &OwnedFd) -> Result<bool, Errno> {
    Ok(FileType::from_raw_mode(rustix::fs::fstat(handle)?.st_mode) == FileType::RegularFile)
}
