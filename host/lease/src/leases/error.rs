//! Why a lease was not acquired or not released.

use crate::{AcquisitionDiagnostic, Fault, LeaseId, StoreError};
use std::fmt;
use std::time::Duration;

/// What went wrong with a lease.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LeaseError {
    /// The store failed. What was written before stays, and reconciling finishes it.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The provider did not supply an allocation.
    #[error("the provider did not supply a sandbox for lease `{id}`: {fault}; {left}")]
    Provider {
        /// The lease.
        id: LeaseId,
        /// Why.
        fault: Fault,
        /// How far it had come, when the provider said so.
        diagnostic: Option<AcquisitionDiagnostic>,
        /// Whether something may be left behind.
        left: Left,
    },
    /// The provider did not answer in time. If its answer still comes, it is undone.
    #[error(
        "the provider did not answer within {budget:?} for lease `{id}`; what it may still make is \
         undone, now or by reconciling"
    )]
    Deadline {
        /// The lease.
        id: LeaseId,
        /// The time it had.
        budget: Duration,
    },
    /// The use has ended, and the provider did not prove what became of the allocation.
    #[error("lease `{id}` is given up, but the provider did not prove its end: {why}; reconcile to end it")]
    Unconfirmed {
        /// The lease.
        id: LeaseId,
        /// What was missing.
        why: String,
    },
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
