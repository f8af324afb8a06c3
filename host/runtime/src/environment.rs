//! A configured provider, from which leases are acquired.

use crate::error::Error;
use crate::installed::convert;
use crate::installed::registry::blocking;
use crate::probe::Probed;
use crate::runtime::Leasehold;
use crate::session::Session;
use crate::validate::Accepted;
use leasehold_contract::Method;
use leasehold_contract::budget::{BudgetRequest, budget};
use leasehold_contract::capability::published_reusable;
use leasehold_contract::declaration::DriverKind;
use leasehold_engine::bindings::types::Context as CallContext;
use leasehold_engine::hook::Probe;
use leasehold_lease::registry::RegistryError;
use leasehold_lease::{Pins, Policy, Scope, Wanted};
use serde_json::{Map, Value};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A provider, and how it is to be used.
#[derive(Clone, Debug, PartialEq)]
pub struct Environment {
    /// The environment's own name, under which leases are recorded.
    pub name: String,
    /// The provider's name: a driver's key, or `provider:driver` where several declare the same.
    pub provider: String,
    /// The provider's configuration. Never holds a secret.
    pub config: Map<String, Value>,
}

/// Where an environment is written down, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place(pub String);

impl Place {
    /// The place of those that were added by hand.
    pub(crate) fn store() -> Place {
        Place("the store (`leasehold env add`)".into())
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str(&self.0)
    }
}

/// Who a lease is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct For {
    /// The tenant it belongs to.
    pub tenant: String,
    /// The run it is for, if it is for one.
    pub run: Option<String>,
}

impl Default for For {
    /// The one tenant of a host that serves one person.
    fn default() -> Self {
        For { tenant: "local".into(), run: None }
    }
}

/// How a lease is held, and what becomes of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// For whom it may be used again; without it nothing is kept between runs.
    pub scope: Option<Scope>,
    /// What becomes of it when its use ends.
    pub policy: Policy,
    /// Whether a person holds it instead of this process: it then outlives the process and ends with its
    /// lifetime.
    pub held: bool,
    /// Whether work that was not brought back must never be deleted without a person.
    pub preserve: bool,
    /// How long it may be used in all; none takes a day.
    pub lifetime: Option<Duration>,
}

impl Environment {
    /// An environment of this provider, named like it and without configuration.
    pub fn of(provider: impl Into<String>) -> Self {
        let provider = provider.into();
        Environment { name: provider.clone(), provider, config: Map::new() }
    }

    /// Acquires a lease that ends with its run.
    ///
    /// Dropping the future undoes it. A lease whose host dies is ended by [`Leasehold::reconcile`].
    ///
    /// # Errors
    /// When there is no such provider, or it does not supply a sandbox.
    pub async fn acquire(&self, runtime: &Leasehold, who: For) -> Result<Session, Error> {
        self.acquire_as(runtime, who, Terms::default()).await
    }

    /// The same on other terms.
    ///
    /// # Errors
    /// As [`Environment::acquire`].
    pub async fn acquire_as(&self, runtime: &Leasehold, who: For, terms: Terms) -> Result<Session, Error> {
        // Until the lease is written down and pins its component, an upgrade must not take it away.
        let shelf = runtime.components().shelf().clone();
        let _in_use = blocking("using a component", move || shelf.in_use()).await?;
        let resolved = runtime.resolve(&self.provider).await?;
        let declared = &resolved.driver;
        let pins = Pins {
            provider: resolved.record.key.clone(),
            plugin: resolved.record.id.clone(),
            driver: declared.driver_key.clone(),
            digest: resolved.record.digest.clone(),
        };
        let verification = resolved.component.provider.inspection().verification();
        let mut wanted = Wanted::new(&self.name, pins, who.tenant);
        wanted.run = who.run;
        wanted.config = Value::Object(self.checked(declared)?).to_string();
        wanted.declared_acquire_ms = declared.default_acquire_timeout_ms;
        wanted.reusable = published_reusable(verification, &declared.capabilities);
        wanted.scope = terms.scope;
        wanted.policy = terms.policy;
        wanted.held = terms.held;
        wanted.preserve = terms.preserve;
        if let Some(lifetime) = terms.lifetime {
            wanted.lifetime = lifetime;
        }
        let lease = runtime.leases().acquire(wanted).await?.lease;
        if lease.pins.digest != resolved.record.digest {
            // A kept one was taken up, of a component that an upgrade has replaced since.
            return Session::of(runtime, lease).await;
        }
        Ok(Session::by(runtime, lease, resolved.component, &Ok(resolved.driver)))
    }

    /// Asks the provider whether a lease could be acquired now. That it could not, or that there is no such
    /// provider, is an answer.
    ///
    /// # Errors
    /// When the store cannot be used.
    pub async fn probe(&self, runtime: &Leasehold) -> Result<Probed, Error> {
        let resolved = match runtime.resolve(&self.provider).await {
            Ok(resolved) => resolved,
            Err(Error::Registry(RegistryError::Refused(refusal))) => {
                return Ok(Probed::not_to_be_had(&self.provider, &refusal));
            }
            Err(error) => return Err(error),
        };
        if !resolved.component.has(Method::Probe) {
            return Ok(Probed::has_no_probe(&self.provider));
        }
        let config = Value::Object(self.checked(&resolved.driver)?).to_string();
        let context = CallContext {
            driver_key: resolved.driver.driver_key,
            tenant: For::default().tenant,
            environment_id: self.name.clone(),
            run_id: None,
            invocation_id: crate::id::random("call"),
            config,
            remaining_ms: 0,
            trace_parent: None,
        };
        let request = BudgetRequest {
            requested_ms: None,
            config: &self.config,
            declared_acquire_ms: None,
            kind: DriverKind::SandboxProvider,
        };
        let time = Duration::from_millis(budget(Method::Probe, &request).timeout_ms);
        let finished = resolved.component.call(Probe {}, context, time, None, CancellationToken::new()).await;
        Ok(Probed::answered(finished.answer.map(|answer| answer.map_err(convert::fault))))
    }
}

impl Leasehold {
    /// Every environment and where it is written down, by name.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn environments(&self) -> Result<Vec<(Environment, Place)>, Error> {
        let stored = self.0.store.environments().await?.into_iter().map(|record| {
            let (name, provider, config) = (record.name, record.provider, record.config);
            (Environment { name, provider, config }, Place::store())
        });
        let mut all: Vec<_> = self.0.environments.iter().cloned().chain(stored).collect();
        all.sort_by(|(one, _), (other, _)| one.name.cmp(&other.name));
        Ok(all)
    }

    /// The environment of this name.
    ///
    /// # Errors
    /// When there is none, or when one name is written down in two places: which is meant, nobody can say.
    pub async fn environment(&self, name: &str) -> Result<Environment, Error> {
        let all = self.environments().await?;
        let mut found = all.iter().filter(|(environment, _)| environment.name == name);
        match (found.next(), found.next()) {
            (Some((environment, _)), None) => Ok(environment.clone()),
            (Some((_, one)), Some((_, other))) => {
                Err(Error::TwoPlaces { name: name.into(), places: [one.to_string(), other.to_string()] })
            }
            (None, _) => {
                let mut known: Vec<_> = all.into_iter().map(|(environment, _)| environment.name).collect();
                known.dedup();
                Err(Error::UnknownEnvironment { name: name.into(), known })
            }
        }
    }

    /// Adds an environment to the store, its configuration as the provider normalised it. Gives what the
    /// provider found worth saying.
    ///
    /// # Errors
    /// When its name is taken or cannot be one, no provider that can be used has its provider's name, or the
    /// configuration is refused.
    pub async fn add_environment(&self, environment: &Environment) -> Result<Vec<String>, Error> {
        let Environment { name, provider, .. } = environment;
        if !names_an_environment(name) {
            return Err(Error::EnvironmentName { name: name.clone() });
        }
        self.declared(provider).await?;
        let taken = |place: String| Error::EnvironmentTaken { name: name.clone(), place };
        if let Some((_, place)) = self.0.environments.iter().find(|(known, _)| known.name == *name) {
            return Err(taken(place.to_string()));
        }
        let Accepted { config, warnings } = environment.validate(self).await?;
        match self.0.store.add_environment(name, provider, &config).await? {
            true => Ok(warnings),
            false => Err(taken(Place::store().to_string())),
        }
    }

    /// Removes an environment from the store.
    ///
    /// # Errors
    /// When it is not there, is the host application's own, or leases of it are kept or not cleaned up.
    pub async fn remove_environment(&self, name: &str) -> Result<(), Error> {
        let all = self.environments().await?;
        let (stored, others): (Vec<_>, Vec<_>) = all
            .into_iter()
            .filter(|(environment, _)| environment.name == name)
            .partition(|(_, place)| *place == Place::store());
        if stored.is_empty() {
            return Err(match others.into_iter().next() {
                Some((_, place)) => Error::EnvironmentElsewhere { name: name.into(), place: place.0 },
                None => self.environment(name).await.err().unwrap_or(Error::Unfinished),
            });
        }
        let blockers = self.leases().blockers(name).await?;
        if !blockers.is_empty() {
            return Err(Error::EnvironmentInUse { name: name.into(), blockers });
        }
        self.0.store.remove_environment(name).await?;
        Ok(())
    }
}

/// The longest name of an environment; it stands in labels of back ends, whose shortest limit is 63.
const NAME_MAX: usize = 63;

/// Names stand in files, labels and on command lines.
fn names_an_environment(name: &str) -> bool {
    let first = |c: char| c.is_ascii_alphanumeric();
    name.len() <= NAME_MAX && name.starts_with(first) && name.chars().all(|c| first(c) || "._-".contains(c))
}
