//! Releasing: the provider is asked under the retention decided at acquisition and must prove the end.

use super::teardown::{Ended, Outcome};
use super::{LeaseError, Leases};
use crate::fault::Step;
use crate::store::Learned;
use crate::{Disposition, Filter, Goal, Lease, LeaseId, Policy, State};

/// A lease whose use has ended, proved by its provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Released {
    /// The lease as it is stored now: released, or retained.
    pub lease: Lease,
    /// What became of its allocation.
    pub disposition: Disposition,
}

/// How the use of a lease ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Releasing {
    /// Whether the run it was for has failed.
    pub failed: bool,
    /// Whether commands that still run in it are ended.
    pub cancel_active_work: bool,
}

/// The reason of a release that was not proved, as the contract words it: the run's own failure comes first.
const RUN_FAILED: &str = "adapter_or_run_failure";
const NOT_RELEASED: &str = "release_cleanup_failed";
const EXPIRED: &str = "lease_expired";

impl Leases {
    /// Ends the use of a lease, whoever acquired it.
    ///
    /// Once begun it goes on when the future is dropped, see [`Leases::idle`].
    ///
    /// # Errors
    /// [`LeaseError::Store`] when the lease is not active, and [`LeaseError::Unconfirmed`] when the provider
    /// cannot be called, failed, or its receipt does not fit; the lease then waits for
    /// [`Leases::reconcile`].
    pub async fn release(&self, id: &LeaseId, how: Releasing) -> Result<Released, LeaseError> {
        let (leases, id) = (self.clone(), id.clone());
        self.see_through("releasing a lease", async move { leases.end_use(id, how).await }).await
    }

    /// Ends the use of every lease of a run, one after another; a failure with one does not stop the rest.
    ///
    /// # Errors
    /// When the store cannot be read. What went wrong with a lease stands beside its name.
    pub async fn release_run(
        &self,
        tenant: &str,
        run: &str,
        how: Releasing,
    ) -> Result<Vec<(LeaseId, Result<Released, LeaseError>)>, LeaseError> {
        let of_run = Filter {
            states: vec![State::Active],
            run: Some(run.to_owned()),
            tenant: Some(tenant.to_owned()),
            ..Filter::default()
        };
        let mut all = Vec::new();
        for lease in self.list(of_run).await? {
            all.push((lease.id.clone(), self.release(&lease.id, how).await));
        }
        Ok(all)
    }

    async fn end_use(&self, id: LeaseId, how: Releasing) -> Result<Released, LeaseError> {
        let _work = self.inner.working.begin(&id);
        let lease = self.get(&id).await?;
        let (goal, why) = self.goal_of_release(&lease, how);
        if goal == Goal::Stop && lease.state == State::Active {
            let ended = self.stop_now(lease, why.unwrap_or(RUN_FAILED)).await?;
            return Ok(ended);
        }
        let mut begin = self.taking(&lease, State::Releasing, "its use has ended");
        if lease.state != State::Active {
            // Refused, naming both states.
            begin.from = State::Active;
        }
        begin.whose = crate::store::Whose::Anybodys;
        begin.learned = Learned { goal: Some(goal), why, due_ms: Some(self.now_ms()), ..Learned::default() };
        let lease = self.inner.store.change(Step::BeginRelease, begin).await?;
        let outcome = match self.provider(&lease).await {
            Ok(provider) if why == Some(EXPIRED) => self.call_destroy_once(&provider, &lease).await,
            Ok(provider) => self.call_release(&provider, &lease, goal, how.cancel_active_work).await,
            Err(unready) => Ended::not(unready.to_string()),
        };
        let Ended { outcome, bill } = outcome;
        match outcome {
            Outcome::Proved(state, disposition) => {
                let mut change = self.mine(&lease, state, disposition.word());
                change.learned = Learned { disposition: Some(disposition), bill, ..Learned::default() };
                let lease = self.inner.store.change(Step::EndRelease, change).await?;
                Ok(Released { lease, disposition })
            }
            Outcome::NotYet { why: missing, .. } | Outcome::Wait { why: missing, .. } => {
                let mut change = self.mine(&lease, State::PendingCleanup, format!("not released: {missing}"));
                let word = if how.failed { RUN_FAILED } else { NOT_RELEASED };
                let error = Some(missing.clone());
                let due_ms = Some(self.now_ms());
                change.learned = Learned { error, why: Some(word), bill, due_ms, ..Learned::default() };
                self.inner.store.change(Step::LeaveRelease, change).await?;
                Err(LeaseError::Unconfirmed { id: lease.id, why: missing })
            }
            Outcome::Nothing(why) => Err(LeaseError::Unconfirmed { id: lease.id, why }),
        }
    }

    /// What becomes of the allocation: decided by the policy, unless the back end has ended it already or the
    /// run's failure is to be looked at.
    fn goal_of_release(&self, lease: &Lease, how: Releasing) -> (Goal, Option<&'static str>) {
        let end = lease.allocation.as_ref().and_then(|it| it.expires_at_ms);
        match lease.policy {
            Policy::KeepOnFailure if how.failed => (Goal::Stop, Some(RUN_FAILED)),
            Policy::Reuse if end.is_some_and(|end| end <= self.now_ms()) => (Goal::Delete, Some(EXPIRED)),
            Policy::Reuse => (Goal::Keep, None),
            _ => (Goal::Delete, how.failed.then_some(RUN_FAILED)),
        }
    }
}
