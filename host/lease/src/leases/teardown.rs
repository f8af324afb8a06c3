//! Ending an allocation nobody uses: find it, store its id, end it, check the receipt.

use super::{Leases, call};
use crate::fault::Step;
use crate::receipt::Asked;
use crate::{
    CleanupRecord, Context, DestroyTarget, Disposition, Finding, Lease, Provider, ProviderLease, Retention,
    State, StoreError,
};
use std::sync::Arc;

/// A provider may answer the first destroy with the id it has found, to be stored, and deletes at the
/// second. One that needs more has already had its turn, and the next attempt goes on.
const PHASES: usize = 2;

/// How a teardown came out.
enum Outcome {
    /// It is over.
    Settled(State, Option<Disposition>, String),
    /// It is not, and why.
    PutOff(String),
}

impl Leases {
    /// Ends what a lease that waits for cleanup and is this owner's has left. Answers the lease as stored.
    pub(super) async fn tear_down(
        &self,
        provider: &Arc<dyn Provider>,
        lease: Lease,
    ) -> Result<Lease, StoreError> {
        let outcome = match self.end(provider, lease.clone()).await {
            // An allocation that another lease holds is not this one's to end.
            Err(held @ StoreError::HeldElsewhere { .. }) => {
                Outcome::Settled(State::Failed, None, held.to_string())
            }
            other => other?,
        };
        match outcome {
            Outcome::Settled(state, disposition, reason) => {
                let mut change = self.mine(&lease, state, reason);
                change.learned.disposition = disposition;
                self.inner.store.change(Step::Settle, change).await
            }
            Outcome::PutOff(why) => {
                let mut change = self.mine(&lease, State::PendingCleanup, format!("not ended: {why}"));
                change.learned.error = Some(why);
                self.inner.store.change(Step::PutOff, change).await
            }
        }
    }

    async fn end(&self, provider: &Arc<dyn Provider>, lease: Lease) -> Result<Outcome, StoreError> {
        let lease = match &lease.allocation {
            Some(_) => lease,
            None => match self.look(provider, &lease).await {
                Ok(Some(found)) => self.observe(&lease, Some(found), None).await?,
                Ok(None) => {
                    let reason = "nothing was found under its creation name".to_owned();
                    return Ok(Outcome::Settled(State::Failed, None, reason));
                }
                Err(why) => return Ok(Outcome::PutOff(why)),
            },
        };
        // What was acquired to be kept is never deleted to get it out of the way.
        if lease.retention == Retention::Reuse && lease.acquired_ms.is_some() {
            return Ok(outcome(self.call_release(provider, &lease, true).await));
        }
        self.destroy(provider, lease).await
    }

    /// Looks for an allocation by its creation name: its id, or none when there is none.
    async fn look(
        &self,
        provider: &Arc<dyn Provider>,
        lease: &Lease,
    ) -> Result<Option<ProviderLease>, String> {
        let budget = self.inner.budgets.find;
        let (asked, context) = (provider.clone(), Context::of(lease, budget));
        let name = lease.id.as_str().to_owned();
        let answer = async move { asked.find(context, name).await };
        let finding =
            call::timed(Step::CallFind, budget, answer).await?.map_err(|fault| fault.to_string())?;
        let bare = |id| ProviderLease { id, metadata: None, expires_at_ms: None };
        Ok(match finding {
            Finding::Started(allocation) => Some(allocation),
            Finding::Preparing(id) | Finding::Unusable(id) => Some(bare(id)),
            Finding::Absent => lease.cleanup.as_ref().and_then(|record| record.observed_id.clone()).map(bare),
        })
    }

    /// Stores what was learned before anything is deleted.
    async fn observe(
        &self,
        lease: &Lease,
        allocation: Option<ProviderLease>,
        cleanup: Option<CleanupRecord>,
    ) -> Result<Lease, StoreError> {
        let mut change = self.mine(lease, State::PendingCleanup, "its allocation was seen");
        change.owner = Some(self.inner.me.clone());
        change.learned.allocation = allocation;
        change.learned.cleanup = cleanup;
        self.inner.store.change(Step::Observe, change).await
    }

    async fn destroy(&self, provider: &Arc<dyn Provider>, mut lease: Lease) -> Result<Outcome, StoreError> {
        let budget = self.inner.budgets.destroy;
        for _ in 0..PHASES {
            let Some((id, target)) = target(&lease) else { break };
            let (asked, context) = (provider.clone(), Context::of(&lease, budget));
            let answer = async move { asked.destroy(context, target).await };
            let failure = match call::timed(Step::CallDestroy, budget, answer).await {
                Ok(Ok(receipt)) => return Ok(outcome(Asked::Destroy.check(&id, &receipt))),
                Ok(Err(failure)) => failure,
                Err(why) => return Ok(Outcome::PutOff(why)),
            };
            match failure.cleanup {
                Some(record) if record.observed_id.as_ref().is_some_and(|seen| *seen != id) => {
                    let why = format!("the provider went on to another allocation than `{id}`");
                    return Ok(Outcome::PutOff(why));
                }
                Some(record) if lease.cleanup.as_ref() != Some(&*record) => {
                    lease = self.observe(&lease, None, Some(*record)).await?;
                }
                _ => return Ok(Outcome::PutOff(failure.fault.to_string())),
            }
        }
        Ok(Outcome::PutOff("the provider asked for another turn to delete it".into()))
    }
}

/// What to destroy and its id: by the record of a failed acquisition when there is one, as it is what the
/// provider itself wanted back.
fn target(lease: &Lease) -> Option<(String, DestroyTarget)> {
    let allocation = lease.allocation.clone()?;
    let id = allocation.id.clone();
    let target = match &lease.cleanup {
        Some(record) => {
            DestroyTarget::Abandoned(CleanupRecord { observed_id: Some(id.clone()), ..record.clone() })
        }
        None => DestroyTarget::Lease(allocation),
    };
    Some((id, target))
}

fn outcome(ended: Result<Disposition, String>) -> Outcome {
    match ended {
        Ok(disposition) => Outcome::Settled(State::Released, Some(disposition), disposition.word().into()),
        Err(why) => Outcome::PutOff(why),
    }
}
