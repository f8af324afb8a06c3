//! What passes between the host and a provider, as the contract's `types` and `lifecycle` interfaces say it.
//! What goes wrong between them is in `failure`.

use crate::Lease;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How long a lease is meant to live. The host decides it once, before the sandbox exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Retention {
    /// The sandbox ends with the run; release deletes it.
    Ephemeral,
    /// The sandbox is kept between runs; release stops or detaches it.
    Reuse,
}

impl Retention {
    /// The word for it, in the store and for people.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Retention::Ephemeral => "ephemeral",
            Retention::Reuse => "reuse",
        }
    }

    pub(crate) fn parse(word: &str) -> Option<Retention> {
        [Retention::Ephemeral, Retention::Reuse].into_iter().find(|retention| retention.word() == word)
    }
}

/// The right to use one allocation, as the provider knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderLease {
    /// The back end's own id of the allocation.
    pub id: String,
    /// JSON object the provider wants back with every later call; never secrets.
    pub metadata: Option<String>,
    /// When the back end itself will end the allocation, if it promised to. Never a wish.
    pub expires_at_ms: Option<u64>,
}

/// What became of an allocation. No receipt, no proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Disposition {
    /// The allocation and its files no longer exist.
    Destroyed,
    /// The back end says it knows no such allocation.
    AlreadyGone,
    /// The allocation is stopped; its files are kept.
    Stopped,
    /// The allocation still runs and is kept for reuse.
    Retained,
}

impl Disposition {
    const ALL: [Disposition; 4] =
        [Disposition::Destroyed, Disposition::AlreadyGone, Disposition::Stopped, Disposition::Retained];

    /// The word for it, in the store and for people.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Disposition::Destroyed => "destroyed",
            Disposition::AlreadyGone => "already-gone",
            Disposition::Stopped => "stopped",
            Disposition::Retained => "retained",
        }
    }

    pub(crate) fn parse(word: &str) -> Option<Disposition> {
        Disposition::ALL.into_iter().find(|disposition| disposition.word() == word)
    }
}

/// Proof of what became of exactly one allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The allocation this receipt is about; must be the id in the request.
    pub lease_id: String,
    /// What became of it.
    pub state: Disposition,
}

/// What the back end knows under a creation name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// Started; can be adopted.
    Started(ProviderLease),
    /// Still being prepared by the back end; the text is its own id.
    Preparing(String),
    /// Exists in a state that will not become started; the text is its own id.
    Unusable(String),
    /// Nothing under that name now. No proof that nothing will appear.
    Absent,
}

/// What a provider leaves behind when a creation may have happened: enough to find it again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CleanupRecord {
    /// The creation name the attempt used.
    pub creation_name: String,
    /// The back end's id of the allocation, once it has been seen.
    pub observed_id: Option<String>,
    /// SHA-256 of the account the attempt used, in 64 lower-case hex digits.
    pub account_fingerprint: String,
    /// Labels put on the allocation.
    pub labels: Vec<(String, String)>,
}

/// What a caller may wish of an allocation beyond its retention. All of it may be left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wishes {
    /// Working directory wanted inside the sandbox, absolute.
    pub requested_cwd: Option<String>,
    /// How the workspace will be used, as the host names it.
    pub workspace_mode: Option<String>,
    /// Id of the execution workspace, for labels.
    pub workspace_id: Option<String>,
    /// Id of the agent, for labels.
    pub agent_id: Option<String>,
    /// Kind of agent adapter that will run inside.
    pub adapter_type: Option<String>,
    /// Workspace settings as a JSON object.
    pub workspace_settings: Option<String>,
    /// When the back end should end the allocation by itself.
    pub requested_expires_at_ms: Option<u64>,
}

/// What the host wants of an acquisition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcquireRequest {
    /// Idempotency key, made and stored by the host before the call.
    pub creation_name: String,
    /// The retention the host decided.
    pub retention: Retention,
    /// The rest.
    pub wishes: Wishes,
}

/// What to release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleaseRequest {
    /// The lease as it was stored.
    pub lease: ProviderLease,
    /// The retention decided at acquisition.
    pub retention: Retention,
    /// Whether commands still running inside must be ended first.
    pub cancel_active_work: bool,
}

/// What to destroy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DestroyTarget {
    /// An allocation that was leased.
    Lease(ProviderLease),
    /// An allocation that a failed acquisition may have left behind.
    Abandoned(CleanupRecord),
}

/// Who calls, for whom, and how long the call may take. Taken from the stored lease for every call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    /// Key of the driver declaration the call is for.
    pub driver: String,
    /// The tenant on whose behalf the host calls.
    pub tenant: String,
    /// The environment whose configuration is in `config`.
    pub environment: String,
    /// The run, or none when the call belongs to no run.
    pub run: Option<String>,
    /// Driver configuration as a JSON object, without secrets.
    pub config: String,
    /// Wall time the call may take.
    pub remaining: Duration,
}

impl Context {
    pub(crate) fn of(lease: &Lease, remaining: Duration) -> Context {
        Context {
            driver: lease.driver.clone(),
            tenant: lease.tenant.clone(),
            environment: lease.environment.clone(),
            run: lease.run.clone(),
            config: lease.config.clone(),
            remaining,
        }
    }
}
