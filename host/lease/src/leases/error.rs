//! Why a lease was not acquired, used or ended, in words for people and in stable ones for machines.

use crate::{AcquisitionDiagnostic, Fault, LeaseId, StoreError, TransientCategory, Unready};
use std::fmt;
use std::time::Duration;

/// What went wrong with a lease.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LeaseError {
    /// The store failed. What was written before stays, and reconciling finishes it.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The provider cannot be called now; it was not asked for anything.
    #[error("no sandbox was asked for: {0}")]
    NotReady(#[from] Unready),
    /// The provider could not be had, now and every time it was tried again.
    #[error(
        "the provider is not available ({}): {fault}. {tries} to start a sandbox failed; no work had \
         started, and {left}. Nothing is tried again by itself; try again later",
        category.word()
    )]
    Unavailable {
        /// The last lease that was tried.
        id: LeaseId,
        /// What kind of failure.
        category: TransientCategory,
        /// The last fault.
        fault: Box<Fault>,
        /// How often it was tried.
        tries: Tries,
        /// Whether something may be left behind.
        left: Left,
    },
    /// The provider did not supply an allocation, and trying again is of no use.
    #[error(
        "the provider did not supply a sandbox for lease `{id}`: {fault}. {} and {left}",
        started(diagnostic)
    )]
    Provider {
        /// The lease.
        id: LeaseId,
        /// Why.
        fault: Box<Fault>,
        /// How far it had come, when the provider said so.
        diagnostic: Option<AcquisitionDiagnostic>,
        /// Whether something may be left behind.
        left: Left,
    },
    /// The provider's answer breaks a rule of the contract, or does not promise what was asked for.
    #[error("the provider's answer for lease `{id}` is refused: {why}; no work had started, and {left}")]
    Refused {
        /// The lease.
        id: LeaseId,
        /// Which rule.
        why: String,
        /// Whether something may be left behind.
        left: Left,
    },
    /// The provider did not answer in time. If its answer still comes, it is undone.
    #[error(
        "the provider did not answer within {budget:?} for lease `{id}`; no work had started, and what it \
         may still make is undone, now or by reconciling"
    )]
    Deadline {
        /// The lease.
        id: LeaseId,
        /// The time it had.
        budget: Duration,
    },
    /// A kept lease could not be taken up again, and is kept because of what it holds.
    #[error(
        "lease `{id}` could not be resumed: {why}; it is kept with the work in it. Type `leasehold lease \
         export {id} DIR` to bring the work back, or `leasehold lease destroy {id}` to give it up"
    )]
    Preserved {
        /// The lease.
        id: LeaseId,
        /// Why it could not be resumed.
        why: String,
    },
    /// The allocation no longer exists.
    #[error("the back end no longer knows the sandbox of lease `{id}`; acquire a new one")]
    Gone {
        /// The lease.
        id: LeaseId,
    },
    /// The lease was used for as long as it may be.
    #[error("lease `{id}` has been used for its whole lifetime of {lifetime:?}; acquire a new one")]
    LifetimeOver {
        /// The lease.
        id: LeaseId,
        /// How long it may be used in all.
        lifetime: Duration,
    },
    /// Somebody else works on it.
    #[error("lease `{id}` is worked on by process {pid}; wait for it, or end that process and reconcile")]
    Busy {
        /// The lease.
        id: LeaseId,
        /// The process.
        pid: u32,
    },
    /// What was asked for has been begun, and the provider did not prove that it was done.
    #[error("lease `{id}` is given up, but the provider did not prove its end: {why}; reconcile to end it")]
    Unconfirmed {
        /// The lease.
        id: LeaseId,
        /// What was missing.
        why: String,
    },
    /// A stop was asked for and is not proved. Nothing is deleted instead.
    #[error(
        "lease `{id}` is to be stopped with its files kept, and that is not proved yet: {why}; reconcile to try again"
    )]
    NotStopped {
        /// The lease.
        id: LeaseId,
        /// What was missing.
        why: String,
    },
}

impl LeaseError {
    /// A stable word for machines.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            LeaseError::Store(_) => "lease_store_failed",
            LeaseError::NotReady(_) | LeaseError::Unavailable { .. } => "environment_provider_unavailable",
            LeaseError::Provider { .. } | LeaseError::Refused { .. } => "setup_failed",
            LeaseError::Deadline { .. } => "lease_acquire_failed",
            LeaseError::Preserved { .. } | LeaseError::Gone { .. } => "lease_resume_failed",
            LeaseError::LifetimeOver { .. } => "lease_lifetime_over",
            LeaseError::Busy { .. } => "lease_busy",
            LeaseError::Unconfirmed { .. } => "lease_release_failed",
            LeaseError::NotStopped { .. } => "sandbox_stop_pending",
        }
    }
}

/// How often something was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tries(pub usize);

impl fmt::Display for Tries {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            1 => to.write_str("One try"),
            tries => write!(to, "{tries} tries"),
        }
    }
}

fn started(diagnostic: &Option<AcquisitionDiagnostic>) -> &'static str {
    match diagnostic {
        Some(found) if found.started => "The sandbox had started, but no work in it,",
        _ => "No work had started,",
    }
}

/// What a failed acquisition left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Left {
    /// Nothing.
    Nothing,
    /// Perhaps an allocation; the lease waits for reconciling.
    Perhaps {
        /// Why it could not be told or ended.
        why: String,
    },
}

impl fmt::Display for Left {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Left::Nothing => to.write_str("nothing is left behind"),
            Left::Perhaps { why } => write!(to, "something may be left ({why}); reconcile to end it"),
        }
    }
}
