//! Listing a folder.

mod error;
mod ignores;
mod rules;
mod walk;

pub use error::WalkError;
pub use rules::{HEAVY, LeftOut, RESERVED, Rules, coming_back, reserved_patterns};

use crate::confine::{open_directory, open_file, open_followed_file, open_root};
use crate::exclude::Excludes;
use crate::limits::ENTRIES;
use crate::manifest::Timestamp;
use crate::unchanged::Stamp;
use rustix::fs::Stat;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// What a walk leaves out and how far it goes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WalkOptions {
    /// Leave out the directories of [`HEAVY`].
    pub skip_heavy: bool,
    /// Leave out what `.gitignore` files name.
    pub skip_ignored: bool,
    /// Leave out `.git`. Its hooks and configuration are commands that git runs on the host, so letting a
    /// sandbox change them lets it out.
    pub skip_git: bool,
    /// Leave out what these patterns match.
    pub exclude: Excludes,
    /// Take what links lead to instead of the links, wherever that is, as `tar -h` does.
    pub follow_symlinks: bool,
    /// Remember what is left out, and why.
    pub remember_left_out: bool,
    /// Entries after which the walk gives up.
    pub max_entries: usize,
}

impl Default for WalkOptions {
    fn default() -> Self {
        Self { skip_heavy: true, skip_ignored: true, skip_git: true, ..Self::everything() }
    }
}

impl WalkOptions {
    /// Leaves nothing out but names that are reserved, and keeps links.
    #[must_use]
    pub fn everything() -> Self {
        Self {
            skip_heavy: false,
            skip_ignored: false,
            skip_git: false,
            exclude: Excludes::default(),
            follow_symlinks: false,
            remember_left_out: false,
            max_entries: ENTRIES,
        }
    }
}

/// A folder, listed and held open.
#[derive(Debug)]
pub struct Tree {
    pub(crate) root: OwnedFd,
    pub(crate) path: PathBuf,
    pub(crate) found: Vec<Found>,
    pub(crate) rules: Rules,
    /// Whether links are followed, and so opened by the path.
    pub(crate) follow: bool,
    pub(crate) skipped: u64,
    pub(crate) left_out: Vec<(PathBuf, LeftOut)>,
}

/// An entry as it was when it was listed.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    pub(crate) kind: FoundKind,
    pub(crate) mode: u32,
    pub(crate) size: u64,
    pub(crate) mtime: Timestamp,
    pub(crate) stamp: Stamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FoundKind {
    Directory,
    File,
    Link,
}

impl Tree {
    /// Lists a folder. Blocks on the disk; call it on a thread where that is allowed.
    pub fn walk(folder: &Path, options: WalkOptions) -> Result<Self, WalkError> {
        walk::walk(folder, Path::new(""), options)
    }

    /// Lists a directory below a root, reached without following a link.
    ///
    /// # Errors
    /// When something cannot be read, or there is too much.
    pub fn walk_below(root: &Path, below: &Path, options: WalkOptions) -> Result<Self, WalkError> {
        walk::walk(root, below, options)
    }

    /// Opens a directory of the tree.
    pub(crate) fn open_directory(&self, path: &Path) -> io::Result<OwnedFd> {
        match self.follow {
            true => open_root(&self.path.join(path)),
            false => open_directory(&self.root, path),
        }
    }

    /// Opens a file of the tree in its directory.
    pub(crate) fn open_file(&self, directory: &OwnedFd, name: &Path) -> io::Result<File> {
        match self.follow {
            true => open_followed_file(directory, name),
            false => open_file(directory, name),
        }
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

    /// What was left out and why, if the walk was to remember it; a directory stands for all it holds.
    #[must_use]
    pub fn left_out(&self) -> &[(PathBuf, LeftOut)] {
        &self.left_out
    }

    /// Every entry that is sent, with the bytes of a file.
    pub fn entries(&self) -> impl Iterator<Item = (&Path, u64)> {
        self.found.iter().map(|found| (found.path.as_path(), found.size))
    }

    /// The rules it was listed by.
    #[must_use]
    pub fn rules(&self) -> &Rules {
        &self.rules
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
