//! Reconciling: what processes that are gone, failures and late answers left behind is brought to its goal.

use super::Leases;
use crate::fault::Step;
use crate::spool::Spooled;
use crate::store::{Attempts, Cursor, Learned, Unowned};
use crate::{Filter, Goal, Lease, LeaseId, Owner, Standing, State, StoreError, Unready};

/// Leases taken up at a time. Enough that slow back ends do not hold each other up, few enough that a
/// reconciler does not flood one.
pub(crate) const PAGE: u32 = 20;

/// What one reconcile did.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Report {
    /// Brought to their goal: ended, kept, or found never to have been made.
    pub settled: Vec<Lease>,
    /// Tried without success; `last_error` says why.
    pub unsettled: Vec<Lease>,
    /// Not tried, as their provider is not ready. No attempt was used.
    pub put_off: Vec<(Lease, Unready)>,
    /// Not finished because the store failed.
    pub store_failed: Vec<(LeaseId, StoreError)>,
    /// These wait for a person: tried too often, or nothing but a person can help.
    pub stuck: Vec<Lease>,
    /// Left alone because their owner, in another container or on another machine, cannot be seen from here.
    pub out_of_sight: Vec<Lease>,
    /// Written down now, after the store had not taken them.
    pub taken_in: Vec<LeaseId>,
}

/// What became of one lease of a page.
enum Done {
    Tried(Box<Result<Lease, StoreError>>),
    PutOff(Unready),
    /// Another reconciler, or its owner, was faster.
    Elsewhere,
}

impl Leases {
    /// Brings what nobody works on any more to its goal, a page after the other, oldest first, each lease
    /// once, whether it is due or not.
    ///
    /// Leases whose owner is alive are left alone. Any number of hosts may reconcile at once; a lease is
    /// taken up by one of them. Dropping the future stops it after the page at hand.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read. A failure with one lease is in the report.
    pub async fn reconcile(&self) -> Result<Report, StoreError> {
        let mut report = Report::default();
        self.take_in(&mut report).await?;
        let owners = self.inner.store.owners(self.inner.times.stale).await?;
        let unowned = self.unowned(&owners, None);
        let mut after: Option<Cursor> = None;
        loop {
            let page = self.inner.store.page(unowned.clone(), after.take(), PAGE).await?;
            let Some(last) = page.last() else { break };
            after = Some((last.created_ms, last.id.as_str().to_owned()));
            self.reconcile_page(page, &mut report).await;
        }
        self.add_left_alone(&mut report, &standing(&owners, Standing::OutOfSight)).await?;
        Ok(report)
    }

    /// One page of what is due now: what a host does again and again. Leases that failed lately, or whose
    /// provider is not ready, wait for their time and hold up no other.
    ///
    /// # Errors
    /// As for [`Leases::reconcile`].
    pub async fn sweep(&self) -> Result<Report, StoreError> {
        let mut report = Report::default();
        self.take_in(&mut report).await?;
        let owners = self.inner.store.owners(self.inner.times.stale).await?;
        let unowned = self.unowned(&owners, Some(self.now_ms()));
        let page = self.inner.store.page(unowned, None, PAGE).await?;
        self.reconcile_page(page, &mut report).await;
        Ok(report)
    }

    fn unowned(&self, owners: &[(String, Standing)], due_ms: Option<u64>) -> Unowned {
        let gone = standing(owners, Standing::Gone);
        Unowned { gone, me: self.inner.me.clone(), due_ms, now_ms: self.now_ms() }
    }

    async fn reconcile_page(&self, page: Vec<Lease>, report: &mut Report) {
        let begin = |lease: Lease| {
            let (leases, tried) = (self.clone(), lease.clone());
            let task = async move { leases.reconcile_one(tried).await };
            (lease, self.inner.tasks.spawn(task))
        };
        let tasks = page.into_iter().map(begin).collect::<Vec<_>>();
        for (lease, task) in tasks {
            match task.await {
                Ok(Done::Tried(tried)) => match *tried {
                    Ok(lease) if lease.state != State::PendingCleanup => report.settled.push(lease),
                    Ok(lease) => report.unsettled.push(lease),
                    Err(error) => report.store_failed.push((lease.id, error)),
                },
                Ok(Done::PutOff(why)) => report.put_off.push((lease, why)),
                Ok(Done::Elsewhere) => {}
                Err(_) => {
                    report.store_failed.push((lease.id, StoreError::Ended { doing: "reconciling a lease" }));
                }
            }
        }
    }

    async fn reconcile_one(&self, lease: Lease) -> Done {
        let Some(_work) = self.inner.working.begin_alone(&lease.id) else { return Done::Elsewhere };
        let provider = match self.provider(&lease).await {
            Ok(provider) => provider,
            Err(unready) => {
                let times = &self.inner.times;
                return match self.inner.store.defer(&lease, times.deferral, &unready.to_string()).await {
                    Ok(()) => Done::PutOff(unready),
                    Err(error) => Done::Tried(Box::new(Err(error))),
                };
            }
        };
        match self.claim(lease).await {
            Ok(claimed) => Done::Tried(Box::new(self.tear_down(&provider, claimed).await)),
            Err(StoreError::Changed { .. } | StoreError::Illegal { .. }) => Done::Elsewhere,
            Err(error) => Done::Tried(Box::new(Err(error))),
        }
    }

    /// Takes a lease over, if it is still as it was seen. A crash after this costs the attempt.
    async fn claim(&self, lease: Lease) -> Result<Lease, StoreError> {
        let over = lease.ends_ms.is_some_and(|end| end <= self.now_ms());
        let (why, reason) = match (&lease.owner, lease.state) {
            (_, State::PendingCleanup) => (None, "taken up for cleanup".into()),
            (_, State::Retained) => (Some("lease_expired"), "the back end has ended it".into()),
            (_, State::Active) if over => (Some("lease_lifetime_over"), "its lifetime is over".into()),
            (Some(owner), state) => {
                (Some("owner_gone"), format!("its owner, process {}, left it {state}", owner.pid))
            }
            (None, state) => (Some("owner_gone"), format!("nobody owned it, {state}")),
        };
        let goal = match lease.state {
            State::Retained => Goal::Delete,
            _ => lease.goal_when_left(),
        };
        let mut claim = self.taking(&lease, State::PendingCleanup, reason);
        claim.learned = Learned { attempts: Attempts::Begin, goal: Some(goal), why, ..Learned::default() };
        self.inner.store.change(Step::Claim, claim).await
    }

    /// Writes down what the store had not taken when it was learned.
    async fn take_in(&self, report: &mut Report) -> Result<(), StoreError> {
        for spooled in self.inner.spool.all().await? {
            let id = spooled.lease.id.clone();
            match self.take_in_one(&spooled).await {
                Ok(true) => {
                    self.inner.spool.remove(&spooled).await?;
                    report.taken_in.push(id);
                }
                Ok(false) => {}
                Err(error) => report.store_failed.push((id, error)),
            }
        }
        Ok(())
    }

    /// Whether the record is no longer needed.
    async fn take_in_one(&self, spooled: &Spooled) -> Result<bool, StoreError> {
        let lease = match self.get(&spooled.lease.id).await {
            Ok(lease) => lease,
            // The store was replaced or the row was never written; what may exist must not be forgotten.
            Err(StoreError::Missing { .. }) => self.inner.store.restore(&spooled.lease).await?,
            Err(error) => return Err(error),
        };
        if lease.state.is_final() {
            return Ok(true);
        }
        let of_another = |owner: &Owner| *owner != self.inner.me && owner.standing() == Standing::Alive;
        if lease.owner.as_ref().is_some_and(of_another) {
            return Ok(false);
        }
        let Some(_work) = self.inner.working.begin_alone(&lease.id) else { return Ok(false) };
        let mut change =
            self.taking(&lease, State::PendingCleanup, format!("written down late: {}", spooled.reason));
        change.learned = Learned {
            allocation: spooled.allocation.clone(),
            cleanup: spooled.cleanup.clone(),
            goal: Some(Goal::Delete),
            why: Some("acquisition_undone"),
            due_ms: Some(self.now_ms()),
            ..Learned::default()
        };
        if spooled.disposition.is_none() {
            change.owner = None;
        }
        let pending = match self.inner.store.change(Step::TakeIn, change).await {
            Err(StoreError::HeldElsewhere { .. }) => return Ok(true),
            other => other?,
        };
        if let Some(disposition) = spooled.disposition {
            let mut change = self.mine(&pending, State::Released, disposition.word());
            change.learned.disposition = Some(disposition);
            self.inner.store.change(Step::Settle, change).await?;
        }
        Ok(true)
    }

    /// Adds what was not tried and waits for somebody else.
    async fn add_left_alone(&self, report: &mut Report, unseen: &[String]) -> Result<(), StoreError> {
        report.stuck = self.list(Filter { stuck: true, ..Filter::default() }).await?;
        let worked_on = |owner: &Owner| owner.standing() != Standing::Gone && *owner != self.inner.me;
        report.stuck.retain(|lease| !lease.owner.as_ref().is_some_and(worked_on));
        if !unseen.is_empty() {
            let states = State::ALL.into_iter().filter(|state| !state.is_final()).collect();
            report.out_of_sight = self.list(Filter { states, ..Filter::default() }).await?;
            let is_unseen = |owner: &Owner| unseen.contains(&owner.to_text());
            report.out_of_sight.retain(|lease| lease.owner.as_ref().is_some_and(is_unseen));
        }
        Ok(())
    }
}

/// Those who stand like this, as written.
fn standing(owners: &[(String, Standing)], wanted: Standing) -> Vec<String> {
    owners.iter().filter(|(_, standing)| *standing == wanted).map(|(owner, _)| owner.clone()).collect()
}
