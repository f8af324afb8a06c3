//! What one run takes away.
//!
//! A narrowing can only remove. It has no way to add, and `true` in a host's narrowing means nothing.

use super::Capability;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How long the host means to keep a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeasePolicy {
    /// Deleted at the end of the run.
    Ephemeral,
    /// Kept for later runs in the same environment.
    ReuseByEnvironment,
    /// Kept for later runs in the same execution workspace.
    ReuseByExecutionWorkspace,
    /// Kept only when the run failed, for people to look at.
    RetainOnFailure,
}

impl LeasePolicy {
    /// Every policy.
    pub const ALL: [LeasePolicy; 4] = [
        LeasePolicy::Ephemeral,
        LeasePolicy::ReuseByEnvironment,
        LeasePolicy::ReuseByExecutionWorkspace,
        LeasePolicy::RetainOnFailure,
    ];

    /// The name in JSON and in messages.
    pub const fn name(self) -> &'static str {
        match self {
            LeasePolicy::Ephemeral => "ephemeral",
            LeasePolicy::ReuseByEnvironment => "reuse_by_environment",
            LeasePolicy::ReuseByExecutionWorkspace => "reuse_by_execution_workspace",
            LeasePolicy::RetainOnFailure => "retain_on_failure",
        }
    }

    /// The policy of this name. Case matters.
    pub fn by_name(name: &str) -> Option<LeasePolicy> {
        LeasePolicy::ALL.into_iter().find(|policy| policy.name() == name)
    }
}

/// What is wrong with one key of a host application's narrowing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NarrowingFault {
    /// The whole value is no object.
    #[error("a narrowing is an object of capability keys and booleans")]
    NotAnObject,
    /// No capability has this name.
    #[error("{key:?} is no capability; known: {}", Capability::ALL.map(Capability::name).join(", "))]
    UnknownKey {
        /// The key as written.
        key: String,
    },
    /// The value of this key is no boolean.
    #[error("{key:?} must be true or false")]
    NotABoolean {
        /// The key as written.
        key: String,
    },
}

/// What one run takes away, each with the reasons.
///
/// Built step by step from [`Narrowing::none`]; every step removes or does nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Narrowing {
    reasons: [Vec<String>; Capability::ALL.len()],
}

impl Narrowing {
    /// A narrowing that removes nothing.
    pub fn none() -> Self {
        Narrowing::default()
    }

    /// Removes reuse unless the lease is kept for its environment. No policy (a run without a lease) removes
    /// nothing.
    #[must_use]
    pub fn lease_policy(self, policy: Option<LeasePolicy>) -> Self {
        match policy {
            None | Some(LeasePolicy::ReuseByEnvironment) => self,
            Some(LeasePolicy::Ephemeral) => self.remove(Capability::ReusableLeases, "ephemeral lease"),
            Some(other) => self.remove(Capability::ReusableLeases, &format!("lease policy {}", other.name())),
        }
    }

    /// Removes native sync when the stored lease metadata says the allocation cannot do it: `backend` is
    /// `"job"` (older leases carry nothing else) or `nativeFileSyncUnsupported` is exactly `true`. Metadata
    /// that is no object says nothing.
    #[must_use]
    pub fn lease_metadata(self, metadata: &Value) -> Self {
        let job = metadata.get("backend").and_then(Value::as_str) == Some("job");
        let unsupported = metadata.get("nativeFileSyncUnsupported").and_then(Value::as_bool) == Some(true);
        let narrowed = if job { self.remove_sync("job-backed lease") } else { self };
        if unsupported { narrowed.remove_sync("lease marked nativeFileSyncUnsupported") } else { narrowed }
    }

    /// Removes live sessions and live output when the configuration could not be resolved: nothing is known
    /// of such a provider. An empty configuration is resolved.
    #[must_use]
    pub fn config_resolution_failed(self, failed: bool) -> Self {
        if !failed {
            return self;
        }
        let reason = "config resolution failed";
        self.remove(Capability::PersistentProcessSessions, reason)
            .remove(Capability::IncrementalSessionOutput, reason)
    }

    /// Reads a host application's own narrowing, for example `{"nativeSyncIn": false}`. `true` is accepted
    /// and means nothing. Fails at the first key that is no capability or holds no boolean.
    pub fn from_json(value: &Value) -> Result<Self, NarrowingFault> {
        let keys = value.as_object().ok_or(NarrowingFault::NotAnObject)?;
        keys.iter().try_fold(Narrowing::none(), |narrowing, (key, value)| {
            let capability =
                Capability::by_name(key).ok_or_else(|| NarrowingFault::UnknownKey { key: key.clone() })?;
            match value.as_bool() {
                Some(true) => Ok(narrowing),
                Some(false) => Ok(narrowing.remove(capability, "by the host application")),
                None => Err(NarrowingFault::NotABoolean { key: key.clone() }),
            }
        })
    }

    /// Removes one capability for a reason people will read after `narrowed: `.
    #[must_use]
    pub fn remove(mut self, capability: Capability, reason: &str) -> Self {
        let reasons = &mut self.reasons[capability as usize];
        if !reasons.iter().any(|known| known == reason) {
            reasons.push(reason.to_owned());
        }
        self
    }

    /// Both narrowings together: what either removes is removed.
    #[must_use]
    pub fn and(self, other: &Narrowing) -> Self {
        Capability::ALL.into_iter().fold(self, |narrowing, capability| {
            other.reasons(capability).iter().fold(narrowing, |all, reason| all.remove(capability, reason))
        })
    }

    /// Whether this run takes the capability away.
    pub fn removes(&self, capability: Capability) -> bool {
        !self.reasons(capability).is_empty()
    }

    /// Why, in the order the removals were made; empty when the capability is left alone.
    pub fn reasons(&self, capability: Capability) -> &[String] {
        &self.reasons[capability as usize]
    }

    fn remove_sync(self, reason: &str) -> Self {
        self.remove(Capability::NativeSyncIn, reason).remove(Capability::NativeSyncOut, reason)
    }
}
