//! Acquiring: the lease is written before the call and its outcome after it, whoever still waits for it.

use super::call::{self, BROKE_OFF};
use super::{LeaseError, Leases, Left, Wanted};
use crate::fault::Step;
use crate::store::Learned;
use crate::{AcquireFailure, Context, Fault, Lease, LeaseId, Provider, ProviderLease, State, StoreError};
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// An active lease on its way to the caller. One that is dropped on the way is undone.
struct Handover {
    lease: Lease,
    taken: oneshot::Sender<()>,
}

type Waiting = oneshot::Sender<Result<Handover, LeaseError>>;
type Answered = Result<ProviderLease, AcquireFailure>;

impl Leases {
    /// Acquires a lease.
    ///
    /// Dropping the future undoes the acquisition; so does the end of its time, however late the provider
    /// answers. Both happen in the background, see [`Leases::idle`].
    ///
    /// # Errors
    /// [`LeaseError::Provider`] and [`LeaseError::Deadline`] when there is no allocation to be had,
    /// [`LeaseError::Store`] when it could not be written down; nothing is leased then.
    pub async fn acquire(&self, provider: Arc<dyn Provider>, wanted: Wanted) -> Result<Lease, LeaseError> {
        let (waiting, handed) = oneshot::channel();
        let leases = self.clone();
        self.inner.tasks.spawn(async move { leases.keep(provider, wanted, waiting).await });
        match handed.await {
            Ok(Ok(Handover { lease, taken })) => {
                taken.send(()).ok();
                Ok(lease)
            }
            Ok(Err(error)) => Err(error),
            Err(_) => Err(StoreError::Ended { doing: "acquiring a lease" }.into()),
        }
    }

    /// Sees an acquisition through to its end.
    async fn keep(self, provider: Arc<dyn Provider>, wanted: Wanted, mut waiting: Waiting) {
        let id = match LeaseId::random() {
            Ok(id) => id,
            Err(error) => return give(waiting, Err(error.into())),
        };
        let work = self.inner.working.begin(&id);
        let budget = wanted.budget;
        let (intent, request) = wanted.split(id.clone(), self.inner.me.clone());
        let lease = match self.inner.store.intend(intent).await {
            Ok(lease) => lease,
            Err(error) => return give(waiting, Err(error.into())),
        };
        let (asked, context) = (provider.clone(), Context::of(&lease, budget));
        let mut call = call::start(Step::CallAcquire, async move { asked.acquire(context, request).await });
        let answered = tokio::select! {
            biased;
            answered = &mut call => Some(unbroken(answered)),
            () = sleep(budget) => {
                give(waiting, Err(LeaseError::Deadline { id, budget }));
                return self.undo_late(&provider, lease, call, "the provider did not answer in time").await;
            }
            () = waiting.closed() => None,
        };
        match answered {
            Some(Ok(allocation)) => {
                // From here on the caller may release it at any moment.
                drop(work);
                self.hand_over(&provider, lease, allocation, waiting).await;
            }
            Some(Err(AcquireFailure { fault, diagnostic, cleanup })) => {
                let learned = Learned { cleanup: cleanup.map(|record| *record), ..Learned::default() };
                let left = self.undo(&provider, lease, learned, &format!("not acquired: {fault}")).await;
                give(waiting, Err(LeaseError::Provider { id, fault, diagnostic, left }));
            }
            None => self.undo_late(&provider, lease, call, "nobody waited for it any more").await,
        }
    }

    /// Writes the allocation and gives the lease to its caller, or undoes it.
    async fn hand_over(
        &self,
        provider: &Arc<dyn Provider>,
        lease: Lease,
        allocation: ProviderLease,
        waiting: Waiting,
    ) {
        let mut change = self.mine(&lease, State::Active, "acquired");
        change.owner = Some(self.inner.me.clone());
        change.learned.allocation = Some(allocation.clone());
        let active = match self.inner.store.change(Step::Activate, change).await {
            Ok(active) => active,
            Err(error) => {
                let learned = Learned { allocation: Some(allocation), ..Learned::default() };
                let _work = self.inner.working.begin(&lease.id);
                self.undo(provider, lease, learned, &format!("could not be written down: {error}")).await;
                return give(waiting, Err(error.into()));
            }
        };
        let (taken, received) = oneshot::channel();
        give(waiting, Ok(Handover { lease: active.clone(), taken }));
        if received.await.is_err() {
            let _work = self.inner.working.begin(&active.id);
            self.undo(provider, active, Learned::default(), "nobody waited for it any more").await;
        }
    }

    /// Waits a while for an answer nobody waits for, and undoes it.
    async fn undo_late(
        &self,
        provider: &Arc<dyn Provider>,
        lease: Lease,
        mut call: JoinHandle<Answered>,
        reason: &str,
    ) {
        let budgets = &self.inner.budgets;
        let mut answered = timeout(budgets.late_answer, &mut call).await;
        if answered.is_err() {
            // Looking for what was made is of use only when the call no longer makes anything.
            call.abort();
            answered = timeout(budgets.find, &mut call).await;
        }
        let learned = match answered.map(unbroken) {
            Ok(Ok(allocation)) => Learned { allocation: Some(allocation), ..Learned::default() },
            Ok(Err(failure)) => {
                Learned { cleanup: failure.cleanup.map(|record| *record), ..Learned::default() }
            }
            Err(_) => Learned::default(),
        };
        self.undo(provider, lease, learned, reason).await;
    }

    /// Ends what an acquisition made, if it made something. Its id is stored before anything is deleted.
    async fn undo(&self, provider: &Arc<dyn Provider>, lease: Lease, learned: Learned, reason: &str) -> Left {
        let mut change = self.mine(&lease, State::PendingCleanup, reason);
        change.owner = Some(self.inner.me.clone());
        change.learned = Learned { error: Some(reason.to_owned()), ..learned };
        let ended = match self.inner.store.change(Step::Abandon, change).await {
            Ok(pending) => self.tear_down(provider, pending).await,
            Err(held @ StoreError::HeldElsewhere { .. }) => self.reject(&lease, &held).await,
            Err(error) => Err(error),
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

    /// Gives a lease up whose allocation is another's: there is nothing of it to end.
    async fn reject(&self, lease: &Lease, held: &StoreError) -> Result<Lease, StoreError> {
        let mut change = self.mine(lease, State::Failed, held.to_string());
        change.learned.error = Some(held.to_string());
        self.inner.store.change(Step::Reject, change).await
    }
}

/// A caller that is no longer there needs no answer; one that was given a lease is undone by its own way.
fn give(waiting: Waiting, answer: Result<Handover, LeaseError>) {
    waiting.send(answer).ok();
}

fn unbroken(answered: Result<Answered, tokio::task::JoinError>) -> Answered {
    let fault = || Fault::Failed { code: "call_broke_off".into(), message: BROKE_OFF.into() };
    answered.unwrap_or_else(|_| Err(AcquireFailure { fault: fault(), diagnostic: None, cleanup: None }))
}
