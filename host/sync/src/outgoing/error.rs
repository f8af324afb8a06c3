use std::io;
use std::path::PathBuf;

/// Why a folder could not be sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// An entry cannot be read.
    #[error("cannot read {path:?}: {source}; make it readable, or keep it out with a .gitignore line")]
    Read {
        /// The entry.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// An entry is no longer what it was, or changed while it was read.
    #[error("{path:?} changed while it was read; run again when nothing writes to it, or keep it out")]
    Changed {
        /// The entry.
        path: PathBuf,
    },
    /// The stream was dropped before its end.
    #[error("the folder {path:?} was not sent to its end, because the stream was dropped")]
    Dropped {
        /// The folder.
        path: PathBuf,
    },
}
