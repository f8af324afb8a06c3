//! Where what arrives lies until it is whole and checked.

use super::ReceiveError;
use super::file::no_place;
use crate::confine::{DIRECTORY, made_directory, open_root, remove_below, scratch_name};
use rustix::fs::{
    AtFlags, FlockOperation, Mode, OFlags, RenameFlags, fchmod, flock, mkdirat, openat, renameat,
    renameat_with, unlinkat,
};
use rustix::io::Errno;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// How names of staging directories and files begin, so that walks pass over them and a later start finds what
/// a crash left.
const PREFIX: &str = ".leasehold-stage-";

/// How the names of old directories begin that made way in two steps.
const OLD: &str = ".leasehold-old-";

/// The names that a sweep removes: everything of ours that nobody holds.
pub(crate) fn sweep_prefixes() -> [&'static str; 3] {
    [PREFIX, OLD, crate::merge::PLACING]
}

pub(super) fn cannot(path: &Path, source: io::Error) -> ReceiveError {
    ReceiveError::Staging { path: path.into(), source }
}

/// A directory, removed with all it holds when dropped. It is locked for as long as it is used, so that a sweep
/// takes only what nobody uses.
#[derive(Debug)]
pub(crate) struct Staging {
    parent: OwnedFd,
    parent_path: PathBuf,
    name: String,
    root: OwnedFd,
}

impl Staging {
    /// A new directory in one below a root, reached without following a link and made where it is missing.
    pub(super) fn create(root: &Path, below: &Path) -> Result<Self, ReceiveError> {
        let beside = if below.as_os_str().is_empty() { root.to_owned() } else { root.join(below) };
        Self::try_create(root, below, &beside).map_err(|source| cannot(&beside, source))
    }

    fn try_create(root: &Path, below: &Path, beside: &Path) -> io::Result<Self> {
        let parent = made_directory(&open_root(root)?, below)?;
        let name = scratch_name(PREFIX)?;
        mkdirat(&parent, &name, Mode::RWXU)?;
        let root = openat(&parent, &name, DIRECTORY, Mode::empty());
        let root = root.inspect_err(|_| unlinkat(&parent, &name, AtFlags::REMOVEDIR).unwrap_or_default())?;
        let staging = Self { parent, parent_path: beside.into(), name, root };
        flock(&staging.root, FlockOperation::NonBlockingLockExclusive)?;
        Ok(staging)
    }

    pub(crate) fn root(&self) -> &OwnedFd {
        &self.root
    }

    pub(super) fn parent(&self) -> &OwnedFd {
        &self.parent
    }

    /// The path of a name beside it.
    pub(super) fn beside(&self, name: &Path) -> PathBuf {
        self.parent_path.join(name)
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.parent_path.join(&self.name)
    }

    /// Exchanges the directory with whatever has this name beside it, or gives it the name if nothing has. What
    /// was there before is removed with this value.
    pub(super) fn put(self, name: &Path) -> io::Result<()> {
        match renameat_with(&self.parent, &self.name, &self.parent, name, RenameFlags::EXCHANGE) {
            Ok(()) => Ok(()),
            Err(Errno::NOENT) => {
                match renameat_with(&self.parent, &self.name, &self.parent, name, RenameFlags::NOREPLACE) {
                    // Not every file system knows the flag. Only an empty directory would be replaced.
                    Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                        Ok(renameat(&self.parent, &self.name, &self.parent, name)?)
                    }
                    other => Ok(other?),
                }
            }
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => self.put_in_two_steps(name),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Where the kernel cannot exchange: the old out of the way, the new in its place, and back again if that
    /// fails. In between nothing has the name.
    fn put_in_two_steps(&self, name: &Path) -> io::Result<()> {
        let old = scratch_name(OLD)?;
        renameat(&self.parent, name, &self.parent, &old)?;
        if let Err(errno) = renameat(&self.parent, &self.name, &self.parent, name) {
            renameat(&self.parent, &old, &self.parent, name)?;
            return Err(errno.into());
        }
        remove(&self.parent, Path::new(&old));
        Ok(())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // By name: after an exchange it is the old directory that has it.
        remove(&self.parent, Path::new(&self.name));
    }
}

/// Removes whatever has this name. What cannot be removed keeps its reserved name; a drop has nobody to tell.
pub(crate) fn remove(parent: &OwnedFd, name: &Path) {
    if unlinkat(parent, name, AtFlags::empty()).is_ok() {
        return;
    }
    if let Ok(inner) = openat(parent, name, DIRECTORY, Mode::empty()) {
        let _ = remove_below(&inner);
    }
    let _ = unlinkat(parent, name, AtFlags::REMOVEDIR);
}

/// A file beside its target. Removed when dropped, unless it was kept.
#[derive(Debug)]
pub(super) struct StagedFile {
    directory: OwnedFd,
    scratch: String,
    name: OsString,
    /// Holds the lock that keeps a sweep away.
    _file: OwnedFd,
    kept: bool,
}

impl StagedFile {
    pub(super) fn create(directory: OwnedFd, name: &Path, mode: u32) -> io::Result<(Self, OwnedFd)> {
        if name.as_os_str().is_empty() {
            return Err(no_place());
        }
        let scratch = scratch_name(PREFIX)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&directory, &scratch, flags, Mode::RUSR | Mode::WUSR)?;
        let lock = rustix::io::fcntl_dupfd_cloexec(&file, 0);
        let unmade = |errno| {
            let _ = unlinkat(&directory, &scratch, AtFlags::empty());
            io::Error::from(errno)
        };
        let lock = lock.map_err(unmade)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(unmade)?;
        // Before the first byte, so that at no moment anybody can read what the mode forbids.
        fchmod(&file, Mode::from_raw_mode(mode)).map_err(unmade)?;
        Ok((Self { directory, scratch, name: name.into(), _file: lock, kept: false }, file))
    }

    pub(super) fn keep(mut self) -> io::Result<()> {
        renameat(&self.directory, &self.scratch, &self.directory, &self.name)?;
        self.kept = true;
        Ok(())
    }
}

impl Drop for StagedFile {
    fn drop(&mut self) {
        if !self.kept {
            let _ = unlinkat(&self.directory, &self.scratch, AtFlags::empty());
        }
    }
}
