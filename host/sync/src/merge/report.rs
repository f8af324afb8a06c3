use std::path::PathBuf;

/// A path that both sides changed. The host's state of it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The path in the folder.
    pub path: PathBuf,
    /// Where the sandbox's version was put; none if the sandbox deleted it.
    pub aside: Option<PathBuf>,
}

/// What a merge did, all paths relative to the folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MergeReport {
    /// New in the sandbox.
    pub added: Vec<PathBuf>,
    /// Changed in the sandbox, by content, mode, target or kind.
    pub changed: Vec<PathBuf>,
    /// Deleted in the sandbox.
    pub deleted: Vec<PathBuf>,
    /// Changed on both sides.
    pub conflicts: Vec<Conflict>,
    /// Came back and was not taken, because the same was left out on the way there; a directory stands for
    /// all it holds.
    pub left_out: Vec<PathBuf>,
}

impl MergeReport {
    /// How many paths were added, changed, deleted or in conflict.
    #[must_use]
    pub fn len(&self) -> usize {
        self.added.len() + self.changed.len() + self.deleted.len() + self.conflicts.len()
    }

    /// Whether the merge had nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
