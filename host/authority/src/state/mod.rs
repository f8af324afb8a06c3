//! A small key-value store for each provider and environment of a tenant.

mod memory;

pub use memory::MemoryState;

use std::pin::Pin;
use std::time::Duration;

/// The longest key. Hit: the write is refused; a read finds nothing.
pub const KEY_MAX: usize = 256;

/// Whose state. No two owners ever see each other's.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner {
    /// The provider's name: its state outlives an upgrade.
    pub provider: String,
    /// The tenant.
    pub tenant: String,
    /// The environment.
    pub environment: String,
}

/// A value and its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versioned {
    /// The bytes.
    pub value: Vec<u8>,
    /// Grows with every change of the key, over removals as well.
    pub version: u64,
}

/// How much an owner may keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Keys.
    pub keys: u64,
    /// Bytes of keys and values together.
    pub bytes: u64,
}

/// What to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// The key.
    pub key: String,
    /// The value.
    pub value: Vec<u8>,
    /// Only over this version; 0 only when the key is absent.
    pub expected: Option<u64>,
    /// How long it is kept.
    pub ttl: Option<Duration>,
    /// What the owner may keep in all.
    pub quota: Quota,
}

/// Why a store did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// Another version is there.
    #[error("another version is there: {current:?}")]
    Conflict {
        /// The version there is; none when the key is absent.
        current: Option<u64>,
    },
    /// The owner would keep more than it may.
    #[error("limit `{limit}` hit: {at} of at most {allowed}")]
    Quota {
        /// The limit's name.
        limit: &'static str,
        /// The value in force.
        allowed: u64,
        /// The value that would be reached.
        at: u64,
    },
    /// The store cannot be reached.
    #[error("the store cannot be reached: {0}")]
    Unavailable(String),
}

/// What a store returns.
pub type Stored<'a, T> = Pin<Box<dyn Future<Output = Result<T, StateError>> + Send + 'a>>;

/// Keeps state of providers.
pub trait StateStore: Send + Sync {
    /// The value of a key; none when it is absent or has expired.
    fn get<'a>(&'a self, owner: &'a Owner, key: &'a str) -> Stored<'a, Option<Versioned>>;

    /// Writes a value and returns its version.
    fn set<'a>(&'a self, owner: &'a Owner, write: Write) -> Stored<'a, u64>;

    /// Removes a value, only at this version when one is given. False when it was absent.
    fn remove<'a>(&'a self, owner: &'a Owner, key: &'a str, expected: Option<u64>) -> Stored<'a, bool>;
}
