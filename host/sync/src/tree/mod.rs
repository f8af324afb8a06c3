//! Listing a folder.

mod error;
mod ignores;
mod rules;
mod walk;

pub use error::WalkError;
pub use rules::{HEAVY, RESERVED, Rules};

use crate::limits::ENTRIES;
use crate::manifest::Timestamp;
use rustix::fs::Stat;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

/// What a walk leaves out and how far it goes.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct WalkOptions {
    /// Leave out the directories of [`HEAVY`].
    pub skip_heavy: bool,
    /// Leave out what `.gitignore` files name.
    pub skip_ignored: bool,
    /// Leave out `.git`. Its hooks and configuration are commands that git runs on the host, so letting a
    /// sandbox change them lets it out.
    pub skip_git: bool,
    /// Entries after which the walk gives up.
    pub max_entries: usize,
}

impl Default for WalkOptions {
    fn default() -> Self {
        Self { skip_heavy: true, skip_ignored: true, skip_git: true, max_entries: ENTRIES }
    }
}

/// A folder, listed and held open.
#[derive(Debug)]
pub struct Tree {
    pub(crate) root: OwnedFd,
    pub(crate) path: PathBuf,
    pub(crate) found: Vec<Found>,
    pub(crate) rules: Rules,
    pub(crate) skipped: u64,
}

/// An entry as it was when it was listed.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    pub(crate) kind: FoundKind,
    pub(crate) mode: u32,
    pub(crate) size: u64,
    pub(crate) mtime: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FoundKind {
    Directory,
    File,
    Link,
}

impl Tree {
    /// Lists a folder. Blocks on the disk; call it on a thread where that is allowed.
    pub fn walk(folder: &std::path::Path, options: WalkOptions) -> Result<Self, WalkError> {
        walk::walk(folder, options)
    }

    /// How many entries there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.found.len()
    }

    /// Whether the folder holds nothing that is sent.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Regular files and the bytes in them, as listed.
    #[must_use]
    pub fn totals(&self) -> (u64, u64) {
        let files = self.found.iter().filter(|found| found.kind == FoundKind::File);
        files.fold((0, 0), |(count, bytes), found| (count + 1, bytes + found.size))
    }

    /// Sockets, pipes and devices that were passed over.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.skipped
    }
}

/// The time a status names.
pub(crate) fn mtime(status: &Stat) -> Timestamp {
    Timestamp {
        seconds: status.st_mtime,
        nanoseconds: u32::try_from(status.st_mtime_nsec).unwrap_or_default(),
    }
}
