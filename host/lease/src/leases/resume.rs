//! Taking up an allocation that was kept: one deadline for every try, and only typed faults are tried again.

use super::{Acquired, How, LeaseError, Leases, call, times};
use crate::fault::Step;
use crate::store::{Durability, Learned};
use crate::{Context, Fault, Goal, Lease, LeaseId, Provider, ProviderLease, Reply, ResumeRequest, State};
use leasehold_contract::Method;
use std::sync::Arc;
use std::time::Duration;

/// The first pause between two tries; it doubles up to the longest.
const FIRST: Duration = Duration::from_millis(250);

/// The longest pause: a back end that limits its callers answers within it again.
const LONGEST: Duration = Duration::from_secs(5);

/// Parts of a thousand by which a pause is longer or shorter than the last, so that many hosts do not all come
/// back at once.
const JITTER: u32 = 250;

/// Why a kept allocation was not taken up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NotResumed {
    /// The provider no longer has the method.
    CapabilityLost,
    /// The back end no longer knows the allocation.
    Gone,
    /// It failed for another reason, or for too long.
    Failed(String),
}

impl std::fmt::Display for NotResumed {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NotResumed::CapabilityLost => to.write_str("its provider can no longer resume"),
            NotResumed::Gone => to.write_str("the back end no longer knows the sandbox"),
            NotResumed::Failed(why) => to.write_str(why),
        }
    }
}

impl Leases {
    /// Takes up a kept lease by its name, as its files are wanted again: to bring them back, or for a person
    /// to go on in it.
    ///
    /// # Errors
    /// [`LeaseError::Store`] when it is not kept, [`LeaseError::Gone`] when the back end no longer knows it,
    /// [`LeaseError::Preserved`] when it could not be taken up for another reason; it is then kept as it was.
    pub async fn take_up(&self, id: &LeaseId, run: Option<String>) -> Result<Acquired, LeaseError> {
        let (leases, id) = (self.clone(), id.clone());
        self.see_through("taking up a lease", async move { leases.take_up_now(&id, run).await }).await
    }

    async fn take_up_now(&self, id: &LeaseId, run: Option<String>) -> Result<Acquired, LeaseError> {
        let _work = self.inner.working.begin(id);
        let lease = self.get(id).await?;
        let provider = self.provider(&lease).await?;
        let lease = self.begin_resume(&lease, run, "taken up again by name").await?;
        let time = times::of_call(Method::ResumeLease, &lease.config, None);
        match self.resume(&provider, &lease, time).await {
            Ok(Reply { answer: allocation, bill }) => {
                let mut change = self.mine(&lease, State::Active, "resumed");
                change.owner = (!lease.held).then(|| self.inner.me.clone());
                change.learned = Learned { allocation: Some(allocation), bill, ..Learned::default() };
                let lease = self.inner.store.change_with(Step::EndResume, Durability::Disk, change).await?;
                Ok(Acquired { lease, how: How::Resumed })
            }
            Err(NotResumed::Gone) => {
                self.leave_for(
                    &provider,
                    lease,
                    Goal::Delete,
                    "not_found",
                    "the back end no longer knows it",
                )
                .await;
                Err(LeaseError::Gone { id: id.clone() })
            }
            Err(why) => {
                self.leave(&provider, lease, &format!("not resumed: {why}")).await;
                Err(LeaseError::Preserved { id: id.clone(), why: why.to_string() })
            }
        }
    }

    /// Takes a kept lease for this owner, if it is still as it was seen.
    pub(super) async fn begin_resume(
        &self,
        lease: &Lease,
        run: Option<String>,
        reason: &str,
    ) -> Result<Lease, crate::StoreError> {
        let mut change = self.taking(lease, State::Resuming, reason);
        change.learned.run = run;
        change.learned.due_ms = Some(self.now_ms());
        self.inner.store.change(Step::BeginResume, change).await
    }

    /// Asks the provider until it answers, its deadline comes, or trying again is of no use.
    pub(super) async fn resume(
        &self,
        provider: &Arc<dyn Provider>,
        lease: &Lease,
        time: Duration,
    ) -> Result<Reply<ProviderLease>, NotResumed> {
        if !provider.offers().resume {
            return Err(NotResumed::CapabilityLost);
        }
        let Some(allocation) = lease.allocation.clone() else {
            return Err(NotResumed::Failed("its allocation was never seen".into()));
        };
        let mut left = Left { left: time, pause: FIRST };
        loop {
            let began = std::time::Instant::now();
            let wall = self.now_ms();
            let answered = self.call_resume(provider, lease, allocation.clone(), left.left).await;
            let (fault, asked) = match answered {
                Ok(Reply { answer: Ok(resumed), bill }) => return self.same(&allocation, resumed, bill),
                Ok(Reply { answer: Err(Fault::Gone), .. }) => return Err(NotResumed::Gone),
                Ok(Reply { answer: Err(fault @ Fault::Transient { retry_after, .. }), .. }) => {
                    (fault.to_string(), retry_after)
                }
                Ok(Reply { answer: Err(fault), .. }) => return Err(NotResumed::Failed(fault.to_string())),
                Err(why) => return Err(NotResumed::Failed(why)),
            };
            // By the clock that pauses go by: a wall that is set back or forth changes nothing.
            let passed = Duration::from_millis(self.now_ms().saturating_sub(wall)).max(began.elapsed());
            left.left = left.left.saturating_sub(passed.min(left.left));
            let Some(pause) = left.next(asked) else { return Err(NotResumed::Failed(fault)) };
            tracing::debug!(lease = %lease.id, fault, ?pause, "a resume is tried again");
            self.clock().sleep(pause).await;
        }
    }

    async fn call_resume(
        &self,
        provider: &Arc<dyn Provider>,
        lease: &Lease,
        allocation: ProviderLease,
        time: Duration,
    ) -> Result<Reply<Result<ProviderLease, Fault>>, String> {
        let request = ResumeRequest { lease: allocation, requested_cwd: lease.wishes.requested_cwd.clone() };
        let (asked, context) = (provider.clone(), Context::of(lease, time));
        let answer = async move { asked.resume(context, request).await };
        call::timed(self.clock(), Step::CallResume, time, answer).await
    }

    /// Only the very same allocation is taken up, and only if it will still be there.
    fn same(
        &self,
        was: &ProviderLease,
        resumed: ProviderLease,
        bill: Option<String>,
    ) -> Result<Reply<ProviderLease>, NotResumed> {
        if resumed.id != was.id {
            let why = "the provider answered with another sandbox than the one that was kept";
            return Err(NotResumed::Failed(why.into()));
        }
        resumed.check().map_err(NotResumed::Failed)?;
        match resumed.expires_at_ms {
            Some(end) if end <= self.now_ms() => {
                Err(NotResumed::Failed("the back end ends the sandbox at a time that has passed".into()))
            }
            _ => Ok(Reply { answer: resumed, bill }),
        }
    }

    /// Gives a lease back that was taken up or was to be, to be kept as its policy and what it holds say.
    pub(super) async fn leave(&self, provider: &Arc<dyn Provider>, lease: Lease, reason: &str) {
        let goal = match lease.goal_when_left() {
            // What was kept once is not deleted for a failure to take it up.
            Goal::Delete => Goal::Stop,
            goal => goal,
        };
        self.leave_for(provider, lease, goal, "resume_failed", reason).await;
    }

    /// Gives a lease up with this goal, and works towards it at once.
    pub(super) async fn leave_for(
        &self,
        provider: &Arc<dyn Provider>,
        lease: Lease,
        goal: Goal,
        why: &'static str,
        reason: &str,
    ) {
        let mut change = self.taking(&lease, State::PendingCleanup, reason);
        change.learned = Learned {
            goal: Some(goal),
            why: Some(why),
            error: Some(reason.to_owned()),
            due_ms: Some(self.now_ms()),
            ..Learned::default()
        };
        let left = match self.inner.store.change(Step::LeaveResume, change).await {
            Ok(pending) => self.tear_down(provider, pending).await,
            Err(error) => Err(error),
        };
        if let Err(error) = left {
            tracing::warn!(lease = %lease.id, %error, "a lease that was given up waits for reconciling");
        }
    }
}

/// What is left of a deadline, and the next pause.
struct Left {
    left: Duration,
    pause: Duration,
}

impl Left {
    /// The next pause, if the longest it may become still ends before the deadline. What the back end asked
    /// for is waited for in any case.
    fn next(&mut self, asked: Option<Duration>) -> Option<Duration> {
        let pause = self.pause.max(asked.unwrap_or_default());
        if pause * (1000 + JITTER) / 1000 >= self.left {
            return None;
        }
        self.pause = (self.pause * 2).min(LONGEST);
        let jittered = (pause * (1000 - JITTER + random(2 * JITTER)) / 1000).max(asked.unwrap_or_default());
        self.left -= jittered;
        Some(jittered)
    }
}

/// A number up to this one. Without random bytes the pauses are as long as they are.
fn random(most: u32) -> u32 {
    let mut bytes = [0u8; 4];
    match getrandom::fill(&mut bytes) {
        Ok(()) => u32::from_ne_bytes(bytes) % (most + 1),
        Err(_) => most / 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_five_seconds_within_a_quarter_and_end_before_the_deadline() {
        let mut left = Left { left: Duration::from_secs(60), pause: FIRST };
        let mut total = Duration::ZERO;
        let mut pauses = Vec::new();
        while let Some(pause) = left.next(None) {
            total += pause;
            pauses.push(pause);
        }
        assert!(total <= Duration::from_secs(60), "{pauses:?}");
        for (pause, expected) in pauses.iter().zip([250, 500, 1000, 2000, 4000, 5000, 5000, 5000]) {
            let (least, most) = (expected * 3 / 4, expected * 5 / 4);
            assert!((least..=most).contains(&pause.as_millis()), "{pause:?} for {expected}");
        }
        assert!(pauses.len() >= 12, "{pauses:?}");
    }

    #[test]
    fn what_a_back_end_asks_for_is_waited_for_or_given_up_on() {
        let mut left = Left { left: Duration::from_secs(10), pause: FIRST };
        assert!(left.next(Some(Duration::from_secs(7))) >= Some(Duration::from_secs(7)));
        assert_eq!(left.next(Some(Duration::from_secs(7))), None);
    }
}
