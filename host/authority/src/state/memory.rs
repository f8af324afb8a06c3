//! State that ends with the host's process.

use super::{Owner, StateError, StateStore, Stored, Versioned, Write};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Keeps state in memory, for tests and for hosts that want nothing else.
#[derive(Debug, Default)]
pub struct MemoryState(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// One count for all: a version that was ever given is never given again.
    versions: u64,
    owners: BTreeMap<Owner, BTreeMap<String, Slot>>,
}

#[derive(Debug)]
struct Slot {
    value: Vec<u8>,
    version: u64,
    expires: Option<Instant>,
}

impl MemoryState {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// The owner's slots, without those that have expired.
    fn alive(&mut self, owner: &Owner) -> &mut BTreeMap<String, Slot> {
        let slots = self.owners.entry(owner.clone()).or_default();
        let now = Instant::now();
        slots.retain(|_, slot| slot.expires.is_none_or(|expires| expires > now));
        slots
    }
}

impl StateStore for MemoryState {
    fn get<'a>(&'a self, owner: &'a Owner, key: &'a str) -> Stored<'a, Option<Versioned>> {
        Box::pin(async move {
            let mut inner = self.lock();
            let slot = inner.alive(owner).get(key);
            Ok(slot.map(|slot| Versioned { value: slot.value.clone(), version: slot.version }))
        })
    }

    fn set<'a>(&'a self, owner: &'a Owner, write: Write) -> Stored<'a, u64> {
        Box::pin(async move {
            let Write { key, value, expected, ttl, quota } = write;
            let mut inner = self.lock();
            let slots = inner.alive(owner);
            let current = slots.get(&key).map(|slot| slot.version);
            if expected.is_some_and(|expected| expected != current.unwrap_or(0)) {
                return Err(StateError::Conflict { current });
            }
            let others = slots.iter().filter(|(other, _)| **other != key);
            let (keys, bytes) = others
                .fold((1, (key.len() + value.len()) as u64), |(keys, bytes), (key, slot)| {
                    (keys + 1, bytes + (key.len() + slot.value.len()) as u64)
                });
            for (limit, allowed, at) in
                [("state-keys", quota.keys, keys), ("state-bytes", quota.bytes, bytes)]
            {
                if at > allowed {
                    return Err(StateError::Quota { limit, allowed, at });
                }
            }
            inner.versions += 1;
            let version = inner.versions;
            let expires = ttl.and_then(|ttl| Instant::now().checked_add(ttl));
            inner.alive(owner).insert(key, Slot { value, version, expires });
            Ok(version)
        })
    }

    fn remove<'a>(&'a self, owner: &'a Owner, key: &'a str, expected: Option<u64>) -> Stored<'a, bool> {
        Box::pin(async move {
            let mut inner = self.lock();
            let slots = inner.alive(owner);
            let current = slots.get(key).map(|slot| slot.version);
            match (current, expected) {
                (None, None | Some(0)) => Ok(false),
                (current, Some(expected)) if current != Some(expected) => {
                    Err(StateError::Conflict { current })
                }
                _ => Ok(slots.remove(key).is_some()),
            }
        })
    }
}
