//! What can go wrong between a host application and a sandbox.

use crate::installed::EngineFault;
use leasehold_authority::http::TlsError;
use leasehold_authority::jail::JailError;
use leasehold_contract::Method;
use leasehold_engine::{CallError, LoadError};
use leasehold_lease::registry::RegistryError;
use leasehold_lease::{Blocker, Fault, LeaseError, LeaseId, State, StoreError};
use leasehold_sync::fallback::FallbackError;
use leasehold_sync::{ConfineError, MergeError, PlaceError, ReceiveError, SendError, WalkError};
use std::path::PathBuf;
use std::sync::Arc;

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
    /// The engine does not run here, or its cache cannot be used.
    #[error(transparent)]
    Engine(Arc<EngineFault>),
    /// A provider's file is no component.
    #[error("provider `{provider}`: {source}")]
    Load {
        /// The provider.
        provider: String,
        /// What is wrong with it.
        source: LoadError,
    },
    /// A provider wants what it may not have.
    #[error("provider `{provider}`: {text}")]
    Link {
        /// The provider.
        provider: String,
        /// What it wants, and how to declare or grant it.
        text: String,
    },
    /// A component that cannot acquire anything.
    #[error(
        "`{provider}` is no provider: it has no {} of the contract's shape; `leasehold inspect` shows what it has",
        Method::AcquireLease
    )]
    NoProvider {
        /// Its key.
        provider: String,
    },
    /// A folder that does not hold exactly one component.
    #[error("{} {}; a provider's folder holds one .wasm file, or several of which one is provider.wasm", folder.display(), components(.found))]
    NotOneComponent {
        /// The folder.
        folder: PathBuf,
        /// The components in it.
        found: Vec<String>,
    },
    /// A declaration with faults.
    #[error("{of} cannot be used:{}", lines(.faults))]
    Declaration {
        /// What was read.
        of: String,
        /// Every fault.
        faults: Vec<String>,
    },
    /// The jails cannot be kept.
    #[error(transparent)]
    Jail(#[from] JailError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no provider to be had, or it was not changed.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// No environment has this name.
    #[error("there is no environment `{}` (there are: {}); type `leasehold env add {} --provider PROVIDER`, or write it into leasehold.toml", .name.escape_debug(), names(.known), .name.escape_debug())]
    UnknownEnvironment {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// One name means two environments.
    #[error("there are two environments `{name}`, one in {} and one in {}; remove one of them", places[0], places[1])]
    TwoPlaces {
        /// The name.
        name: String,
        /// Where they are written down.
        places: [String; 2],
    },
    /// The name is another environment's.
    #[error(
        "there is an environment `{name}` already, in {place}; remove it there first, or take another name"
    )]
    EnvironmentTaken {
        /// The name.
        name: String,
        /// Where it is written down.
        place: String,
    },
    /// It is not in the store, so it cannot be removed from there.
    #[error("environment `{name}` is written in {place}; remove it there")]
    EnvironmentElsewhere {
        /// The name.
        name: String,
        /// Where it is written down.
        place: String,
    },
    /// Leases of it could not be looked after without it.
    #[error("environment `{name}` cannot be removed: {}", blocked(.blockers))]
    EnvironmentInUse {
        /// The name.
        name: String,
        /// What stands in the way.
        blockers: Vec<Blocker>,
    },
    /// A name that no environment can have.
    #[error(
        "`{name}` cannot name an environment: use up to 63 letters, digits, `.`, `_` and `-`, beginning with a letter or digit"
    )]
    EnvironmentName {
        /// The name.
        name: String,
    },
    /// The lease is not in use, so nothing can be done in it.
    #[error("lease {id} is {state}, not in use; `leasehold lease show {id}` says what happened to it")]
    NotInUse {
        /// The lease.
        id: LeaseId,
        /// Where it stands.
        state: State,
    },
    /// The provider named no allocation for this lease, so no call can be about it.
    #[error("lease {id} has no allocation on record; let it go with `leasehold lease release {id}`")]
    NoAllocation {
        /// The lease.
        id: LeaseId,
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
    /// The provider went on in another sandbox than it was asked to.
    #[error("the provider was asked for the sandbox {asked:?} and gave {got:?}; nothing is done in it")]
    AnotherAllocation {
        /// The one that belongs to the lease.
        asked: String,
        /// The one it gave.
        got: String,
    },
    /// An environment's configuration does not fit its driver.
    #[error("the configuration of `{environment}` cannot be used:{}", lines(.faults))]
    Config {
        /// The environment.
        environment: String,
        /// What is wrong with it, each with its place.
        faults: Vec<String>,
    },
    /// The network cannot be used as the settings say.
    #[error(transparent)]
    Network(#[from] TlsError),
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
    /// A path lies where it may not; nothing of the transfer was sent.
    #[error(transparent)]
    Confine(#[from] ConfineError),
    /// A directory cannot replace everything there is.
    #[error(
        "a directory replaces all that its target holds, and `/` is no such target; name a directory below it"
    )]
    WholeRoot,
    /// A path of a sandbox that its interfaces cannot name.
    #[error("{path:?} is no text, and paths of a sandbox have to be")]
    NotText {
        /// The path.
        path: PathBuf,
    },
    /// The transfer over commands failed.
    #[error(transparent)]
    Fallback(#[from] FallbackError),
    /// What came back cannot be put in place.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// The provider reports on other operations than it was given.
    #[error("the provider reports on other operations than it was given; nothing of it is trusted")]
    OtherOperations,
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

    /// Whether the sandbox reached one of its bounds (memory, processes, disk), which ended what ran in it.
    pub fn is_bound_reached(&self) -> bool {
        self.has_code("limit")
    }

    fn has_code(&self, wanted: &str) -> bool {
        matches!(self, Error::Provider(Fault::Failed { code, .. }) if code == wanted)
    }
}

fn names(names: &[String]) -> String {
    if names.is_empty() { "none".into() } else { names.join(", ") }
}

fn components(found: &[String]) -> String {
    match found {
        [] => "holds no component".into(),
        found => format!("holds several components ({})", found.join(", ")),
    }
}

fn lines(faults: &[String]) -> String {
    faults.iter().map(|fault| format!("\n  {fault}")).collect()
}

fn blocked(blockers: &[Blocker]) -> String {
    blockers.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
