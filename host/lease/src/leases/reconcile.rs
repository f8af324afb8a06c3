//! Reconciling: what processes that are gone, failures and late answers left behind is ended.

use super::Leases;
use crate::fault::Step;
use crate::store::{Change, Cursor, Learned, Unowned, Whose};
use crate::{Filter, Lease, LeaseId, Owner, Providers, Standing, State, StoreError, Unready};
use std::sync::Arc;

/// Leases taken up at a time. Enough that slow back ends do not hold each other up, few enough that a
/// reconciler does not flood one.
pub(crate) const PAGE: u32 = 20;

/// How often a lease is tried. What fails five times fails for a reason that only a person can see; it
/// is no longer tried and is reported as stuck.
pub(crate) const MAX_ATTEMPTS: u32 = 5;

/// What one reconcile did.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Report {
    /// Ended, or found never to have been made.
    pub settled: Vec<Lease>,
    /// Tried without success; `last_error` says why.
    pub unsettled: Vec<Lease>,
    /// Not tried, as their provider is not ready. No attempt was used.
    pub put_off: Vec<(Lease, Unready)>,
    /// Not finished because the store failed.
    pub store_failed: Vec<(LeaseId, StoreError)>,
    /// Tried too often: these wait for a person.
    pub stuck: Vec<Lease>,
    /// Left alone because their owner, in another container, cannot be seen from here.
    pub out_of_sight: Vec<Lease>,
}

/// What became of one lease of a page.
enum Done {
    Tried(Box<Result<Lease, StoreError>>),
    PutOff(Unready),
    /// Another reconciler, or its owner, was faster.
    Elsewhere,
}

impl Leases {
    /// Ends what nobody works on any more, a page after the other, oldest first, each lease once.
    ///
    /// Leases whose owner is alive are left alone. Any number of hosts may reconcile at once; a lease is
    /// torn down by one of them. Dropping the future stops it after the page at hand.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read. A failure with one lease is in the report.
    pub async fn reconcile(&self, providers: Arc<dyn Providers>) -> Result<Report, StoreError> {
        let mut report = Report::default();
        let owners = self.inner.store.owners().await?;
        let of = |wanted| {
            let these = owners.iter().filter(move |(_, standing)| *standing == wanted);
            these.map(|(owner, _)| owner.clone()).collect::<Vec<_>>()
        };
        let unowned =
            Unowned { gone: of(Standing::Gone), me: self.inner.me.clone(), max_attempts: MAX_ATTEMPTS };
        let mut after: Option<Cursor> = None;
        loop {
            let page = self.inner.store.page(unowned.clone(), after.take(), PAGE).await?;
            let Some(last) = page.last() else { break };
            after = Some((last.created_ms, last.id.as_str().to_owned()));
            self.reconcile_page(&providers, page, &mut report).await;
        }
        self.add_left_alone(&mut report, &of(Standing::OutOfSight)).await?;
        Ok(report)
    }

    async fn reconcile_page(&self, providers: &Arc<dyn Providers>, page: Vec<Lease>, report: &mut Report) {
        let begin = |lease: Lease| {
            let (leases, providers, tried) = (self.clone(), providers.clone(), lease.clone());
            let task = async move { leases.reconcile_one(&*providers, tried).await };
            (lease, self.inner.tasks.spawn(task))
        };
        let tasks = page.into_iter().map(begin).collect::<Vec<_>>();
        for (lease, task) in tasks {
            match task.await {
                Ok(Done::Tried(tried)) => match *tried {
                    Ok(lease) if lease.state.is_final() => report.settled.push(lease),
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

    async fn reconcile_one(&self, providers: &dyn Providers, lease: Lease) -> Done {
        let Some(_work) = self.inner.working.begin_alone(&lease.id) else { return Done::Elsewhere };
        let provider = match providers.resolve(&lease).await {
            Ok(provider) => provider,
            Err(unready) => return Done::PutOff(unready),
        };
        match self.claim(lease).await {
            Ok(claimed) => Done::Tried(Box::new(self.tear_down(&provider, claimed).await)),
            Err(StoreError::Changed { .. } | StoreError::Illegal { .. }) => Done::Elsewhere,
            Err(error) => Done::Tried(Box::new(Err(error))),
        }
    }

    /// Takes a lease over, if it is still as it was seen. A crash after this costs the attempt.
    async fn claim(&self, lease: Lease) -> Result<Lease, StoreError> {
        let claim = Change {
            reason: match (&lease.owner, lease.state) {
                (_, State::PendingCleanup) => "taken up for cleanup".into(),
                (Some(owner), state) => format!("its owner, process {}, left it {state}", owner.pid),
                (None, state) => format!("nobody owned it, {state}"),
            },
            id: lease.id,
            from: lease.state,
            whose: Whose::AsSeen { owner: lease.owner, attempts: lease.attempts },
            to: State::PendingCleanup,
            owner: Some(self.inner.me.clone()),
            learned: Learned { attempt: true, ..Learned::default() },
        };
        self.inner.store.change(Step::Claim, claim).await
    }

    /// Adds what was not tried and waits for somebody else.
    async fn add_left_alone(&self, report: &mut Report, unseen: &[String]) -> Result<(), StoreError> {
        let states = vec![State::PendingCleanup];
        let capped = Filter { states, attempts: MAX_ATTEMPTS, ..Filter::default() };
        let worked_on = |owner: &Owner| owner.standing() != Standing::Gone && *owner != self.inner.me;
        report.stuck = self.inner.store.list(capped).await?;
        report.stuck.retain(|lease| !lease.owner.as_ref().is_some_and(worked_on));
        if !unseen.is_empty() {
            let states = State::ALL.into_iter().filter(|state| !state.is_final()).collect();
            report.out_of_sight = self.inner.store.list(Filter { states, ..Filter::default() }).await?;
            let is_unseen = |owner: &Owner| unseen.contains(&owner.to_text());
            report.out_of_sight.retain(|lease| lease.owner.as_ref().is_some_and(is_unseen));
        }
        Ok(())
    }
}
