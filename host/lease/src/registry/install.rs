//! Installing, upgrading, taking out of use, removing.

use super::{
    InstallFault, Loader, ProviderRecord, ProviderStatus, RESERVED_DRIVERS, Registry, RegistryError, Unloaded,
};
use leasehold_contract::declaration::ProviderManifest;

/// A provider that is to be installed. Whoever makes one has kept its component where the loader finds it.
#[derive(Clone, Debug, PartialEq)]
pub struct Package {
    /// The id it gets when it is not installed yet.
    pub id: String,
    /// What it declares.
    pub manifest: ProviderManifest,
    /// Digest of its component.
    pub digest: String,
    /// What the host grants it, as JSON.
    pub grants: String,
    /// Where it came from, for people.
    pub source: String,
    /// Whether it is part of the host: first in the order, its key nobody else's.
    pub embedded: bool,
}

/// What an installation or an upgrade did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It was not there before.
    Installed(ProviderRecord),
    /// It was there as this already.
    Unchanged(ProviderRecord),
    /// It was another before; `live` leases still have that one's component.
    Upgraded {
        /// As it is now.
        record: ProviderRecord,
        /// The digest before.
        from_digest: String,
        /// The version before.
        from_version: String,
        /// Leases that go on with the component before.
        live: u64,
    },
}

impl Change {
    /// The provider as it is now.
    #[must_use]
    pub fn record(&self) -> &ProviderRecord {
        match self {
            Change::Installed(record) | Change::Unchanged(record) | Change::Upgraded { record, .. } => record,
        }
    }
}

/// A provider that was removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removed {
    /// As it was.
    pub record: ProviderRecord,
    /// Its leases that have not ended. Their component stays until the last has.
    pub live: u64,
}

impl<L: Loader> Registry<L> {
    /// Installs a provider. The same one again is no fault.
    ///
    /// # Errors
    /// [`InstallFault`] when the key is taken or reserved.
    pub async fn install(&self, package: Package) -> Result<Change, RegistryError> {
        admit(&package)?;
        Ok(self.inner.store.install_provider(package, false).await??)
    }

    /// Gives an installed provider another component or declaration. Leases keep the component they have.
    ///
    /// # Errors
    /// [`Refusal::UnknownKey`](super::Refusal::UnknownKey) when it is not installed.
    pub async fn upgrade(&self, package: Package) -> Result<Change, RegistryError> {
        admit(&package)?;
        self.get(&package.manifest.plugin_key).await?;
        Ok(self.inner.store.install_provider(package, true).await??)
    }

    /// Installs a provider of the host's own, or upgrades it. A person's choice to disable it stays.
    ///
    /// # Errors
    /// [`InstallFault`] when the key is reserved.
    pub async fn ensure(&self, package: Package) -> Result<Change, RegistryError> {
        admit(&package)?;
        Ok(self.inner.store.install_provider(package, true).await??)
    }

    /// Takes a provider out of use or back into it: whether that changed anything.
    ///
    /// # Errors
    /// [`Refusal::UnknownKey`](super::Refusal::UnknownKey) when it is not installed.
    pub async fn set_ready(&self, key: &str, ready: bool) -> Result<bool, RegistryError> {
        let record = self.get(key).await?;
        let status = if ready { ProviderStatus::Ready } else { ProviderStatus::Disabled };
        if record.status == status {
            return Ok(false);
        }
        match self.inner.store.set_provider_status(&record.id, record.status, status).await? {
            true => Ok(true),
            false => Err(InstallFault::Changed { key: key.to_owned() }.into()),
        }
    }

    /// Removes a provider: no new lease gets it. Where leases of it have not ended it stays known to them.
    ///
    /// # Errors
    /// [`InstallFault::Embedded`] for what is part of the host.
    pub async fn remove(&self, key: &str) -> Result<Removed, RegistryError> {
        let record = self.get(key).await?;
        if record.position == 0 {
            return Err(InstallFault::Embedded { key: key.to_owned() }.into());
        }
        let live = self.inner.store.remove_provider(&record.id).await?;
        Ok(Removed { record, live })
    }

    /// Forgets removed providers whose last lease has ended. What is left, as pairs of a provider's id and a
    /// digest, is what components are still needed for.
    ///
    /// # Errors
    /// [`StoreError`](crate::StoreError) when the store cannot be used.
    pub async fn collect(&self) -> Result<Vec<(String, String)>, RegistryError> {
        let needed = self.inner.store.collect_providers().await?;
        self.inner.loading.keep(|name| {
            let mut parts = name.split(' ');
            let (id, digest) = (parts.next(), parts.next());
            needed.iter().any(|it| id == Some(&it.0) && digest == Some(&it.1))
        });
        Ok(needed)
    }
}

fn admit(package: &Package) -> Result<(), InstallFault> {
    let reserved = |key: &str| InstallFault::Reserved { key: key.to_owned() };
    let drivers = &package.manifest.environment_drivers;
    if let Some(taken) = drivers.iter().find(|driver| RESERVED_DRIVERS.contains(&&*driver.driver_key)) {
        return Err(reserved(&taken.driver_key));
    }
    Ok(())
}

/// The declaration of a package as it is stored.
pub(crate) fn declaration(manifest: &ProviderManifest) -> Result<String, Unloaded> {
    serde_json::to_string(manifest).map_err(|error| Unloaded {
        why: format!("its declaration cannot be written: {error}"),
        passing: false,
    })
}
