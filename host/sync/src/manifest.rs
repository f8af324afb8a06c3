//! What a tree holds: the record that both sides of a sync are compared by.

use crate::tree::Rules;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::ops::Bound;
use std::path::{Path, PathBuf};

/// Permission bits that are kept. Set-user-id, set-group-id and sticky never cross.
pub(crate) const MODE_MASK: u32 = 0o777;

/// A moment as file systems store it, which may lie before 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    /// Whole seconds since 1970, rounded down.
    pub seconds: i64,
    /// Nanoseconds on top of them, under a thousand million.
    pub nanoseconds: u32,
}

/// What stands at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// A directory.
    Directory,
    /// A regular file.
    File {
        /// Bytes of its content.
        size: u64,
        /// Digest of its content.
        blake3: blake3::Hash,
    },
    /// A symbolic link.
    Link {
        /// Its target, as written.
        target: OsString,
    },
}

/// One path of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What it is.
    pub kind: Kind,
    /// Its permission bits; of no meaning for a link.
    pub mode: u32,
    /// When its content was last changed.
    pub mtime: Timestamp,
}

impl Entry {
    /// Whether kind, content and mode are the same. Times are not compared: a touch is no change.
    #[must_use]
    pub fn same(&self, other: &Self) -> bool {
        self.kind == other.kind && (self.mode == other.mode || matches!(self.kind, Kind::Link { .. }))
    }

    pub(crate) fn target_bytes(&self) -> usize {
        if let Kind::Link { target } = &self.kind { target.len() } else { 0 }
    }

    /// Whether it is a directory.
    #[must_use]
    pub fn is_directory(&self) -> bool {
        matches!(self.kind, Kind::Directory)
    }
}

/// Every path of a tree, relative to it, in an order where a directory comes before what it holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    entries: BTreeMap<PathBuf, Entry>,
}

impl Manifest {
    /// The entry at a path.
    #[must_use]
    pub fn get(&self, path: &Path) -> Option<&Entry> {
        self.entries.get(path)
    }

    /// All entries in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&Path, &Entry)> {
        self.entries.iter().map(|(path, entry)| (path.as_path(), entry))
    }

    /// How many entries there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Regular files and the bytes of their content: the counts that a sync reports.
    #[must_use]
    pub fn totals(&self) -> (u64, u64) {
        self.entries.values().fold((0, 0), |(files, bytes), entry| match entry.kind {
            Kind::File { size, .. } => (files + 1, bytes + size),
            _ => (files, bytes),
        })
    }

    /// All entries inside a directory, in order.
    pub(crate) fn below(&self, directory: &Path) -> impl DoubleEndedIterator<Item = (&Path, &Entry)> {
        // In this order what is inside a directory follows it without a gap.
        let within = self.entries.range::<Path, _>((Bound::Excluded(directory), Bound::Unbounded));
        let inside: Vec<_> = within.take_while(|(path, _)| path.starts_with(directory)).collect();
        inside.into_iter().map(|(path, entry)| (path.as_path(), entry))
    }

    pub(crate) fn insert(&mut self, path: PathBuf, entry: Entry) {
        self.entries.insert(path, entry);
    }
}

/// What a folder held when it was sent, and by which rules it was listed.
#[derive(Clone, Debug)]
pub struct Baseline {
    /// What was sent.
    pub manifest: Manifest,
    /// What was left out; a merge leaves the same out on the way back.
    pub rules: Rules,
    /// Sockets, pipes and devices, which are never sent.
    pub skipped: u64,
}
