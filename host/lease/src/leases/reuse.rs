//! Using a kept lease again: for the same workspace and agent, and only where nothing it was made from has
//! changed.

use super::acquire::{Waiting, give};
use super::resume::NotResumed;
use super::{How, LeaseError, Leases, OnLost, Wanted};
use crate::{Goal, Lease, Policy, Provider, Reply, State, StoreError};
use std::sync::Arc;

/// Why a kept lease was replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Replaced {
    /// The back end no longer knew it.
    NotFound,
    /// The back end had ended it, or its lifetime was used up.
    Expired,
    /// What it was made from has changed.
    FingerprintMismatch,
    /// The provider could no longer resume.
    CapabilityLost,
    /// It could not be resumed for another reason.
    ResumeFailed,
}

impl Replaced {
    /// A stable word for machines.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Replaced::NotFound => "not_found",
            Replaced::Expired => "lease_expired",
            Replaced::FingerprintMismatch => "lease_fingerprint_mismatch",
            Replaced::CapabilityLost => "resume_capability_lost",
            Replaced::ResumeFailed => "resume_failed",
        }
    }
}

/// What came of looking for a lease to use again.
pub(super) enum Reused {
    /// There is none.
    No,
    /// There was one, and it is given up.
    Replaced(Replaced),
    /// The caller was told, or nobody waits.
    Over,
}

impl Leases {
    /// Looks for a kept lease the caller may use again, and takes it up. Those that no longer fit are ended.
    pub(super) async fn reuse(
        &self,
        provider: &Arc<dyn Provider>,
        wanted: &Wanted,
        waiting: &mut Option<Waiting>,
    ) -> Reused {
        let (Policy::Reuse, Some(scope), Some(run)) = (wanted.policy, &wanted.scope, &wanted.run) else {
            return Reused::No;
        };
        let Wanted { environment, tenant, .. } = wanted;
        let candidates =
            self.inner.store.candidates(environment, tenant, &scope.workspace, &scope.agent, run).await;
        let candidates = match candidates {
            Ok(candidates) => candidates,
            Err(error) => {
                give(waiting, Err(error.into()));
                return Reused::Over;
            }
        };
        let (fingerprint, mut replaced) = (wanted.fingerprint(), None);
        for lease in candidates {
            let why = match self.unfit(&lease, wanted, &fingerprint) {
                None if !self.may_take(&lease) => continue,
                None => match self.try_one(provider, lease, wanted, waiting).await {
                    One::Elsewhere => continue,
                    One::Over => return Reused::Over,
                    One::GivenUp(why) => why,
                },
                // In use by this very run, or holds work nobody brought back: left as it is.
                Some(_) if lease.state == State::Active || lease.unexported => continue,
                Some(why) => {
                    self.give_up(lease, why).await;
                    why
                }
            };
            replaced.get_or_insert(why);
        }
        replaced.map_or(Reused::No, Reused::Replaced)
    }

    /// Why a lease must not be used again by this caller.
    fn unfit(&self, lease: &Lease, wanted: &Wanted, fingerprint: &str) -> Option<Replaced> {
        let expired = lease.allocation.as_ref().and_then(|it| it.expires_at_ms);
        if lease.scope != wanted.scope || lease.pins != wanted.pins || lease.fingerprint != fingerprint {
            Some(Replaced::FingerprintMismatch)
        } else if expired.is_some_and(|end| end <= self.now_ms()) || lease.used_ms >= lease.lifetime_ms {
            Some(Replaced::Expired)
        } else {
            None
        }
    }

    /// A lease of this run that is active may be taken up by whoever the run goes on in now.
    fn may_take(&self, lease: &Lease) -> bool {
        let of_another = lease
            .owner
            .as_ref()
            .is_some_and(|owner| *owner != self.inner.me && owner.standing() != crate::Standing::Gone);
        lease.state == State::Retained || !of_another
    }

    async fn try_one(
        &self,
        provider: &Arc<dyn Provider>,
        lease: Lease,
        wanted: &Wanted,
        waiting: &mut Option<Waiting>,
    ) -> One {
        let work = self.inner.working.begin(&lease.id);
        let lease = match self.begin_resume(&lease, wanted.run.clone(), "taken up by another run").await {
            Ok(lease) => lease,
            // Another run was faster.
            Err(StoreError::Changed { .. } | StoreError::Illegal { .. }) => return One::Elsewhere,
            Err(error) => {
                give(waiting, Err(error.into()));
                return One::Over;
            }
        };
        let Some(caller) = waiting.as_mut() else { return One::Over };
        let resumed = tokio::select! {
            biased;
            resumed = self.resume(provider, &lease, wanted.resume_time()) => resumed,
            () = caller.closed() => {
                self.leave(provider, lease, "nobody waited for it any more").await;
                return One::Over;
            }
        };
        match resumed {
            Ok(Reply { answer: allocation, bill }) => {
                drop(work);
                self.hand_over(provider, lease, allocation, bill, How::Resumed, waiting).await;
                One::Over
            }
            Err(why) => self.not_resumed(provider, lease, why, wanted, waiting).await,
        }
    }

    /// A kept lease that is gone is replaced. One that cannot be taken up is replaced as well, unless it
    /// holds work that was not brought back, or the caller wants it preserved: then the run fails instead.
    async fn not_resumed(
        &self,
        provider: &Arc<dyn Provider>,
        lease: Lease,
        why: NotResumed,
        wanted: &Wanted,
        waiting: &mut Option<Waiting>,
    ) -> One {
        let id = lease.id.clone();
        let keep = lease.unexported || wanted.on_lost == OnLost::Preserve;
        let reason = format!("not resumed: {why}");
        let replaced = match why {
            NotResumed::Gone => Replaced::NotFound,
            _ if keep => {
                self.leave_for(provider, lease, Goal::Stop, Replaced::ResumeFailed.word(), &reason).await;
                give(waiting, Err(LeaseError::Preserved { id, why: why.to_string() }));
                return One::Over;
            }
            NotResumed::CapabilityLost => Replaced::CapabilityLost,
            NotResumed::Failed(_) => Replaced::ResumeFailed,
        };
        self.leave_for(provider, lease, Goal::Delete, replaced.word(), &reason).await;
        One::GivenUp(replaced)
    }

    /// Ends a kept lease that no longer fits, in the background: by the provider that made it, which may be
    /// another than the one that is asked now.
    async fn give_up(&self, lease: Lease, why: Replaced) {
        let id = lease.id.clone();
        if let Err(error) = self.condemn(&lease, why.word()).await {
            tracing::debug!(lease = %id, %error, "a kept lease that no longer fits is left to reconciling");
            return;
        }
        let leases = self.clone();
        self.inner.tasks.spawn(async move { leases.end_condemned(&id).await });
    }
}

/// What came of one candidate.
enum One {
    /// Another run was faster.
    Elsewhere,
    /// The caller was told, or nobody waits.
    Over,
    GivenUp(Replaced),
}
