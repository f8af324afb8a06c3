//! What both sides held after the last sync, and what of it is still so.
//!
//! Each side's entries have stamps that every change of them changes: inode and the time of the last change of
//! state, which no program can set. Both are compared at every sync, so nothing is assumed of either side.

mod listing;
mod record;

pub use listing::{LIST, Listing};
pub use record::SyncRecord;

use crate::manifest::{Entry, Manifest};
use crate::tree::{FoundKind, Tree};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// What changes whenever an entry does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    pub(crate) inode: u64,
    pub(crate) mode: u32,
    pub(crate) size: u64,
    /// When it was last changed in any way, in nanoseconds.
    pub(crate) changed: i128,
}

/// What has to be done so that the sandbox holds what the host does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delta {
    /// Entries to send, with what holds them.
    pub send: Vec<PathBuf>,
    /// Entries of the sandbox to take away first, none of them inside another.
    pub remove: Vec<PathBuf>,
}

impl Delta {
    /// Whether both sides are as they were.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.send.is_empty() && self.remove.is_empty()
    }
}

impl Tree {
    /// The stamps of all entries. Those changed so short ago that a further change could look the same have one
    /// that equals no other.
    #[must_use]
    pub fn stamps(&self) -> BTreeMap<PathBuf, Stamp> {
        self.found.iter().map(|found| (found.path.clone(), found.stamp)).collect()
    }

    /// What of the tree has to be sent, by what both sides were and are. `None` when all of it might as well be.
    #[must_use]
    pub fn delta(&self, record: &SyncRecord, sandbox: &Listing) -> Option<Delta> {
        let mut delta = Delta::default();
        for found in &self.found {
            let host_same = record.host.get(&found.path).is_some_and(|stamp| *stamp == found.stamp && stamp.inode != 0)
                // A directory's own time changes with what it holds; of itself only the mode counts.
                || (found.kind == FoundKind::Directory
                    && record.manifest.get(&found.path).is_some_and(|entry| entry.is_directory() && entry.mode == found.mode));
            let there = sandbox.0.get(&found.path);
            let sandbox_same = match (there, record.sandbox.0.get(&found.path)) {
                (Some(there), Some(was)) if found.kind == FoundKind::Directory => {
                    there.kind == b'd' && was.kind == b'd' && there.stamp.mode == was.stamp.mode
                }
                (Some(there), Some(was)) => (there.kind, there.stamp) == (was.kind, was.stamp),
                _ => false,
            };
            if host_same && sandbox_same {
                continue;
            }
            // What is of another kind there has to go first.
            if there.is_some_and(|there| (there.kind == b'd') != (found.kind == FoundKind::Directory)) {
                delta.remove.push(found.path.clone());
            }
            delta.send.push(found.path.clone());
        }
        let ours: std::collections::BTreeSet<&Path> =
            self.found.iter().map(|found| found.path.as_path()).collect();
        delta.remove.extend(sandbox.0.keys().filter(|path| !ours.contains(path.as_path())).cloned());
        delta.remove.sort();
        delta.remove.dedup_by(|inner, outer| inner.starts_with(&*outer));
        (delta.send.len() <= self.found.len() / 2 && delta.send.len() + delta.remove.len() <= MOST)
            .then_some(delta)
    }

    /// Keeps the entries to send and what holds them.
    ///
    /// # Errors
    /// When the process has no handle left.
    pub fn only(&self, delta: &Delta) -> io::Result<Self> {
        let mut keep = std::collections::BTreeSet::new();
        for path in &delta.send {
            keep.extend(path.ancestors().filter(|above| !above.as_os_str().is_empty()).map(Path::to_owned));
        }
        let found = self.found.iter().filter(|found| keep.contains(&found.path)).cloned().collect();
        let (path, rules) = (self.path.clone(), self.rules.clone());
        Ok(Self {
            root: self.root.try_clone()?,
            path,
            found,
            rules,
            follow: self.follow,
            skipped: 0,
            left_out: Vec::new(),
        })
    }

    /// The manifest of all entries, those not in `sent` as they were recorded.
    #[must_use]
    pub fn manifest(&self, sent: &Manifest, record: &Manifest) -> Option<Manifest> {
        let mut manifest = Manifest::default();
        for found in &self.found {
            let entry = sent.get(&found.path).or_else(|| record.get(&found.path))?;
            let entry = Entry { mode: found.mode, mtime: found.mtime, ..entry.clone() };
            manifest.insert(found.path.clone(), entry);
        }
        Some(manifest)
    }
}

/// Entries that are put in place one by one; sending all is quicker than more.
const MOST: usize = 1_000;
