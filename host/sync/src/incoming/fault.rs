//! What goes wrong while one entry is unpacked.

use super::ReceiveError;
use crate::archive::ArchiveError;
use crate::pipe::CANCELLED;
use crate::rule::Rule;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

pub(super) enum Fault {
    Rule(Rule),
    Write(io::Error),
    Archive(ArchiveError),
}

impl Fault {
    pub(super) fn at(self, path: PathBuf) -> ReceiveError {
        match self {
            Self::Rule(rule) => ReceiveError::Refused { path, rule },
            Self::Write(source) => ReceiveError::Write { path, source },
            // An archive that ends here ends in the middle of this entry.
            Self::Archive(ArchiveError::Rule(_, rule)) => ReceiveError::Refused { path, rule },
            Self::Archive(stream) => archive_error(stream),
        }
    }
}

impl From<Rule> for Fault {
    fn from(rule: Rule) -> Self {
        Self::Rule(rule)
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Write(error)
    }
}

pub(super) fn archive_error(error: ArchiveError) -> ReceiveError {
    match error {
        ArchiveError::Rule(raw, rule) => ReceiveError::Refused { path: OsString::from_vec(raw).into(), rule },
        ArchiveError::Stream(error) if error.kind() == CANCELLED => ReceiveError::Cancelled,
        ArchiveError::Stream(error) => ReceiveError::Stream(error),
    }
}
