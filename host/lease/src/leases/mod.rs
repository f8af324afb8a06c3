//! The life of a lease, over a provider and the store.
//!
//! Whatever is begun runs on a task of its own until the store says how it ended, so a caller may drop
//! any of these futures at any time. A host that is about to exit awaits [`Leases::idle`]; what it does not
//! wait for is left to the next [`Leases::reconcile`].

mod acquire;
mod call;
mod error;
mod reconcile;
mod release;
mod teardown;
mod wanted;
mod working;

pub use error::{LeaseError, Left};
pub use reconcile::Report;
#[cfg(test)]
pub(crate) use reconcile::{MAX_ATTEMPTS, PAGE};
pub use release::Released;
pub use wanted::Wanted;

use crate::store::{Change, Learned, Whose};
use crate::{Event, Filter, Lease, LeaseId, Owner, State, Store, StoreError};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::task::TaskTracker;
use working::Working;

/// Time of a call that looks for, releases or destroys an allocation. Back ends take seconds for it; one
/// that takes longer is asked again by the next reconcile.
const CALL: Duration = Duration::from_secs(60);

/// How much longer an acquisition nobody waits for is listened to. Its answer holds the id that makes the
/// undoing certain; a back end that has not answered by then is asked by name instead.
const LATE_ANSWER: Duration = Duration::from_secs(60);

/// How long the calls of a provider may take, beside the acquisition, whose time its caller gives.
#[derive(Clone, Debug)]
pub struct Budgets {
    /// Looking for an allocation by its creation name.
    pub find: Duration,
    /// Releasing an allocation.
    pub release: Duration,
    /// Destroying an allocation.
    pub destroy: Duration,
    /// How much longer an acquisition nobody waits for is listened to.
    pub late_answer: Duration,
}

impl Default for Budgets {
    fn default() -> Budgets {
        Budgets { find: CALL, release: CALL, destroy: CALL, late_answer: LATE_ANSWER }
    }
}

/// The leases of one host. Clones are the same host.
#[derive(Clone, Debug)]
pub struct Leases {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    store: Store,
    me: Owner,
    budgets: Budgets,
    tasks: TaskTracker,
    working: Working,
}

impl Leases {
    /// The leases in this store, for this process.
    ///
    /// # Errors
    /// [`StoreError::Owner`] when this process cannot say who it is.
    pub fn new(store: Store, budgets: Budgets) -> Result<Leases, StoreError> {
        Ok(Leases::owned_by(Owner::current()?, store, budgets))
    }

    pub(crate) fn owned_by(me: Owner, store: Store, budgets: Budgets) -> Leases {
        let tasks = TaskTracker::new();
        // Closed only means that waiting for it ends; new tasks are still taken.
        tasks.close();
        Leases { inner: Arc::new(Inner { store, me, budgets, tasks, working: Working::default() }) }
    }

    /// The leases that pass the filter, oldest first.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn list(&self, filter: Filter) -> Result<Vec<Lease>, StoreError> {
        self.inner.store.list(filter).await
    }

    /// One lease.
    ///
    /// # Errors
    /// [`StoreError::Missing`] when there is none of that name.
    pub async fn get(&self, id: &LeaseId) -> Result<Lease, StoreError> {
        self.inner.store.get(id).await
    }

    /// What happened to a lease, oldest first.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn history(&self, id: &LeaseId) -> Result<Vec<Event>, StoreError> {
        self.inner.store.history(id).await
    }

    /// Waits until nothing begun here is under way any more: no late answer awaited, nothing half undone.
    /// It takes at most the budgets of the calls that are under way.
    pub async fn idle(&self) {
        self.inner.tasks.wait().await;
    }

    /// A change of a lease that is this owner's.
    fn mine(&self, lease: &Lease, to: State, reason: impl Into<String>) -> Change {
        Change {
            id: lease.id.clone(),
            from: lease.state,
            whose: Whose::Of(self.inner.me.clone()),
            to,
            owner: None,
            reason: reason.into(),
            learned: Learned::default(),
        }
    }
}
