//! What goes wrong between the host and a provider, as the contract's interfaces say it.

use crate::CleanupRecord;
use std::time::Duration;

/// One fault in a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// JSON path of the field; empty for the whole object.
    pub path: String,
    /// What is wrong and what would be accepted.
    pub message: String,
}

/// Why a fault may pass by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransientCategory {
    /// The back end did not answer in time.
    Timeout,
    /// The back end asked the provider to slow down.
    RateLimited,
    /// The back end is up but cannot serve this now.
    Unavailable,
    /// The back end could not be reached.
    Network,
}

/// Why a provider did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The configuration cannot be used; every fault at once.
    #[error("the configuration cannot be used: {}", joined(.0))]
    InvalidConfig(Vec<FieldError>),
    /// The allocation named in the request no longer exists.
    #[error("the back end no longer knows the allocation")]
    Gone,
    /// The back end refused by policy or credentials.
    #[error("the back end refused: {0}")]
    Denied(String),
    /// A fault that may pass by itself.
    #[error("{message}")]
    Transient {
        /// The kind of fault.
        category: TransientCategory,
        /// How long the back end asked to wait, when it said so.
        retry_after: Option<Duration>,
        /// For people.
        message: String,
    },
    /// Any other fault.
    #[error("{message} ({code})")]
    Failed {
        /// A stable code.
        code: String,
        /// For people.
        message: String,
    },
}

fn joined(errors: &[FieldError]) -> String {
    let lines = errors.iter().map(|error| match error.path.as_str() {
        "" => error.message.clone(),
        path => format!("{path}: {}", error.message),
    });
    lines.collect::<Vec<_>>().join("; ")
}

impl TransientCategory {
    /// The word for it, for machines and people.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            TransientCategory::Timeout => "timeout",
            TransientCategory::RateLimited => "rate_limited",
            TransientCategory::Unavailable => "unavailable",
            TransientCategory::Network => "network",
        }
    }
}

/// How far an acquisition had come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcquisitionPhase {
    /// Looking for an earlier allocation of the same creation name.
    Lookup,
    /// Asking the back end to create.
    Create,
    /// Waiting for the allocation to start.
    Start,
    /// Preparing the started allocation.
    Setup,
}

/// Measurements of a failed acquisition. The host classifies by these, never by message text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AcquisitionDiagnostic {
    /// The phase that failed first.
    pub phase: AcquisitionPhase,
    /// Time spent.
    pub elapsed: Duration,
    /// The provider's own budget; `elapsed` reaches it when the deadline was the fault.
    pub budget: Duration,
    /// Whether the allocation had started.
    pub started: bool,
}

impl AcquisitionDiagnostic {
    /// Whether the provider's own deadline was the first thing that failed, before anything had started.
    #[must_use]
    pub fn is_deadline(&self) -> bool {
        self.elapsed >= self.budget
            && !self.budget.is_zero()
            && !self.started
            && self.phase != AcquisitionPhase::Setup
    }
}

/// A failed acquisition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcquireFailure {
    /// Why.
    pub fault: Fault,
    /// How far it had come.
    pub diagnostic: Option<AcquisitionDiagnostic>,
    /// What may be left behind; absent only when nothing can be.
    pub cleanup: Option<Box<CleanupRecord>>,
    /// Whether the provider itself said all this. A call that was cut off says nothing of what is left.
    pub answered: bool,
}

/// A failed or unfinished destruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DestroyFailure {
    /// Why.
    pub fault: Fault,
    /// The cleanup record with its observed id, given before anything is deleted: it is stored, and the
    /// provider is called again.
    pub cleanup: Option<Box<CleanupRecord>>,
}

/// Why an allocation could not be stopped; a closed list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StopReason {
    /// Could not be confirmed; may be tried again.
    Unconfirmed,
    /// The back end lost the resource; terminal.
    ResourceUnrecoverable,
    /// One bounded recovery was tried and failed; terminal.
    RecoveryFailed,
}

impl StopReason {
    /// The word for it, in the store and for people.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            StopReason::Unconfirmed => "unconfirmed",
            StopReason::ResourceUnrecoverable => "resource_unrecoverable",
            StopReason::RecoveryFailed => "recovery_failed",
        }
    }

    /// Whether trying again soon is of no use.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        !matches!(self, StopReason::Unconfirmed)
    }
}

/// A failed stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopFailure {
    /// Why, as every method says it.
    pub fault: Fault,
    /// Why, from the closed list.
    pub reason: StopReason,
}
