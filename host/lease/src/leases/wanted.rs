//! What a caller wants a lease of.

use super::times;
use crate::store::Intent;
use crate::{AcquireRequest, LeaseId, Owner, Pins, Policy, Scope, Wishes, fingerprint};
use leasehold_contract::Method;
use std::time::Duration;

/// How long a lease may be used in all unless its caller says otherwise: a day, six times the longest run.
/// Nothing a provider does makes it longer; when it is over the lease is ended, or stopped where it holds
/// work.
const LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

/// What becomes of a kept lease that cannot be taken up again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLost {
    /// It is deleted and replaced, unless it holds work that was not brought back.
    #[default]
    Replace,
    /// It is stopped and kept, and the caller gets an error.
    Preserve,
}

/// What a caller wants a lease of.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The environment it is acquired from.
    pub environment: String,
    /// The provider that is to make it.
    pub pins: Pins,
    /// The tenant it will belong to.
    pub tenant: String,
    /// The run it is for.
    pub run: Option<String>,
    /// For whom it may be used again. Without it nothing is kept between runs.
    pub scope: Option<Scope>,
    /// What is to become of it when its use ends.
    pub policy: Policy,
    /// Whether the provider can be relied on to keep leases: declared, verified and not taken away.
    pub reusable: bool,
    /// What becomes of a kept lease that cannot be taken up again.
    pub on_lost: OnLost,
    /// Whether work that was not brought back must never be deleted without a person.
    pub preserve: bool,
    /// Whether a person holds it: then it belongs to no process and ends with its lifetime.
    pub held: bool,
    /// Driver configuration as a JSON object, without secrets: it is stored as it is.
    pub config: String,
    /// Which version of which secret goes with it; another version makes another lease.
    pub secrets: Vec<(String, String)>,
    /// What else the caller wishes.
    pub wishes: Wishes,
    /// How long it may be used in all, over every run.
    pub lifetime: Duration,
    /// The declaration's `defaultAcquireTimeoutMs`.
    pub declared_acquire_ms: Option<u64>,
    /// How long the acquisition may take; none leaves it to the contract's budgets.
    pub budget: Option<Duration>,
}

impl Wanted {
    /// A lease that ends with its use, of this environment and provider.
    #[must_use]
    pub fn new(environment: impl Into<String>, pins: Pins, tenant: impl Into<String>) -> Wanted {
        Wanted {
            environment: environment.into(),
            pins,
            tenant: tenant.into(),
            run: None,
            scope: None,
            policy: Policy::Ephemeral,
            reusable: false,
            on_lost: OnLost::Replace,
            preserve: false,
            held: false,
            config: "{}".into(),
            secrets: Vec::new(),
            wishes: Wishes::default(),
            lifetime: LIFETIME,
            declared_acquire_ms: None,
            budget: None,
        }
    }

    /// Decides, once, what becomes of the lease, and brings the configuration in line with it. Kept is only
    /// what a run, a workspace and an agent can be named for; a lease acquired to try something out never
    /// is, so that ending it ends nobody's work.
    pub(super) fn decided(mut self) -> Wanted {
        let named = self.run.is_some() && self.scope.is_some();
        if self.policy == Policy::Reuse && !(self.reusable && named) {
            self.policy = Policy::Ephemeral;
        }
        if self.policy != Policy::Reuse {
            self.scope = None;
        }
        self.config = fingerprint::sent(&self.config, self.policy.retention());
        self
    }

    pub(super) fn fingerprint(&self) -> String {
        fingerprint::of(self)
    }

    pub(super) fn acquire_time(&self) -> Duration {
        let by_contract = || times::of_call(Method::AcquireLease, &self.config, self.declared_acquire_ms);
        self.budget.unwrap_or_else(by_contract)
    }

    /// One deadline for every attempt to resume.
    pub(super) fn resume_time(&self) -> Duration {
        times::of_call(Method::ResumeLease, &self.config, self.declared_acquire_ms)
    }

    /// What is stored of it, and what the provider is asked.
    pub(crate) fn split(
        &self,
        id: LeaseId,
        owner: Owner,
        settle: Duration,
        reason: String,
    ) -> (Intent, AcquireRequest) {
        let request = AcquireRequest {
            creation_name: id.as_str().to_owned(),
            retention: self.policy.retention(),
            wishes: self.wishes.clone(),
        };
        let intent = Intent {
            id,
            environment: self.environment.clone(),
            pins: self.pins.clone(),
            tenant: self.tenant.clone(),
            run: self.run.clone(),
            scope: self.scope.clone(),
            fingerprint: self.fingerprint(),
            policy: self.policy,
            preserve: self.preserve || self.held,
            held: self.held,
            config: self.config.clone(),
            wishes: self.wishes.clone(),
            lifetime: self.lifetime,
            owner,
            settle: self.acquire_time() + settle,
            reason,
        };
        (intent, request)
    }
}
