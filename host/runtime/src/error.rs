//! What can go wrong between a host application and a sandbox.

use leasehold_authority::jail::JailError;
use leasehold_contract::Method;
use leasehold_engine::{CacheError, CallError, EngineError, LinkError, LoadError};
use leasehold_lease::{Fault, LeaseError, StoreError};
use leasehold_sync::{MergeError, ReceiveError, SendError, WalkError};
use std::path::PathBuf;

/// Why something was not done. Nothing is left running that the store does not know.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A directory of the runtime cannot be used.
    #[error("cannot use {}: {source}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The engine does not run here.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The cache cannot be used.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// A provider's file is no component.
    #[error("provider `{provider}`: {source}")]
    Load {
        /// The provider.
        provider: String,
        /// What is wrong with it.
        source: LoadError,
    },
    /// A provider wants what it may not have.
    #[error("provider `{provider}`: {source}")]
    Link {
        /// The provider.
        provider: String,
        /// What it wants.
        source: LinkError,
    },
    /// The jails cannot be kept.
    #[error(transparent)]
    Jail(#[from] JailError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// No provider of that name is installed.
    #[error("there is no provider `{name}`; installed: {}", known.join(", "))]
    UnknownProvider {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// Acquiring or releasing failed.
    #[error(transparent)]
    Lease(Box<LeaseError>),
    /// The provider lacks a method that this needs.
    #[error("provider `{provider}` has no {method}, which this needs; `leasehold inspect` shows what it has")]
    MissingMethod {
        /// The provider.
        provider: String,
        /// The method.
        method: Method,
    },
    /// A variable that no shell could name.
    #[error("`{name}` cannot name a variable: use letters, digits and `_`, not beginning with a digit")]
    VariableName {
        /// The name.
        name: String,
    },
    /// The call gave no answer.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The provider answered with a fault.
    #[error(transparent)]
    Provider(#[from] Fault),
    /// The folder cannot be listed.
    #[error(transparent)]
    Walk(#[from] WalkError),
    /// The folder cannot be sent.
    #[error(transparent)]
    Send(#[from] SendError),
    /// What came back cannot be taken.
    #[error(transparent)]
    Receive(#[from] ReceiveError),
    /// What came back cannot be put in place.
    #[error(transparent)]
    Merge(Box<MergeError>),
    /// The provider reports other numbers than were moved.
    #[error("the provider says it moved {said} {what}, and it was {seen}; nothing of it is trusted")]
    Counts {
        /// Files or bytes.
        what: &'static str,
        /// What the provider says.
        said: u64,
        /// What passed through the host.
        seen: u64,
    },
    /// Work of the host's own was cut off: its runtime ends, or it failed.
    #[error("{doing} was cut off; the runtime is ending, or failed: try again, and report it if it stays")]
    CutOff {
        /// What was being done.
        doing: &'static str,
    },
    /// The provider claims success and has not moved everything.
    #[error("the provider ended the transfer before everything was moved; nothing was put in place")]
    Unfinished,
}

impl From<LeaseError> for Error {
    fn from(error: LeaseError) -> Self {
        Error::Lease(Box::new(error))
    }
}

impl From<MergeError> for Error {
    fn from(error: MergeError) -> Self {
        Error::Merge(Box::new(error))
    }
}

impl Error {
    /// Whether the program was not found in the sandbox.
    pub fn is_program_not_found(&self) -> bool {
        self.has_code("program_not_found")
    }

    /// Whether the program is there and cannot be executed.
    pub fn is_program_not_executable(&self) -> bool {
        self.has_code("program_not_executable")
    }

    fn has_code(&self, wanted: &str) -> bool {
        matches!(self, Error::Provider(Fault::Failed { code, .. }) if code == wanted)
    }
}
