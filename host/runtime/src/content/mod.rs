//! Files and trees as the content behind a guest's handles.
//!
//! Chunks go from the sync crate's threads into the guest's streams and back as they are. A guest that splices
//! moves them without ever having them in its memory.

mod sink;
mod source;
mod stream;

pub(crate) use sink::{FileContent as FileTaken, TreeContent as TreeTaken};
pub(crate) use source::{FileContent, TreeContent};
