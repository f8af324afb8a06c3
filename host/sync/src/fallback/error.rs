use super::Ran;
use crate::incoming::{PlaceError, ReceiveError};
use crate::outgoing::SendError;
use std::error::Error;
use std::io;

/// Characters kept of what a failed command wrote: its end says what was wrong.
const KEPT: usize = 4_000;

/// Why a transfer over commands failed. What was half done is removed, unless the sandbox itself is gone.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FallbackError {
    /// A command could not be run.
    #[error("{doing} {path:?} in the sandbox: {source}")]
    Shell {
        /// What was being done.
        doing: &'static str,
        /// The path in the sandbox.
        path: String,
        /// Why not.
        source: Box<dyn Error + Send + Sync>,
    },
    /// A command failed.
    #[error("{doing} {path:?} in the sandbox failed with {ending}{}", said(text))]
    Command {
        /// What was being done.
        doing: &'static str,
        /// The path in the sandbox, or the command.
        path: String,
        /// How it ended.
        ending: String,
        /// The end of what it wrote.
        text: String,
    },
    /// The sandbox gave fewer or more bytes than it said.
    #[error(
        "reading {path:?} in the sandbox gave {got} bytes of the {want} it reported; it changed meanwhile, so try again"
    )]
    Short {
        /// The path in the sandbox.
        path: String,
        /// Bytes that came.
        got: u64,
        /// Bytes that were reported.
        want: u64,
    },
    /// What a command wrote is not what it should have written.
    #[error(
        "reading {path:?} in the sandbox gave no {what}; its tools do not work as those of GNU or busybox do"
    )]
    Garbled {
        /// The path in the sandbox.
        path: String,
        /// What was expected.
        what: &'static str,
    },
    /// The host has no random numbers.
    #[error("no random name could be made: {source}")]
    Random {
        /// What the system said.
        source: io::Error,
    },
    /// The host's side cannot be read.
    #[error(transparent)]
    Send(#[from] SendError),
    /// What came is not taken.
    #[error(transparent)]
    Receive(#[from] ReceiveError),
    /// What came cannot be put in place.
    #[error(transparent)]
    Place(#[from] PlaceError),
}

impl FallbackError {
    pub(super) fn failed(doing: &'static str, path: &str, ran: &Ran) -> Self {
        let ends = [&ran.error, &ran.output].map(|bytes| end(bytes));
        let text =
            ends.iter().map(|end| end.trim()).filter(|end| !end.is_empty()).collect::<Vec<_>>().join("\n");
        Self::Command { doing, path: path.into(), ending: ran.ending.clone(), text }
    }
}

fn end(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let skipped = text.chars().count().saturating_sub(KEPT);
    text.chars().skip(skipped).collect()
}

fn said(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(": {text}") }
}
