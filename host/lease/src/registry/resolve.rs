//! From a name or a pin to a component that can be called.

use super::{
    AfterFailure, ComponentRef, Loader, ProviderRecord, ProviderStatus, Refusal, Registry, RegistryError,
    Standing, Unloaded,
};
use crate::Clock;
use leasehold_contract::capability::{IdentityFailure, InstalledPlugin, identify};
use leasehold_contract::declaration::{DriverDeclaration, DriverKind};
use std::time::Duration;

/// How often a component that is not there yet is looked for again. Short against what people notice, long
/// against what a look costs.
pub const POLL_EVERY: Duration = Duration::from_millis(100);

/// How long a component that is not there yet is waited for: as long as an upgrade or a start beside it takes.
/// After that the acquisition is refused as not loadable.
pub const POLL_FOR: Duration = Duration::from_secs(5);

/// How long to wait for a component whose absence may pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The pause between two looks.
    pub every: Duration,
    /// How long in all. The deadline decides, not the number of looks.
    pub at_most: Duration,
}

impl Default for Wait {
    fn default() -> Wait {
        Wait { every: POLL_EVERY, at_most: POLL_FOR }
    }
}

/// A provider that is ready, and its component.
#[derive(Clone, Debug)]
pub struct Resolved<C> {
    /// The provider.
    pub record: ProviderRecord,
    /// The driver's declaration.
    pub driver: DriverDeclaration,
    /// The component, ready to be called.
    pub component: C,
}

impl<L: Loader> Registry<L> {
    /// The provider for new leases of this driver: the first, in the order of installation, that is ready and
    /// can be loaded. A name of the form `provider:driver` means exactly that one. Nothing is waited for.
    ///
    /// # Errors
    /// A [`Refusal`] that says what stands in the way, of the first provider that something stands in the way
    /// of.
    pub async fn resolve(&self, name: &str) -> Result<Resolved<L::Component>, RegistryError> {
        match name.split_once(':') {
            Some((key, driver)) => self.resolve_exact(key, driver).await,
            None => self.resolve_first(name).await,
        }
    }

    /// The same; what may pass by itself is waited for.
    ///
    /// # Errors
    /// As [`Registry::resolve`], after the wait.
    pub async fn resolve_waiting(
        &self,
        name: &str,
        wait: Wait,
        clock: &dyn Clock,
    ) -> Result<Resolved<L::Component>, RegistryError> {
        let mut deadline = clock.sleep(wait.at_most);
        loop {
            let refused = match self.resolve(name).await {
                Err(RegistryError::Refused(refused)) if refused.may_pass() => refused,
                resolved => return resolved,
            };
            tokio::select! {
                biased;
                () = &mut deadline => return Err(refused.into()),
                () = clock.sleep(wait.every) => {}
            }
        }
    }

    /// The provider that a name means, whatever its status: the first, in the order of installation, that
    /// declares the driver, or the one that is named.
    ///
    /// # Errors
    /// [`Refusal::NotInstalled`], [`Refusal::UnknownKey`] and [`Refusal::NotDeclared`].
    pub async fn declared(&self, name: &str) -> Result<ProviderRecord, RegistryError> {
        let Some((key, driver)) = name.split_once(':') else {
            let found = self.inner.store.providers_declaring(name).await?.into_iter().next();
            return match found {
                Some(record) => Ok(record),
                None => Err(self.not_installed(name).await?.into()),
            };
        };
        let record = self.get(key).await?;
        if record.sandbox_driver(driver).is_some() {
            return Ok(record);
        }
        let drivers = record.manifest().map(|it| it.environment_drivers).unwrap_or_default();
        let declared = sandboxes(drivers).map(|it| it.driver_key).collect();
        Err(Refusal::NotDeclared { key: key.to_owned(), driver: driver.to_owned(), declared }.into())
    }

    /// The component that a lease pins: of exactly this provider, at exactly this digest, whatever the
    /// provider's status is by now.
    ///
    /// # Errors
    /// [`Refusal::UnknownId`] and [`Refusal::NotLoadable`].
    pub async fn pinned(&self, id: &str, digest: &str) -> Result<L::Component, RegistryError> {
        let found = self.inner.store.provider_by_id(id).await?;
        let record = found.ok_or_else(|| Refusal::UnknownId { id: id.to_owned() })?;
        let loaded = self.load(&record, digest, AfterFailure::TryIfPassing).await;
        Ok(loaded.map_err(|cause| Refusal::NotLoadable {
            driver: record.key.clone(),
            key: record.key,
            cause,
        })?)
    }

    /// What the provider that made a lease says of the lease's driver now.
    ///
    /// # Errors
    /// [`StoreError`](crate::StoreError) when the store cannot be read. That the identity is not established
    /// is an answer: every capability is then denied.
    pub async fn declaration(
        &self,
        id: &str,
        driver: &str,
    ) -> Result<Result<DriverDeclaration, IdentityFailure>, RegistryError> {
        let record = self.inner.store.provider_by_id(id).await?;
        let record = record.filter(|record| record.status != ProviderStatus::Removed);
        let drivers =
            record.as_ref().and_then(|record| record.manifest().ok()).map(|it| it.environment_drivers);
        let plugin = record.as_ref().map(|record| InstalledPlugin {
            id: &record.id,
            drivers: drivers.as_deref().unwrap_or_default(),
        });
        Ok(identify(plugin.as_slice(), Some(id), driver).cloned())
    }

    async fn resolve_first(&self, driver: &str) -> Result<Resolved<L::Component>, RegistryError> {
        let mut refused = None;
        for record in self.inner.store.providers_declaring(driver).await? {
            match self.usable(record, driver).await {
                Ok(resolved) => return Ok(resolved),
                // One that could be used but for its component tells more than one that is taken out of use.
                Err(why @ Refusal::NotLoadable { .. }) => match refused {
                    Some(Refusal::NotLoadable { .. }) => {}
                    _ => refused = Some(why),
                },
                Err(why) => refused = refused.or(Some(why)),
            }
        }
        match refused {
            Some(refused) => Err(refused.into()),
            None => Err(self.not_installed(driver).await?.into()),
        }
    }

    async fn not_installed(&self, driver: &str) -> Result<Refusal, RegistryError> {
        let known = self.inner.store.sandbox_drivers().await?;
        Ok(Refusal::NotInstalled { driver: driver.to_owned(), known })
    }

    async fn resolve_exact(&self, key: &str, driver: &str) -> Result<Resolved<L::Component>, RegistryError> {
        let record = self.get(key).await?;
        Ok(self.usable(record, driver).await?)
    }

    /// This provider, when it is ready, declares the driver and can be loaded.
    async fn usable(&self, record: ProviderRecord, driver: &str) -> Result<Resolved<L::Component>, Refusal> {
        let (key, status) = (record.key.clone(), record.status);
        let driver = driver.to_owned();
        if status != ProviderStatus::Ready {
            return Err(Refusal::NotReady { key, driver, status });
        }
        let manifest = match record.manifest() {
            Ok(manifest) => manifest,
            Err(cause) => return Err(Refusal::NotLoadable { key, driver, cause }),
        };
        let (of_it, others): (Vec<_>, Vec<_>) =
            sandboxes(manifest.environment_drivers).partition(|it| it.driver_key == driver);
        let Some(declaration) = of_it.into_iter().next() else {
            let declared = others.into_iter().map(|it| it.driver_key).collect();
            return Err(Refusal::NotDeclared { key, driver, declared });
        };
        match self.load(&record, &record.digest, AfterFailure::TryIfPassing).await {
            Ok(component) => Ok(Resolved { record, driver: declaration, component }),
            Err(cause) => Err(Refusal::NotLoadable { key, driver, cause }),
        }
    }

    /// Takes a start that is under way already as the one of this component.
    pub fn begin(
        &self,
        pin: &ComponentRef,
        start: impl Future<Output = Result<L::Component, Unloaded>> + Send + 'static,
    ) {
        self.inner.loading.begin(&name(pin), start);
    }

    pub(super) async fn load(
        &self,
        record: &ProviderRecord,
        digest: &str,
        after: AfterFailure,
    ) -> Result<L::Component, Unloaded> {
        let pin = pin(record, digest);
        let start = || self.inner.loader.load(pin.clone());
        self.inner.loading.get(&name(&pin), after, start).await
    }

    /// What is known of a provider's component without starting it.
    pub fn standing(&self, record: &ProviderRecord) -> Standing<L::Component> {
        self.inner.loading.standing(&name(&pin(record, &record.digest)))
    }
}

fn pin(record: &ProviderRecord, digest: &str) -> ComponentRef {
    ComponentRef {
        provider: record.id.clone(),
        key: record.key.clone(),
        digest: digest.to_owned(),
        grants: record.grants.clone(),
    }
}

/// What makes one start the same as another: with other grants it is linked anew.
fn name(pin: &ComponentRef) -> String {
    format!("{} {} {}", pin.provider, pin.digest, pin.grants)
}

fn sandboxes(drivers: Vec<DriverDeclaration>) -> impl Iterator<Item = DriverDeclaration> {
    drivers.into_iter().filter(|it| it.kind == DriverKind::SandboxProvider)
}
