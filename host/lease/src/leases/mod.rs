//! The life of a lease, over providers and the store.
//!
//! Whatever is begun runs on a task of its own until the store says how it ended, so a caller may drop
//! any of these futures at any time. A host that is about to exit awaits [`Leases::idle`]; what it does not
//! wait for is left to the next [`Leases::reconcile`].

mod acquire;
mod blockers;
mod call;
mod end;
mod error;
mod reconcile;
mod release;
mod resume;
mod reuse;
mod teardown;
mod times;
mod undo;
mod usage;
mod wanted;
mod working;

pub use acquire::{Acquired, How};
pub use blockers::Blocker;
pub use error::{LeaseError, Left, Tries};
#[cfg(test)]
pub(crate) use reconcile::PAGE;
pub use reconcile::Report;
pub use release::{Released, Releasing};
pub use reuse::Replaced;
pub use times::Times;
pub use wanted::{OnLost, Wanted};

use crate::spool::Spool;
use crate::store::{Change, Learned, Whose};
use crate::{
    Clock, Event, Filter, Lease, LeaseId, Owner, Provider, Providers, State, Store, StoreError, Unready,
};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;
use working::Working;

/// How the leases of a host are looked after.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// How long things take.
    pub times: Times,
    /// Where what the store does not take is put aside. Without it it is only kept in memory.
    pub spool: Option<PathBuf>,
}

/// The leases of one host. Clones are the same host.
#[derive(Clone)]
pub struct Leases {
    inner: Arc<Inner>,
}

struct Inner {
    store: Store,
    providers: Arc<dyn Providers>,
    me: Owner,
    times: Times,
    spool: Spool,
    tasks: TaskTracker,
    working: Working,
}

impl std::fmt::Debug for Leases {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Leases").field("me", &self.inner.me).finish_non_exhaustive()
    }
}

impl Leases {
    /// The leases in this store, for this process. On a store that several machines share it says from now
    /// on that it lives.
    ///
    /// # Errors
    /// [`StoreError`] when this process cannot say who it is, or the store cannot be written.
    pub async fn open(
        store: Store,
        providers: Arc<dyn Providers>,
        settings: Settings,
    ) -> Result<Leases, StoreError> {
        Leases::owned_by(Owner::current()?, store, providers, settings).await
    }

    pub(crate) async fn owned_by(
        me: Owner,
        store: Store,
        providers: Arc<dyn Providers>,
        settings: Settings,
    ) -> Result<Leases, StoreError> {
        let tasks = TaskTracker::new();
        // Closed only means that waiting for it ends; new tasks are still taken.
        tasks.close();
        let Settings { times, spool } = settings;
        let spool = Spool::new(spool);
        store.beat(&me).await?;
        let beating = store.is_shared();
        let inner = Inner { store, providers, me, times, spool, tasks, working: Working::default() };
        let leases = Leases { inner: Arc::new(inner) };
        if beating {
            leases.beat();
        }
        Ok(leases)
    }

    /// Says regularly that this host lives, until nobody has it any more.
    fn beat(&self) {
        let (inner, every) = (Arc::downgrade(&self.inner), self.inner.times.beat);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(every).await;
                let Some(inner) = inner.upgrade() else { break };
                if let Err(error) = inner.store.beat(&inner.me).await {
                    tracing::warn!(%error, "this host could not say that it lives");
                }
            }
        });
    }

    /// The store, for what is not about the life of a lease.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.inner.store
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
    /// New work may begin meanwhile and is waited for as well.
    pub async fn idle(&self) {
        self.inner.tasks.wait().await;
    }

    fn clock(&self) -> &Arc<dyn Clock> {
        self.inner.store.clock()
    }

    fn now_ms(&self) -> u64 {
        self.inner.store.now_ms()
    }

    async fn provider(&self, lease: &Lease) -> Result<Arc<dyn Provider>, Unready> {
        self.inner.providers.resolve(&lease.pins).await
    }

    /// Runs on a task of its own, which goes on when the caller no longer waits.
    async fn see_through<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl Future<Output = Result<T, LeaseError>> + Send + 'static,
    ) -> Result<T, LeaseError> {
        let (waiting, done) = oneshot::channel();
        self.inner.tasks.spawn(async move {
            // Whoever no longer waits finds the outcome in the store.
            waiting.send(work.await).ok();
        });
        done.await.unwrap_or_else(|_| Err(StoreError::Ended { doing }.into()))
    }

    /// A change by this owner, after which nobody works on the lease.
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

    /// A change of a lease as it was seen, after which this owner works on it.
    fn taking(&self, lease: &Lease, to: State, reason: impl Into<String>) -> Change {
        let whose = Whose::AsSeen(lease.version);
        Change { whose, owner: Some(self.inner.me.clone()), ..self.mine(lease, to, reason) }
    }
}
