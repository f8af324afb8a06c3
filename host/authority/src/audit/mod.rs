//! What was let through and what was refused: who, when, to where, how much.

use leasehold_contract::authority::Permission;
use leasehold_engine::Scope;
use serde::{Deserialize, Serialize};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// One use of a grant, or one refusal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// When it ended, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// The tenant.
    pub tenant: String,
    /// The environment.
    pub environment: String,
    /// The provider's name.
    pub provider: String,
    /// The component's digest.
    pub digest: String,
    /// The lease, if the call was about one.
    pub lease: Option<String>,
    /// The run, if the call belonged to one.
    pub run: Option<String>,
    /// The call.
    pub invocation: String,
    /// The method.
    pub method: String,
    /// The permission.
    pub permission: Permission,
    /// To where, or what.
    pub target: String,
    /// Why it was refused; none when it was let through.
    pub denied: Option<String>,
    /// Bytes of bodies or streams that were sent.
    pub bytes_out: u64,
    /// Bytes that came back.
    pub bytes_in: u64,
}

impl Entry {
    /// An entry of now.
    pub fn new(scope: &Scope, provider: &str, permission: Permission, target: String) -> Entry {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Entry {
            at_ms: u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
            tenant: scope.tenant.clone(),
            environment: scope.environment.clone(),
            provider: provider.to_owned(),
            digest: scope.provider.to_string(),
            lease: scope.lease.clone(),
            run: scope.run.clone(),
            invocation: scope.invocation.clone(),
            method: scope.method.name().to_owned(),
            permission,
            target,
            denied: None,
            bytes_out: 0,
            bytes_in: 0,
        }
    }
}

/// Takes entries. Called in the middle of requests, so it must not wait; what it cannot keep it says so in
/// its own log.
pub trait Sink: Send + Sync {
    /// Takes one entry.
    fn record(&self, entry: Entry);
}

/// Keeps nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nothing;

impl Sink for Nothing {
    fn record(&self, _: Entry) {}
}

/// Keeps entries in memory, for tests and for hosts that keep them elsewhere.
#[derive(Debug, Default)]
pub struct Memory(Mutex<Vec<Entry>>);

impl Memory {
    /// Everything recorded so far.
    pub fn entries(&self) -> Vec<Entry> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Sink for Memory {
    fn record(&self, entry: Entry) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
    }
}
