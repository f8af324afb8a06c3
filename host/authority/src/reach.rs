//! What one call may reach: its policy, its secrets, and who is told of it.

use crate::audit::{Entry, Sink};
use crate::secret::resolve::{Consumer, Resolver};
use crate::secret::{SecretError, Secrets};
use crate::state::StateStore;
use leasehold_contract::authority::{Denial, Permission, Policy};
use leasehold_engine::{Authority, Filter, Scope};
use serde_json::Value;
use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

/// What is shared by every call of a host: whoever knows secrets, keeps state and is told of uses.
#[derive(Clone)]
pub struct Services {
    /// Knows the values of secrets.
    pub resolver: Arc<dyn Resolver>,
    /// Keeps providers' state.
    pub state: Arc<dyn StateStore>,
    /// Is told of every use and every refusal.
    pub audit: Arc<dyn Sink>,
}

impl std::fmt::Debug for Services {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Services")
    }
}

/// What one call may reach.
pub struct Reach {
    policy: Arc<Policy>,
    secrets: Secrets,
    services: Services,
    latest: Mutex<Option<Verdict>>,
}

/// Refusals of one call that are told to people as they happen; all of them are in the audit.
const DENIALS_TOLD: u64 = 20;

/// What became of the latest request of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Let through.
    Allowed,
    /// No grant covers it, or a rule forbids it.
    Denied(String),
    /// A limit was hit.
    Limit(String),
}

impl Reach {
    /// Makes ready for one call: resolves the secrets of its stored configuration. Gives the configuration as
    /// the guest gets it.
    ///
    /// # Errors
    /// When a secret has no value.
    pub async fn open(
        policy: Arc<Policy>,
        services: Services,
        config: &str,
        consumer: &Consumer,
    ) -> Result<(String, Arc<Reach>), SecretError> {
        let (config, secrets) = Secrets::issue(config, &policy, services.resolver.as_ref(), consumer).await?;
        Ok((config, Arc::new(Reach { policy, secrets, services, latest: Mutex::default() })))
    }

    /// The policy.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The secrets.
    pub fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// Where the provider's state is.
    pub fn state(&self) -> &Arc<dyn StateStore> {
        &self.services.state
    }

    /// What became of the latest request.
    pub fn latest(&self) -> Option<Verdict> {
        self.lock().clone()
    }

    /// Notes what became of a request.
    pub(crate) fn note(&self, verdict: Verdict) {
        *self.lock() = Some(verdict);
    }

    /// Tells of a refusal.
    pub(crate) fn denied(&self, scope: &Scope, denial: &Denial) {
        let count = scope.meter.denial();
        let text = self.scrubbed(&denial.to_string());
        let (provider, lease, invocation) = (&denial.provider, &scope.lease, &scope.invocation);
        if count <= DENIALS_TOLD {
            tracing::warn!(target: "leasehold::denied", provider, lease, invocation, "{text}");
        }
        let target = self.scrubbed(&denial.asked);
        self.note(Verdict::Denied(text.clone()));
        let entry = Entry::new(scope, self.policy.provider(), denial.permission, target);
        self.services.audit.record(Entry { denied: Some(text), ..entry });
    }

    /// Tells of a use that has ended.
    pub(crate) fn used(&self, scope: &Scope, permission: Permission, target: String, bytes: (u64, u64)) {
        let target = self.scrubbed(&target);
        let entry = Entry::new(scope, self.policy.provider(), permission, target);
        self.services.audit.record(Entry { bytes_out: bytes.0, bytes_in: bytes.1, ..entry });
    }

    fn scrubbed(&self, text: &str) -> String {
        match self.secrets.scrubber() {
            Some(scrubber) => scrubber.text(text).into_owned(),
            None => text.to_owned(),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Verdict>> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Authority for Reach {
    fn scrub(&self, text: &mut String) {
        if let Some(scrubber) = self.secrets.scrubber()
            && let Cow::Owned(scrubbed) = scrubber.text(text)
        {
            *text = scrubbed;
        }
    }

    fn scrub_json(&self, text: &mut String) {
        let Some(scrubber) = self.secrets.scrubber() else { return };
        // What is no JSON is refused elsewhere; as text it may still be quoted.
        match serde_json::from_str::<Value>(text) {
            Ok(mut value) => {
                let before = value.clone();
                scrubber.json(&mut value);
                if value != before {
                    *text = value.to_string();
                }
            }
            Err(_) => self.scrub(text),
        }
    }

    fn restore(&self, config: &mut String) {
        match serde_json::from_str::<Value>(config) {
            Ok(mut value) => {
                self.secrets.restore(&mut value);
                *config = value.to_string();
            }
            Err(_) => self.scrub(config),
        }
    }

    fn filter(&self) -> Option<Box<dyn Filter>> {
        self.secrets.scrubber().map(|scrubber| Box::new(scrubber.stream()) as Box<dyn Filter>)
    }
}

impl std::fmt::Debug for Reach {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reach").field("provider", &self.policy.provider()).finish_non_exhaustive()
    }
}
