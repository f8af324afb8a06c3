use crate::rule::Rule;
use std::io;
use std::path::PathBuf;

/// Why an archive was not taken. Nothing of it is left behind.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReceiveError {
    /// It broke a rule.
    #[error("the archive is refused at {path:?}: {rule}")]
    Refused {
        /// The path of the entry, as the archive has it; empty when no entry is at fault.
        path: PathBuf,
        /// The rule.
        rule: Rule,
    },
    /// The staging directory cannot be made.
    #[error("cannot stage an archive in {path:?}: {source}; make that directory writable")]
    Staging {
        /// The directory that was to hold it.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// An entry cannot be written.
    #[error("cannot unpack {path:?}: {source}; make room or lift the limit, then run again")]
    Write {
        /// The entry.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The stream failed.
    #[error("the archive could not be read to its end: {0}")]
    Stream(io::Error),
    /// The transfer was cancelled.
    #[error("the transfer was cancelled before the archive was complete")]
    Cancelled,
}

impl ReceiveError {
    /// What the sandbox is told, which must not learn a path of the host.
    pub(super) fn for_sandbox(&self) -> String {
        match self {
            Self::Refused { rule, .. } => rule.to_string(),
            Self::Staging { .. } | Self::Write { .. } => "the host cannot write it".into(),
            Self::Stream(_) => "the stream broke off".into(),
            Self::Cancelled => "the transfer was cancelled".into(),
        }
    }
}

/// Why something that arrived whole is not in place. What was there before is as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlaceError {
    /// It cannot be put there.
    #[error("cannot put what arrived at {path:?}: {source}; what was there is as it was")]
    Place {
        /// The path.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}
