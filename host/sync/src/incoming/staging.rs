//! The directory an archive is unpacked into.

use super::ReceiveError;
use crate::confine::{DIRECTORY, open_root, remove_below, scratch_name};
use rustix::fs::{AtFlags, Mode, mkdirat, openat, unlinkat};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// How its name begins, so that walks pass over it and a later start finds what a crash left.
const PREFIX: &str = ".leasehold-stage-";

/// Removed with all it holds when dropped.
#[derive(Debug)]
pub(crate) struct Staging {
    parent: OwnedFd,
    parent_path: PathBuf,
    name: String,
    root: OwnedFd,
}

impl Staging {
    pub(super) fn create(beside: &Path) -> Result<Self, ReceiveError> {
        Self::try_create(beside).map_err(|source| ReceiveError::Staging { path: beside.into(), source })
    }

    fn try_create(beside: &Path) -> io::Result<Self> {
        let parent = open_root(beside)?;
        let name = scratch_name(PREFIX)?;
        mkdirat(&parent, &name, Mode::RWXU)?;
        let root = openat(&parent, &name, DIRECTORY, Mode::empty());
        let root = root.inspect_err(|_| unlinkat(&parent, &name, AtFlags::REMOVEDIR).unwrap_or_default())?;
        Ok(Self { parent, parent_path: beside.into(), name, root })
    }

    pub(crate) fn root(&self) -> &OwnedFd {
        &self.root
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.parent_path.join(&self.name)
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // What cannot be removed keeps its reserved name; a drop has nobody to tell.
        let _ = remove_below(&self.root);
        let _ = unlinkat(&self.parent, &self.name, AtFlags::REMOVEDIR);
    }
}
