use super::MergeReport;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Why a merge did not come to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// The folder cannot be opened.
    #[error("cannot open the folder {path:?} to merge into: {source}; name the folder that was sent")]
    Open {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The lock cannot be made.
    #[error("cannot lock the folder {path:?} for a merge: {source}; make it writable, then run again")]
    Lock {
        /// The lock file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another merge holds the folder.
    #[error("another merge of the folder {path:?} did not end within {waited:?}; run again when it has")]
    Busy {
        /// The folder.
        path: PathBuf,
        /// How long it was waited for.
        waited: Duration,
    },
    /// One path cannot be merged. Everything of the report is in place, nothing else was touched.
    #[error("cannot merge {path:?}: {source}; {} changes are in place; run again for the rest", report.len())]
    Stopped {
        /// The path.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
        /// What was done before.
        report: Box<MergeReport>,
    },
}
