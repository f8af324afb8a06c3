//! Where what arrives lies until it is whole and checked.

use super::ReceiveError;
use super::file::no_place;
use crate::confine::{DIRECTORY, made_directory, open_root, remove_below, scratch_name};
use rustix::fs::{
    AtFlags, FlockOperation, Mode, OFlags, RenameFlags, fchmod, flock, mkdirat, openat, renameat,
    renameat_with, statat, unlinkat,
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

/// How often something is made that a sweep takes for a leftover. That can happen between its making and its
/// lock, where another host begins in the same folder at that moment; after so many times the transfer fails.
const TRIES: usize = 16;

/// Locks what was just made; false when a sweep has taken it for a leftover, or is about to.
fn held(parent: &OwnedFd, name: &str, made: &OwnedFd) -> io::Result<bool> {
    match flock(made, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => return Ok(false),
        locked => locked?,
    }
    match statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(_) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

fn taken_away() -> io::Error {
    io::Error::new(io::ErrorKind::ResourceBusy, "other hosts keep taking away what is made there")
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
        for _ in 0..TRIES {
            let name = scratch_name(PREFIX)?;
            mkdirat(&parent, &name, Mode::RWXU)?;
            let unmade = |_: &io::Error| unlinkat(&parent, &name, AtFlags::REMOVEDIR).unwrap_or_default();
            let root = match openat(&parent, &name, DIRECTORY, Mode::empty()) {
                Err(Errno::NOENT) => continue,
                opened => opened.map_err(io::Error::from).inspect_err(unmade)?,
            };
            if held(&parent, &name, &root).inspect_err(unmade)? {
                return Ok(Self { parent, parent_path: beside.into(), name, root });
            }
        }
        Err(taken_away())
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
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        for _ in 0..TRIES {
            let scratch = scratch_name(PREFIX)?;
            let file = openat(&directory, &scratch, flags, Mode::RUSR | Mode::WUSR)?;
            let ready = || -> io::Result<Option<OwnedFd>> {
                let lock = rustix::io::fcntl_dupfd_cloexec(&file, 0)?;
                if !held(&directory, &scratch, &lock)? {
                    return Ok(None);
                }
                // Before the first byte, so that at no moment anybody can read what the mode forbids.
                fchmod(&file, Mode::from_raw_mode(mode))?;
                Ok(Some(lock))
            };
            let unmade = |_: &io::Error| unlinkat(&directory, &scratch, AtFlags::empty()).unwrap_or_default();
            if let Some(lock) = ready().inspect_err(unmade)? {
                return Ok((Self { directory, scratch, name: name.into(), _file: lock, kept: false }, file));
            }
        }
        Err(taken_away())
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn what_is_made_while_another_host_sweeps_stands() {
        let folder = tempfile::tempdir().unwrap();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    crate::sweep(folder.path()).unwrap();
                }
            });
            // A failure is told after the sweeping thread was let go.
            let made = (0..2_000).try_for_each(|_| {
                let staging = Staging::create(folder.path(), Path::new("")).map_err(|it| it.to_string())?;
                if !staging.path().is_dir() {
                    return Err("a staging directory was taken away".to_owned());
                }
                let directory = open_root(folder.path()).map_err(|it| it.to_string())?;
                let made = StagedFile::create(directory, Path::new("file"), 0o600);
                made.and_then(|(file, _)| file.keep()).map_err(|it| it.to_string())
            });
            done.store(true, Ordering::Relaxed);
            assert_eq!(made, Ok(()));
        });
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
