//! A received tree in place of a directory, as a whole.

use super::{PlaceError, Received};
use crate::confine::{open_directory, split};
use crate::manifest::{Kind, Timestamp};
use crate::operation::Moved;
use rustix::fs::{AtFlags, Mode, Timespec, Timestamps, UTIME_OMIT, fchmod, futimens, statat};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

/// The mode of a directory that was not there before and came without one.
const MODE: u32 = 0o755;

impl Received {
    /// Puts the tree in place of what is at this path, in one step where the kernel can exchange two names. The
    /// staging directory has to lie beside the path, so `path` has to be a name in the directory that was
    /// given to the sink. Blocks on the disk.
    ///
    /// # Errors
    /// When it cannot be put there; what was there is then as it was.
    pub fn place(self, name: &Path) -> Result<Moved, PlaceError> {
        let path = self.staging.beside(name);
        let fail = |source| PlaceError::Place { path: path.clone(), source };
        let (parent, name) = split(name);
        if !parent.as_os_str().is_empty() || name.as_os_str().is_empty() {
            return Err(fail(io::Error::new(
                io::ErrorKind::InvalidInput,
                "it is not a name beside the staging",
            )));
        }
        let Self { manifest, staging } = self;
        let old = statat(staging.parent(), name, AtFlags::SYMLINK_NOFOLLOW).ok();
        let old = old.filter(|status| rustix::fs::FileType::from_raw_mode(status.st_mode).is_dir());
        let mode = old.map_or(MODE, |status| status.st_mode & 0o777);
        // Those inside first: a directory may end up closed to its owner, and what is made in it changes its time.
        for (path, entry) in manifest.iter().rev().filter(|(_, entry)| entry.kind == Kind::Directory) {
            let finish = open_directory(staging.root(), path)
                .and_then(|directory| finish(&directory, entry.mode, Some(entry.mtime)));
            finish.map_err(|source| PlaceError::Place { path: staging.beside(name).join(path), source })?;
        }
        finish(staging.root(), mode, None).map_err(fail)?;
        let (files, bytes) = manifest.totals();
        staging.put(name).map_err(fail)?;
        Ok(Moved { files, bytes })
    }
}

fn finish(directory: &OwnedFd, mode: u32, mtime: Option<Timestamp>) -> io::Result<()> {
    fchmod(directory, Mode::from_raw_mode(mode))?;
    if let Some(Timestamp { seconds, nanoseconds }) = mtime {
        let last_modification = Timespec { tv_sec: seconds, tv_nsec: nanoseconds.into() };
        let last_access = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
        futimens(directory, &Timestamps { last_access, last_modification })?;
    }
    Ok(())
}
