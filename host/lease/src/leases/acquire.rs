//! Acquiring: the lease is written before the call and its outcome after it, whoever still waits for it.

use super::call::{self, BROKE_OFF};
use super::reuse::{Replaced, Reused};
use super::{LeaseError, Leases, Left, Tries, Wanted};
use crate::fault::Step;
use crate::store::{Durability, Learned};
use crate::{
    AcquireFailure, Context, Fault, Lease, LeaseId, Policy, Provider, ProviderLease, Reply, State,
    StoreError, TransientCategory,
};
use std::sync::Arc;
use tokio::sync::oneshot;

/// A lease that was acquired, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acquired {
    /// The lease.
    pub lease: Lease,
    /// How it came about.
    pub how: How,
}

/// How a lease came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Its allocation was created for it.
    Created,
    /// A kept allocation was taken up again, with what it holds.
    Resumed,
    /// Its allocation was created in place of a kept one that could not be taken up.
    Replacement(Replaced),
}

/// An active lease on its way to the caller. One that is dropped on the way is undone.
pub(super) struct Handover {
    acquired: Acquired,
    taken: oneshot::Sender<()>,
}

pub(super) type Waiting = oneshot::Sender<Result<Handover, LeaseError>>;
pub(super) type Answered = Reply<Result<ProviderLease, AcquireFailure>>;

/// How one try came out.
enum Tried {
    /// The caller was told, or nobody waits.
    Over,
    /// The provider could not be had; it may be tried again.
    Unavailable { id: LeaseId, category: TransientCategory, fault: Fault, left: Left },
}

impl Leases {
    /// Acquires a lease: a kept one is taken up where the caller may use it again, else a new one is made.
    /// A provider that cannot be had is tried again after the pauses of [`super::Times`].
    ///
    /// Dropping the future undoes the acquisition; so does the end of its time, however late the provider
    /// answers. Both happen in the background, see [`Leases::idle`].
    ///
    /// # Errors
    /// [`LeaseError`] when there is no allocation to be had, or it could not be written down; nothing is
    /// leased then.
    pub async fn acquire(&self, wanted: Wanted) -> Result<Acquired, LeaseError> {
        let provider = self.inner.providers.resolve(&wanted.pins).await?;
        let (waiting, handed) = oneshot::channel();
        let leases = self.clone();
        let wanted = wanted.decided();
        self.inner.tasks.spawn(async move { leases.keep(provider, wanted, waiting).await });
        match handed.await {
            Ok(Ok(Handover { acquired, taken })) => {
                taken.send(()).ok();
                Ok(acquired)
            }
            Ok(Err(error)) => Err(error),
            Err(_) => Err(StoreError::Ended { doing: "acquiring a lease" }.into()),
        }
    }

    /// Sees an acquisition through to its end.
    async fn keep(self, provider: Arc<dyn Provider>, wanted: Wanted, waiting: Waiting) {
        let mut waiting = Some(waiting);
        let how = match self.reuse(&provider, &wanted, &mut waiting).await {
            Reused::No => How::Created,
            Reused::Replaced(why) => How::Replacement(why),
            Reused::Over => return,
        };
        let mut pauses = self.inner.times.bootstrap.iter();
        for tries in 1.. {
            let tried = self.fresh(&provider, &wanted, how, &mut waiting).await;
            let Tried::Unavailable { id, category, fault, left } = tried else { return };
            let Some(caller) = waiting.as_mut() else { return };
            let Some(pause) = pauses.next() else {
                let (tries, fault) = (Tries(tries), Box::new(fault));
                return give(&mut waiting, Err(LeaseError::Unavailable { id, category, fault, tries, left }));
            };
            tracing::info!(%fault, ?pause, "the provider is not available; a sandbox is asked for again");
            tokio::select! {
                () = self.clock().sleep(*pause) => {}
                () = caller.closed() => return,
            }
        }
    }

    /// One new lease.
    async fn fresh(
        &self,
        provider: &Arc<dyn Provider>,
        wanted: &Wanted,
        how: How,
        waiting: &mut Option<Waiting>,
    ) -> Tried {
        let (lease, request) = match self.intend(wanted, how).await {
            Ok(intended) => intended,
            Err(error) => {
                give(waiting, Err(error.into()));
                return Tried::Over;
            }
        };
        let (id, budget) = (lease.id.clone(), wanted.acquire_time());
        let work = self.inner.working.begin(&id);
        let (asked, context) = (provider.clone(), Context::of(&lease, budget));
        let mut call = call::start(Step::CallAcquire, async move { asked.acquire(context, request).await });
        let Some(caller) = waiting.as_mut() else { return Tried::Over };
        let answered = tokio::select! {
            biased;
            answered = &mut call => Some(unbroken(answered)),
            () = self.clock().sleep(budget) => {
                give(waiting, Err(LeaseError::Deadline { id, budget }));
                self.undo_late(provider, lease, call, "the provider did not answer in time").await;
                return Tried::Over;
            }
            () = caller.closed() => None,
        };
        match answered {
            Some(Reply { answer: Ok(allocation), bill }) => {
                if let Err(why) = self.acceptable(wanted, &allocation) {
                    let learned = Learned { allocation: storable(allocation), bill, ..Learned::default() };
                    let left = self.undo(provider, lease, learned, false, &format!("refused: {why}")).await;
                    give(waiting, Err(LeaseError::Refused { id, why, left }));
                    return Tried::Over;
                }
                // From here on the caller may release it at any moment.
                drop(work);
                self.hand_over(provider, lease, allocation, bill, how, waiting).await;
                Tried::Over
            }
            Some(Reply { answer: Err(failure), bill }) => {
                self.failed(provider, lease, failure, bill, waiting).await
            }
            None => {
                self.undo_late(provider, lease, call, "nobody waited for it any more").await;
                Tried::Over
            }
        }
    }

    async fn intend(&self, wanted: &Wanted, how: How) -> Result<(Lease, crate::AcquireRequest), StoreError> {
        let reason = match how {
            How::Replacement(why) => format!("asked for, in place of a kept one: {}", why.word()),
            _ => "asked for".into(),
        };
        let (me, settle) = (self.inner.me.clone(), self.inner.times.settle);
        let (intent, request) = wanted.split(LeaseId::random()?, me, settle, reason);
        Ok((self.inner.store.intend(intent).await?, request))
    }

    /// Whether an answer keeps the contract and promises what was asked for.
    fn acceptable(&self, wanted: &Wanted, allocation: &ProviderLease) -> Result<(), String> {
        allocation.check()?;
        match (allocation.expires_at_ms, wanted.wishes.requested_expires_at_ms) {
            (Some(end), _) if end <= self.now_ms() => Err(
                "the back end ends the sandbox at a time that has passed; check its clock and this host's"
                    .into(),
            ),
            (None, Some(_)) => Err("an end was asked for, and the back end does not promise one".into()),
            _ => Ok(()),
        }
    }

    /// What a failed acquisition means: undone, told, and perhaps tried again.
    async fn failed(
        &self,
        provider: &Arc<dyn Provider>,
        lease: Lease,
        failure: AcquireFailure,
        bill: Option<String>,
        waiting: &mut Option<Waiting>,
    ) -> Tried {
        let AcquireFailure { fault, diagnostic, cleanup, answered } = failure;
        let id = lease.id.clone();
        // Nothing can be left only where the provider itself said so, by leaving out the record.
        let nothing_made = answered && cleanup.is_none();
        let record = cleanup.map(|record| *record).filter(|record| match record.check(id.as_str()) {
            Ok(()) => true,
            Err(why) => {
                tracing::warn!(lease = %id, why, "a cleanup record is refused");
                false
            }
        });
        let learned = Learned { cleanup: record, bill, ..Learned::default() };
        let left = self.undo(provider, lease, learned, nothing_made, &format!("not acquired: {fault}")).await;
        let category = match (&fault, &diagnostic) {
            (_, Some(found)) if found.is_deadline() => Some(TransientCategory::Timeout),
            (Fault::Transient { category, .. }, None) => Some(*category),
            (Fault::Transient { category, .. }, Some(found)) if !found.started => Some(*category),
            _ => None,
        };
        match category {
            Some(category) => Tried::Unavailable { id, category, fault, left },
            None => {
                let fault = Box::new(fault);
                give(waiting, Err(LeaseError::Provider { id, fault, diagnostic, left }));
                Tried::Over
            }
        }
    }

    /// Writes the allocation and gives the lease to its caller, or undoes it.
    pub(super) async fn hand_over(
        &self,
        provider: &Arc<dyn Provider>,
        lease: Lease,
        allocation: ProviderLease,
        bill: Option<String>,
        how: How,
        waiting: &mut Option<Waiting>,
    ) {
        let (step, reason) = match how {
            How::Resumed => (Step::EndResume, "resumed"),
            _ => (Step::Activate, "acquired"),
        };
        let mut change = self.mine(&lease, State::Active, reason);
        change.owner = (!lease.held).then(|| self.inner.me.clone());
        change.learned = Learned { allocation: Some(allocation.clone()), bill, ..Learned::default() };
        // Found again by its name where it ends with its run; what is kept must be known as such.
        let keeps = lease.policy == Policy::Reuse || lease.preserve;
        let durability = if keeps { Durability::Disk } else { Durability::Process };
        let active = match self.inner.store.change_with(step, durability, change).await {
            Ok(active) => active,
            Err(error) => {
                let _work = self.inner.working.begin(&lease.id);
                let why = format!("could not be written down: {error}");
                match how {
                    How::Resumed => self.leave(provider, lease, &why).await,
                    _ => {
                        let learned = Learned { allocation: Some(allocation), ..Learned::default() };
                        self.undo(provider, lease, learned, false, &why).await;
                    }
                }
                return give(waiting, Err(error.into()));
            }
        };
        let (taken, received) = oneshot::channel();
        give(waiting, Ok(Handover { acquired: Acquired { lease: active.clone(), how }, taken }));
        if received.await.is_err() {
            let _work = self.inner.working.begin(&active.id);
            let why = "nobody waited for it any more";
            match how {
                How::Resumed => self.leave(provider, active, why).await,
                _ => {
                    self.undo(provider, active, Learned::default(), false, why).await;
                }
            }
        }
    }
}

/// Of an answer that is to be undone what can be stored and sent back: all of it, its id alone, or nothing.
pub(super) fn storable(allocation: ProviderLease) -> Option<ProviderLease> {
    if allocation.check().is_ok() {
        return Some(allocation);
    }
    let bare = ProviderLease { metadata: None, ..allocation };
    bare.check().is_ok().then_some(bare)
}

/// A caller that is no longer there needs no answer; one that was given a lease is undone by its own way.
pub(super) fn give(waiting: &mut Option<Waiting>, answer: Result<Handover, LeaseError>) {
    if let Some(waiting) = waiting.take() {
        waiting.send(answer).ok();
    }
}

pub(super) fn unbroken(answered: Result<Answered, tokio::task::JoinError>) -> Answered {
    let fault = Fault::Failed { code: "call_broke_off".into(), message: BROKE_OFF.into() };
    let broken = AcquireFailure { fault, diagnostic: None, cleanup: None, answered: false };
    answered.unwrap_or_else(|_| Err(broken).into())
}
