//! What stands in the way of deleting an environment.

use super::Leases;
use crate::{Filter, LeaseId, Policy, State, StoreError};
use std::fmt;

/// Why an environment cannot be deleted now.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Blocker {
    /// Leases whose end is not proved yet; without the environment they could not be ended as it was.
    PendingCleanup(Vec<LeaseId>),
    /// Leases that are kept or used for later runs, or hold work.
    Kept(Vec<LeaseId>),
}

impl Blocker {
    /// A stable word for machines.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Blocker::PendingCleanup(_) => "pending_sandbox_cleanup",
            Blocker::Kept(_) => "reusable_sandbox_lease",
        }
    }
}

impl fmt::Display for Blocker {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (leases, what, next) = match self {
            Blocker::PendingCleanup(leases) => {
                (leases, "are not proved to have ended", "type `leasehold reconcile`")
            }
            Blocker::Kept(leases) => (leases, "are kept", "type `leasehold lease destroy ID` for each"),
        };
        let names = leases.iter().map(LeaseId::as_str).collect::<Vec<_>>().join(", ");
        write!(to, "leases {names} of it {what}; {next}")
    }
}

impl Leases {
    /// What stands in the way of deleting an environment: nothing, or one entry for each reason. Leases that
    /// end with a run which is under way do not.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn blockers(&self, environment: &str) -> Result<Vec<Blocker>, StoreError> {
        let environment = Some(environment.to_owned());
        let leases = self.list(Filter { environment, ..Filter::default() }).await?;
        let (mut pending, mut kept) = (Vec::new(), Vec::new());
        for lease in leases {
            let reusable = lease.policy == Policy::Reuse;
            match lease.state {
                State::PendingCleanup => pending.push(lease.id),
                State::Retained => kept.push(lease.id),
                State::Active | State::Resuming | State::Releasing if reusable || lease.held => {
                    kept.push(lease.id)
                }
                _ => {}
            }
        }
        let mut blockers = Vec::new();
        if !pending.is_empty() {
            blockers.push(Blocker::PendingCleanup(pending));
        }
        if !kept.is_empty() {
            blockers.push(Blocker::Kept(kept));
        }
        Ok(blockers)
    }
}
