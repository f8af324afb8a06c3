//! Bringing an allocation nobody uses to its goal: find it, store its id, end or keep it, check the receipt.

use super::{Leases, call, times};
use crate::fault::Step;
use crate::receipt::Asked;
use crate::store::{Attempts, Learned};
use crate::{
    AcquireRequest, CleanupRecord, Context, DestroyTarget, Disposition, Finding, Goal, Lease, Provider,
    ProviderLease, ReleaseRequest, Reply, Retention, State, StopReason, StoreError,
};
use leasehold_contract::Method;
use std::sync::Arc;

/// A provider may answer the first destroy with the id it has found, to be stored, and deletes at the
/// second. One that needs more has already had its turn, and the next attempt goes on.
const PHASES: usize = 2;

/// How an attempt came out, and what its last call used.
pub(super) struct Ended {
    pub(super) outcome: Outcome,
    pub(super) bill: Option<String>,
}

pub(super) enum Outcome {
    /// The receipt fits: the state that follows, and what became of the allocation.
    Proved(State, Disposition),
    /// There is nothing to end, and why that is certain.
    Nothing(String),
    /// It is not done, and why.
    NotYet { why: String, stop: Option<StopReason> },
    /// Nothing can be told before this time, in milliseconds since the Unix epoch.
    Wait { until_ms: u64, why: String },
}

impl Ended {
    pub(super) fn not(why: impl Into<String>) -> Ended {
        Outcome::NotYet { why: why.into(), stop: None }.into()
    }
}

impl From<Outcome> for Ended {
    fn from(outcome: Outcome) -> Ended {
        Ended { outcome, bill: None }
    }
}

impl Leases {
    /// Works towards the goal of a lease that waits for cleanup and is this owner's. Answers the lease as
    /// stored.
    pub(super) async fn tear_down(
        &self,
        provider: &Arc<dyn Provider>,
        lease: Lease,
    ) -> Result<Lease, StoreError> {
        let Ended { outcome, bill } = match self.attempt(provider, lease.clone()).await {
            // An allocation that another lease holds is not this one's to end.
            Err(held @ StoreError::HeldElsewhere { .. }) => Outcome::Nothing(held.to_string()).into(),
            other => other?,
        };
        let (step, mut change) = match outcome {
            Outcome::Proved(state, disposition) => {
                let mut change = self.mine(&lease, state, disposition.word());
                change.learned.disposition = Some(disposition);
                change.learned.attempts = if state.is_final() { Attempts::Stay } else { Attempts::Anew };
                change.learned.escalated = Some(false);
                (Step::Settle, change)
            }
            Outcome::Nothing(reason) => (Step::Settle, self.mine(&lease, State::Failed, reason)),
            Outcome::NotYet { why, stop } => {
                let mut change = self.mine(&lease, State::PendingCleanup, format!("not done: {why}"));
                let terminal = stop.is_some_and(StopReason::is_terminal);
                let times = &self.inner.times;
                let pause = if terminal { times.slowest } else { times.pause(lease.attempts) };
                change.learned = Learned {
                    error: Some(why),
                    due_ms: Some(self.now_ms().saturating_add(crate::store::millis(pause))),
                    not_stopped: stop,
                    escalated: terminal.then_some(true),
                    ..Learned::default()
                };
                (Step::PutOff, change)
            }
            Outcome::Wait { until_ms, why } => {
                let mut change = self.mine(&lease, State::PendingCleanup, format!("waits: {why}"));
                let (now, attempts) = (self.now_ms(), Attempts::GiveBack);
                let soon = now.saturating_add(crate::store::millis(self.inner.times.backoff));
                let due_ms = Some(soon.min(until_ms.max(now)));
                change.learned = Learned { error: Some(why), due_ms, attempts, ..Learned::default() };
                (Step::PutOff, change)
            }
        };
        change.learned.bill = bill;
        self.inner.store.change(step, change).await
    }

    async fn attempt(&self, provider: &Arc<dyn Provider>, lease: Lease) -> Result<Ended, StoreError> {
        match lease.goal.unwrap_or(Goal::Delete) {
            Goal::Stop => self.call_stop(provider, &lease).await,
            Goal::Keep => Ok(self.call_release(provider, &lease, Goal::Keep, true).await),
            Goal::Delete => self.delete(provider, lease).await,
        }
    }

    async fn delete(&self, provider: &Arc<dyn Provider>, lease: Lease) -> Result<Ended, StoreError> {
        let creation = self.inner.store.creation(&lease.id).await?;
        let lease = match &lease.allocation {
            Some(_) => lease,
            None => match self.look(provider, &lease, creation.record.as_ref()).await {
                Ok(Some(found)) => self.observe(&lease, Some(found), None).await?,
                Ok(None) => return Ok(self.nothing_found(provider, creation.settle_ms, &lease).into()),
                Err(why) => return Ok(Ended::not(why)),
            },
        };
        match provider.offers() {
            offers if offers.destroy => self.call_destroy(provider, lease, creation.record).await,
            offers if offers.release => Ok(self.call_release(provider, &lease, Goal::Delete, true).await),
            _ => Ok(Ended::not("its provider can neither destroy nor release; install one that can")),
        }
    }

    /// Finding nothing under a name proves nothing while a creation may still come to light.
    fn nothing_found(&self, provider: &Arc<dyn Provider>, settle_ms: u64, lease: &Lease) -> Outcome {
        let now = self.now_ms();
        // A time of writing in the future says that the clock was set back; the window is then measured from
        // now on, once, by the next look.
        let until_ms = settle_ms.min(now.saturating_add(settle_ms.saturating_sub(lease.created_ms)));
        if provider.offers().network && now < until_ms {
            let why = "nothing is found under its creation name yet, and it may still appear".to_owned();
            return Outcome::Wait { until_ms, why };
        }
        Outcome::Nothing("nothing was found under its creation name".into())
    }

    /// Looks for an allocation by its creation name: its id, or none when there is none.
    async fn look(
        &self,
        provider: &Arc<dyn Provider>,
        lease: &Lease,
        record: Option<&CleanupRecord>,
    ) -> Result<Option<ProviderLease>, String> {
        let bare = |id| ProviderLease { id, metadata: None, expires_at_ms: None };
        if !provider.offers().find {
            return self.adopt(provider, lease).await.map(Some);
        }
        let time = times::of_call(Method::FindLease, &lease.config, None);
        let (asked, context) = (provider.clone(), Context::of(lease, time));
        let name = lease.id.as_str().to_owned();
        let answer = async move { asked.find(context, name).await };
        let reply = call::timed(self.clock(), Step::CallFind, time, answer).await?;
        let found = match reply.answer.map_err(|fault| fault.to_string())? {
            Finding::Started(allocation) => Some(allocation),
            Finding::Preparing(id) | Finding::Unusable(id) => Some(bare(id)),
            Finding::Absent => record.and_then(|record| record.observed_id.clone()).map(bare),
        };
        found.as_ref().map_or(Ok(()), ProviderLease::check)?;
        Ok(found)
    }

    /// A provider that cannot look is asked once more under the same name: it gives what it made before, or
    /// makes what can then be deleted.
    async fn adopt(&self, provider: &Arc<dyn Provider>, lease: &Lease) -> Result<ProviderLease, String> {
        let time = times::of_call(Method::AcquireLease, &lease.config, None);
        let request = AcquireRequest {
            creation_name: lease.id.as_str().to_owned(),
            retention: lease.retention(),
            wishes: lease.wishes.clone(),
        };
        let (asked, context) = (provider.clone(), Context::of(lease, time));
        let answer = async move { asked.acquire(context, request).await };
        let reply = call::timed(self.clock(), Step::CallAcquire, time, answer).await?;
        let allocation = reply.answer.map_err(|failure| failure.fault.to_string())?;
        allocation.check().map(|()| allocation)
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

    async fn call_destroy(
        &self,
        provider: &Arc<dyn Provider>,
        mut lease: Lease,
        mut record: Option<CleanupRecord>,
    ) -> Result<Ended, StoreError> {
        for _ in 0..PHASES {
            let Some((id, target)) = target(&lease, record.as_ref()) else { break };
            let Reply { answer, bill } = match self.ask_destroy(provider, &lease, target).await {
                Ok(reply) => reply,
                Err(why) => return Ok(Ended::not(why)),
            };
            let failure = match answer {
                Ok(receipt) => {
                    let outcome = proved(Asked::Destroy.check(&id, &receipt));
                    return Ok(Ended { outcome, bill });
                }
                Err(failure) => failure,
            };
            let refused =
                |why: String| Ended { outcome: Outcome::NotYet { why, stop: None }, bill: bill.clone() };
            match failure.cleanup.map(|record| *record) {
                Some(seen) => {
                    if let Err(why) = seen.check(lease.id.as_str()) {
                        return Ok(refused(why));
                    }
                    if seen.observed_id.as_ref().is_some_and(|seen| *seen != id) {
                        return Ok(refused(format!(
                            "the provider went on to another allocation than `{id}`"
                        )));
                    }
                    if record.as_ref() == Some(&seen) {
                        return Ok(refused(failure.fault.to_string()));
                    }
                    lease = self.observe(&lease, None, Some(seen.clone())).await?;
                    record = Some(seen);
                }
                None => return Ok(refused(failure.fault.to_string())),
            }
        }
        Ok(Ended::not("the provider asked for another turn to delete it"))
    }

    /// One destroy of an allocation that was in use.
    pub(super) async fn call_destroy_once(&self, provider: &Arc<dyn Provider>, lease: &Lease) -> Ended {
        let Some((id, target)) = target(lease, None) else {
            return Ended::not("its allocation was never seen");
        };
        if !provider.offers().destroy {
            return Ended::not("its provider cannot destroy");
        }
        match self.ask_destroy(provider, lease, target).await {
            Ok(Reply { answer: Ok(receipt), bill }) => {
                Ended { outcome: proved(Asked::Destroy.check(&id, &receipt)), bill }
            }
            Ok(Reply { answer: Err(failure), bill }) => {
                let why = failure.fault.to_string();
                Ended { outcome: Outcome::NotYet { why, stop: None }, bill }
            }
            Err(why) => Ended::not(why),
        }
    }

    async fn ask_destroy(
        &self,
        provider: &Arc<dyn Provider>,
        lease: &Lease,
        target: DestroyTarget,
    ) -> Result<Reply<Result<crate::Receipt, crate::DestroyFailure>>, String> {
        let time = times::of_call(Method::DestroyLease, &lease.config, None);
        let (asked, context) = (provider.clone(), Context::of(lease, time));
        let answer = async move { asked.destroy(context, target).await };
        call::timed(self.clock(), Step::CallDestroy, time, answer).await
    }

    /// Asks the provider to end the use, to be kept or deleted, and checks its receipt.
    pub(super) async fn call_release(
        &self,
        provider: &Arc<dyn Provider>,
        lease: &Lease,
        goal: Goal,
        cancel_active_work: bool,
    ) -> Ended {
        let Some(allocation) = lease.allocation.clone() else {
            return Ended::not("its allocation was never seen");
        };
        let retention = if goal == Goal::Keep { Retention::Reuse } else { Retention::Ephemeral };
        match provider.offers() {
            offers if offers.release => {}
            // To delete is what both would do.
            offers if offers.destroy && retention == Retention::Ephemeral => {
                return self.call_destroy_once(provider, lease).await;
            }
            _ => return Ended::not("its provider cannot release"),
        }
        let id = allocation.id.clone();
        let request = ReleaseRequest { lease: allocation, retention, cancel_active_work };
        let time = times::of_call(Method::ReleaseLease, &lease.config, None);
        let (asked, context) = (provider.clone(), Context::of(lease, time));
        let answer = async move { asked.release(context, request).await };
        match call::timed(self.clock(), Step::CallRelease, time, answer).await {
            Ok(Reply { answer, bill }) => {
                let checked = answer
                    .map_err(|fault| fault.to_string())
                    .and_then(|receipt| Asked::Release(retention).check(&id, &receipt));
                Ended { outcome: proved(checked), bill }
            }
            Err(why) => Ended::not(why),
        }
    }

    /// Stops exactly the allocation the stop was asked for. Whatever comes of it, nothing is deleted.
    async fn call_stop(&self, provider: &Arc<dyn Provider>, lease: &Lease) -> Result<Ended, StoreError> {
        let intents = self.inner.store.stop_intents(&lease.id).await?;
        let open = intents.into_iter().rfind(|intent| intent.settled_ms.is_none());
        let fits = open.is_some_and(|intent| intent.fits(lease));
        let Some(allocation) = lease.allocation.clone().filter(|_| fits) else {
            return Ok(Ended::not("what was asked to be stopped is not this allocation as it is stored"));
        };
        if !provider.offers().stop {
            // It may be put off for as long as it takes: nothing else is evidence of a stop.
            let until_ms = self.now_ms().saturating_add(crate::store::millis(self.inner.times.deferral));
            let why = "its provider cannot stop and keep, so it is left as it is".to_owned();
            return Ok(Outcome::Wait { until_ms, why }.into());
        }
        let id = allocation.id.clone();
        let time = times::of_call(Method::StopLease, &lease.config, None);
        let (asked, context) = (provider.clone(), Context::of(lease, time));
        let answer = async move { asked.stop(context, allocation).await };
        Ok(match call::timed(self.clock(), Step::CallStop, time, answer).await {
            Ok(Reply { answer: Ok(receipt), bill }) => {
                let outcome = match Asked::Stop.check(&id, &receipt) {
                    Ok(disposition) => Outcome::Proved(State::Retained, disposition),
                    Err(why) => Outcome::NotYet { why, stop: Some(StopReason::Unconfirmed) },
                };
                Ended { outcome, bill }
            }
            Ok(Reply { answer: Err(failure), bill }) => {
                let why = format!("{} ({})", failure.fault, failure.reason.word());
                Ended { outcome: Outcome::NotYet { why, stop: Some(failure.reason) }, bill }
            }
            Err(why) => Outcome::NotYet { why, stop: Some(StopReason::Unconfirmed) }.into(),
        })
    }
}

/// What to destroy and its id: by the record of a failed acquisition when there is one, as it is what the
/// provider itself wanted back.
fn target(lease: &Lease, record: Option<&CleanupRecord>) -> Option<(String, DestroyTarget)> {
    let allocation = lease.allocation.clone()?;
    let id = allocation.id.clone();
    let target = match record {
        Some(record) => {
            DestroyTarget::Abandoned(CleanupRecord { observed_id: Some(id.clone()), ..record.clone() })
        }
        None => DestroyTarget::Lease(allocation),
    };
    Some((id, target))
}

/// What a checked receipt means: what is kept is retained, everything else has ended.
fn proved(checked: Result<Disposition, String>) -> Outcome {
    match checked {
        Ok(disposition) if disposition.is_kept() => Outcome::Proved(State::Retained, disposition),
        Ok(disposition) => Outcome::Proved(State::Released, disposition),
        Err(why) => Outcome::NotYet { why, stop: None },
    }
}
