//! Installing and changing providers, and finding the one that is meant.

use super::components::Components;
use super::installing::{Brought, Taken};
use super::{Installed, ProviderFiles, embedded};
use crate::error::Error;
use crate::runtime::Leasehold;
use leasehold_contract::authority::Grant;
use leasehold_lease::registry::{
    Change, ProviderRecord, Published, Recovery, Removed, Resolved, Schema, Wait,
};
use std::sync::Arc;

impl Leasehold {
    /// Installs a provider: its component is compiled, checked against what it may have, and kept. The same
    /// one again is no fault.
    ///
    /// # Errors
    /// When it is no provider, wants what it is not granted, or its key is taken. Nothing is installed then.
    pub async fn install(
        &self,
        files: ProviderFiles,
        granted: impl IntoIterator<Item = Grant>,
    ) -> Result<Change, Error> {
        self.ensure_local().await?;
        self.put(Brought::from_files(files, granted), Taken::Refuse).await
    }

    /// Gives an installed provider another component or declaration. Leases go on with the component they
    /// have, which stays until the last of them has ended. What was granted before stays granted.
    ///
    /// # Errors
    /// As [`Leasehold::install`], and when it is not installed.
    pub async fn upgrade(
        &self,
        files: ProviderFiles,
        granted: impl IntoIterator<Item = Grant>,
    ) -> Result<Change, Error> {
        self.ensure_local().await?;
        let change = self.put(Brought::from_files(files, granted), Taken::Replace).await?;
        self.collect().await?;
        Ok(change)
    }

    /// Removes a provider. While leases of it have not ended its component stays for them.
    ///
    /// # Errors
    /// When it is not installed, or is part of the host.
    pub async fn remove(&self, key: &str) -> Result<Removed, Error> {
        self.ensure_local().await?;
        let removed = self.0.registry.remove(key).await?;
        self.collect().await?;
        Ok(removed)
    }

    /// Takes a provider out of use, or back into it: whether that changed anything. Its leases still end.
    ///
    /// # Errors
    /// When it is not installed.
    pub async fn set_ready(&self, key: &str, ready: bool) -> Result<bool, Error> {
        self.ensure_local().await?;
        Ok(self.0.registry.set_ready(key, ready).await?)
    }

    /// The installed providers, in the order of installation.
    ///
    /// # Errors
    /// When the store cannot be used, or a provider that the host application brings along is none.
    pub async fn providers(&self) -> Result<Vec<ProviderRecord>, Error> {
        self.ensure_all().await?;
        Ok(self.0.registry.list().await?)
    }

    /// The sandbox providers that can be chosen now, for selectors. Those the host application brings along
    /// are started again where an earlier start failed; each start is waited for two seconds.
    ///
    /// # Errors
    /// As [`Leasehold::providers`].
    pub async fn published(&self) -> Result<Vec<Published>, Error> {
        self.ensure_all().await?;
        let own = self.0.brought.iter().map(|brought| brought.key().to_owned());
        let keys = own.chain([embedded::LOCAL_PROVIDER.to_owned()]).collect();
        let recovery = Recovery { keys, ..Recovery::default() };
        Ok(self.0.registry.published(&recovery, &*self.0.clock).await?)
    }

    /// The schema of a driver's configuration; none when nobody declares the driver.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn config_schema(&self, driver: &str) -> Result<Schema, Error> {
        self.ensure_for(driver).await?;
        Ok(self.0.registry.config_schema(driver).await?)
    }

    /// The provider for new leases of this name: a driver's key, or `provider:driver`.
    pub(crate) async fn resolve(&self, name: &str) -> Result<Resolved<Arc<Installed>>, Error> {
        self.ensure_for(name).await?;
        Ok(self.0.registry.resolve_waiting(name, Wait::default(), &*self.0.clock).await?)
    }

    /// Takes away components that nobody needs any more.
    pub(crate) async fn collect(&self) -> Result<(), Error> {
        let needed = self.0.registry.collect().await?;
        let shelf = self.components().shelf().clone();
        let needed = move |provider: &str, digest: &str| {
            needed.iter().any(|(id, pinned)| id == provider && pinned == digest)
        };
        blocking("collecting components", move || shelf.collect(needed)).await
    }

    pub(crate) fn components(&self) -> &Components {
        self.0.registry.loader()
    }

    /// The registry knows what this name may need. For `local` alone nothing else is looked at.
    async fn ensure_for(&self, name: &str) -> Result<(), Error> {
        match name {
            embedded::LOCAL_PROVIDER => self.ensure_local().await,
            _ => self.ensure_all().await,
        }
    }

    /// What a driver's name declares, of the first provider that has it, ready or not.
    pub(crate) async fn declared(&self, name: &str) -> Result<ProviderRecord, Error> {
        self.ensure_for(name).await?;
        Ok(self.0.registry.declared(name).await?)
    }
}

/// What waits for the disk or computes gets a thread of its own.
pub(crate) async fn blocking<T: Send + 'static>(
    doing: &'static str,
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(work).await.unwrap_or(Err(Error::CutOff { doing }))
}
