//! What passes between the host and a provider, as the contract's `types` and `lifecycle` interfaces say it.
//! What goes wrong between them is in `failure`.

use crate::Lease;
use crate::limits;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How long a lease is meant to live. The host decides it once, before the sandbox exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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
}

/// What becomes of a lease when its use ends. Decided once, when it is acquired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// It ends with its run.
    #[default]
    Ephemeral,
    /// It is kept for later runs of the same workspace and agent.
    Reuse,
    /// It ends with its run, unless the run failed: then it is stopped and kept for people to look at.
    KeepOnFailure,
}

impl Policy {
    const ALL: [Policy; 3] = [Policy::Ephemeral, Policy::Reuse, Policy::KeepOnFailure];

    /// The word for it, in the store and for people.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Policy::Ephemeral => "ephemeral",
            Policy::Reuse => "reuse",
            Policy::KeepOnFailure => "keep_on_failure",
        }
    }

    pub(crate) fn parse(word: &str) -> Option<Policy> {
        Policy::ALL.into_iter().find(|policy| policy.word() == word)
    }

    /// What the provider is told of it.
    #[must_use]
    pub const fn retention(self) -> Retention {
        match self {
            Policy::Reuse => Retention::Reuse,
            Policy::Ephemeral | Policy::KeepOnFailure => Retention::Ephemeral,
        }
    }
}

/// The right to use one allocation, as the provider knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderLease {
    /// The back end's own id of the allocation.
    pub id: String,
    /// JSON object the provider wants back with every later call; never secrets.
    pub metadata: Option<String>,
    /// When the back end itself will end the allocation, if it promised to. Never a wish.
    pub expires_at_ms: Option<u64>,
}

/// What became of an allocation. No receipt, no proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
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

    /// Whether the allocation still exists after it.
    #[must_use]
    pub const fn is_kept(self) -> bool {
        matches!(self, Disposition::Stopped | Disposition::Retained)
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Wishes {
    /// Working directory wanted inside the sandbox, absolute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested_cwd: Option<String>,
    /// How the workspace will be used, as the host names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace_mode: Option<String>,
    /// Id of the execution workspace, for labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace_id: Option<String>,
    /// Id of the agent, for labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Kind of agent adapter that will run inside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adapter_type: Option<String>,
    /// Workspace settings as a JSON object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace_settings: Option<String>,
    /// When the back end should end the allocation by itself. A caller who sets it gets no lease from a
    /// back end that does not promise an end.
    #[serde(skip_serializing_if = "Option::is_none")]
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

/// What to resume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResumeRequest {
    /// The lease as it was stored.
    pub lease: ProviderLease,
    /// Working directory wanted inside the sandbox, absolute.
    pub requested_cwd: Option<String>,
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

impl ProviderLease {
    /// Checks what a provider gave: nothing it says is believed because of who it is.
    pub(crate) fn check(&self) -> Result<(), String> {
        limits::text("the id of the allocation", &self.id, limits::ALLOCATION_ID)?;
        if self.id.is_empty() {
            return Err("the id of the allocation is empty; a provider must give the back end's own".into());
        }
        self.metadata.as_ref().map_or(Ok(()), |it| limits::text("the lease's metadata", it, limits::METADATA))
    }
}

impl CleanupRecord {
    /// Checks that it is about this creation and holds nothing but names.
    pub(crate) fn check(&self, creation_name: &str) -> Result<(), String> {
        if self.creation_name != creation_name {
            return Err("the cleanup record is about another creation than the one asked for".into());
        }
        if let Some(id) = &self.observed_id {
            limits::text("the observed id of the cleanup record", id, limits::ALLOCATION_ID)?;
        }
        let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if self.account_fingerprint.len() != 64 || !self.account_fingerprint.bytes().all(hex) {
            return Err(
                "the account fingerprint of the cleanup record is not 64 lower-case hex digits".into()
            );
        }
        if self.labels.len() > limits::LABELS {
            return Err(format!("the cleanup record has more than {} labels", limits::LABELS));
        }
        let plain = |text: &str| {
            let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/');
            !text.is_empty() && text.len() <= limits::LABEL && text.bytes().all(fits)
        };
        match self.labels.iter().find(|(key, value)| !plain(key) || !plain(value)) {
            Some((key, _)) => {
                Err(format!("label `{}` of the cleanup record is no plain name", key.escape_debug()))
            }
            None => Ok(()),
        }
    }
}

impl Context {
    pub(crate) fn of(lease: &Lease, remaining: Duration) -> Context {
        Context {
            driver: lease.pins.driver.clone(),
            tenant: lease.tenant.clone(),
            environment: lease.environment.clone(),
            run: lease.run.clone(),
            config: lease.config.clone(),
            remaining,
        }
    }
}
