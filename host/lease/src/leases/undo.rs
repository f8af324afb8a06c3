//! Undoing an acquisition: what it made, if it made something, is ended, even where the store fails.

use super::acquire::{Answered, storable, unbroken};
use super::{Leases, Left, call, times};
use crate::fault::Step;
use crate::receipt::Asked;
use crate::spool::Spooled;
use crate::store::Learned;
use crate::{Context, DestroyTarget, Goal, Lease, Provider, State, StoreError};
use leasehold_contract::Method;
use std::sync::Arc;
use tokio::task::JoinHandle;

impl Leases {
    /// Waits a while for an answer nobody waits for, and undoes it.
    pub(super) async fn undo_late(
        &self,
        provider: &Arc<dyn Provider>,
        lease: Lease,
        mut call: JoinHandle<Answered>,
        reason: &str,
    ) {
        let answered = tokio::select! {
            biased;
            answered = &mut call => Some(unbroken(answered)),
            () = self.clock().sleep(self.inner.times.late_answer) => {
                // Looking for what was made is of use only when the call no longer makes anything.
                call.abort();
                None
            }
        };
        let mut nothing_made = false;
        let learned = match answered {
            Some(answered) => {
                let bill = answered.bill;
                match answered.answer {
                    Ok(allocation) => {
                        Learned { allocation: storable(allocation), bill, ..Learned::default() }
                    }
                    Err(failure) => {
                        nothing_made = failure.answered && failure.cleanup.is_none();
                        let record = failure.cleanup.map(|record| *record);
                        let cleanup = record.filter(|record| record.check(lease.id.as_str()).is_ok());
                        Learned { cleanup, bill, ..Learned::default() }
                    }
                }
            }
            None => Learned::default(),
        };
        self.undo(provider, lease, learned, nothing_made, reason).await;
    }

    /// Ends what an acquisition made, if it made something. Its id is stored before anything is deleted.
    /// `nothing_made` says that the provider itself answered that nothing is left.
    pub(super) async fn undo(
        &self,
        provider: &Arc<dyn Provider>,
        lease: Lease,
        learned: Learned,
        nothing_made: bool,
        reason: &str,
    ) -> Left {
        let mut change = self.mine(&lease, State::PendingCleanup, reason);
        if lease.held && lease.state == State::Active {
            change.whose = crate::store::Whose::AsSeen(lease.version);
        }
        change.owner = Some(self.inner.me.clone());
        change.learned = Learned {
            error: Some(reason.to_owned()),
            goal: Some(Goal::Delete),
            why: Some("acquisition_undone"),
            settled: nothing_made,
            due_ms: Some(self.now_ms()),
            ..learned.clone()
        };
        let ended = match self.inner.store.change(Step::Abandon, change).await {
            Ok(pending) => self.tear_down(provider, pending).await,
            Err(held @ StoreError::HeldElsewhere { .. }) => self.reject(&lease, &held).await,
            Err(
                error
                @ (StoreError::Changed { .. } | StoreError::Illegal { .. } | StoreError::Missing { .. }),
            ) => Err(error),
            Err(error) => {
                self.undo_without_store(provider, &lease, learned, reason).await;
                Err(error)
            }
        };
        match ended {
            Ok(ended) if ended.state.is_final() => Left::Nothing,
            Ok(ended) => Left::Perhaps { why: ended.last_error.unwrap_or_default() },
            Err(error) => {
                tracing::warn!(lease = %lease.id, %error, "an acquisition could not be undone");
                Left::Perhaps { why: error.to_string() }
            }
        }
    }

    /// Puts aside what the store does not take, and ends the allocation all the same. What is put aside is
    /// taken in by the next reconcile.
    async fn undo_without_store(
        &self,
        provider: &Arc<dyn Provider>,
        lease: &Lease,
        learned: Learned,
        reason: &str,
    ) {
        let Learned { allocation, cleanup, .. } = learned;
        let at_ms = self.now_ms();
        let mut spooled = Spooled {
            lease: lease.clone(),
            allocation: allocation.clone(),
            cleanup,
            disposition: None,
            reason: reason.to_owned(),
            at_ms,
        };
        self.inner.spool.put(&spooled).await;
        let Some(allocation) = allocation.filter(|_| provider.offers().destroy) else { return };
        let id = allocation.id.clone();
        let time = times::of_call(Method::DestroyLease, &lease.config, None);
        let (asked, context) = (provider.clone(), Context::of(lease, time));
        let answer = async move { asked.destroy(context, DestroyTarget::Lease(allocation)).await };
        let reply = call::timed(self.clock(), Step::CallDestroy, time, answer).await;
        let proof = reply.ok().and_then(|reply| reply.answer.ok());
        if let Some(Ok(disposition)) = proof.map(|receipt| Asked::Destroy.check(&id, &receipt)) {
            spooled.disposition = Some(disposition);
            self.inner.spool.put(&spooled).await;
        }
    }

    /// Gives a lease up whose allocation is another's: there is nothing of it to end.
    async fn reject(&self, lease: &Lease, held: &StoreError) -> Result<Lease, StoreError> {
        let mut change = self.mine(lease, State::Failed, held.to_string());
        change.learned.error = Some(held.to_string());
        self.inner.store.change(Step::Reject, change).await
    }
}
