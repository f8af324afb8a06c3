//! How far a transfer is, for whoever watches.

use crate::operation::Moved;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Files and bytes that went across so far. Cheap to clone; all clones are one count.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    files: AtomicU64,
    bytes: AtomicU64,
    all_files: AtomicU64,
    all_bytes: AtomicU64,
}

impl Progress {
    /// What went across so far.
    #[must_use]
    pub fn moved(&self) -> Moved {
        Moved { files: self.0.files.load(Ordering::Relaxed), bytes: self.0.bytes.load(Ordering::Relaxed) }
    }

    /// What will have gone across at the end; nothing when that is not known.
    #[must_use]
    pub fn expected(&self) -> Moved {
        Moved {
            files: self.0.all_files.load(Ordering::Relaxed),
            bytes: self.0.all_bytes.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn expect(&self, all: Moved) {
        self.0.all_files.fetch_add(all.files, Ordering::Relaxed);
        self.0.all_bytes.fetch_add(all.bytes, Ordering::Relaxed);
    }

    pub(crate) fn bytes(&self, bytes: u64) {
        self.0.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn file(&self) {
        self.0.files.fetch_add(1, Ordering::Relaxed);
    }
}
