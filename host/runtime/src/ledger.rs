//! The lease store as what providers keep their state in, and as where uses of grants are written down.

use leasehold_authority::audit::{Entry, Sink};
use leasehold_authority::state::{Owner, Quota, StateError, StateStore, Stored, Versioned, Write};
use leasehold_lease::{Audit, StateKey, Store, StoreError};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::Notify;

/// Entries that wait to be written. A store that takes none for so long has worse troubles. Hit: further ones
/// are counted in the log and lost.
const WAITING_MAX: usize = 10_000;

/// The lease store, once it is open. Clones are one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    store: OnceLock<Store>,
    waiting: Mutex<Waiting>,
    written: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    entries: Vec<Audit>,
    writing: bool,
}

impl Ledger {
    /// Begins to keep things here.
    pub(crate) fn open(&self, store: Store) {
        // A second store would be another runtime's; the first stays.
        let _ = self.0.store.set(store);
    }

    /// Waits until everything is written down.
    pub(crate) async fn flushed(&self) {
        loop {
            let written = self.0.written.notified();
            if !self.lock().writing {
                return;
            }
            written.await;
        }
    }

    fn store(&self) -> Result<&Store, StateError> {
        self.0.store.get().ok_or_else(|| StateError::Unavailable("it is not open yet".into()))
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn write(self) {
        loop {
            let entries = {
                let mut waiting = self.lock();
                if waiting.entries.is_empty() {
                    waiting.writing = false;
                    self.0.written.notify_waiters();
                    return;
                }
                std::mem::take(&mut waiting.entries)
            };
            let Some(store) = self.0.store.get() else { continue };
            let count = entries.len();
            if let Err(error) = store.audit(entries).await {
                tracing::warn!(%error, count, "what providers did was not written down");
            }
        }
    }
}

impl Sink for Ledger {
    fn record(&self, entry: Entry) {
        let mut waiting = self.lock();
        if waiting.entries.len() >= WAITING_MAX {
            tracing::warn!("what a provider did was not written down; too much is waiting");
            return;
        }
        waiting.entries.push(audit(entry));
        if !waiting.writing
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            waiting.writing = true;
            runtime.spawn(self.clone().write());
        }
    }
}

fn audit(entry: Entry) -> Audit {
    let Entry {
        at_ms,
        tenant,
        environment,
        provider,
        lease,
        permission,
        target,
        denied,
        bytes_out,
        bytes_in,
        ..
    } = entry;
    let what = match &denied {
        Some(reason) => format!("{target}: {reason}"),
        None => target,
    };
    Audit {
        at_ms,
        kind: permission.name().into(),
        provider,
        environment: Some(environment),
        tenant: Some(tenant),
        lease,
        what,
        verdict: if denied.is_some() { "denied" } else { "allowed" }.into(),
        bytes: Some(bytes_out.saturating_add(bytes_in)),
    }
}

impl StateStore for Ledger {
    fn get<'a>(&'a self, owner: &'a Owner, key: &'a str) -> Stored<'a, Option<Versioned>> {
        Box::pin(async move {
            let found = self.store()?.state_get(&of(owner), key).await.map_err(unavailable)?;
            Ok(found.map(|found| Versioned { value: found.value, version: found.version }))
        })
    }

    fn set<'a>(&'a self, owner: &'a Owner, write: Write) -> Stored<'a, u64> {
        Box::pin(async move {
            let Write { key, value, expected, ttl, quota } = write;
            let (store, of) = (self.store()?, of(owner));
            let before = store.state_get(&of, &key).await.map_err(unavailable)?;
            let (keys, bytes) = store.state_size(&of).await.map_err(unavailable)?;
            let own = before.as_ref().map_or(0, |found| found.value.len() + key.len()) as u64;
            let keys = keys + u64::from(before.is_none());
            let bytes = bytes - own.min(bytes) + (key.len() + value.len()) as u64;
            within(quota, keys, bytes)?;
            let expires = ttl.map(|ttl| {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                u64::try_from((now + ttl).as_millis()).unwrap_or(i64::MAX as u64).min(i64::MAX as u64)
            });
            let set = store.state_set(&of, &key, value, expected, expires).await.map_err(unavailable)?;
            set.map_err(|current| StateError::Conflict { current })
        })
    }

    fn remove<'a>(&'a self, owner: &'a Owner, key: &'a str, expected: Option<u64>) -> Stored<'a, bool> {
        Box::pin(async move {
            let removed = self.store()?.state_remove(&of(owner), key, expected).await.map_err(unavailable)?;
            removed.map_err(|current| StateError::Conflict { current })
        })
    }
}

/// Two writers at once may each pass and exceed a quota by one value: it bounds what is kept, to the byte it
/// does not need to be.
fn within(quota: Quota, keys: u64, bytes: u64) -> Result<(), StateError> {
    for (limit, allowed, at) in [("state-keys", quota.keys, keys), ("state-bytes", quota.bytes, bytes)] {
        if at > allowed {
            return Err(StateError::Quota { limit, allowed, at });
        }
    }
    Ok(())
}

fn of(owner: &Owner) -> StateKey {
    let Owner { provider, tenant, environment } = owner.clone();
    StateKey { provider, environment, tenant }
}

fn unavailable(error: StoreError) -> StateError {
    StateError::Unavailable(error.to_string())
}
