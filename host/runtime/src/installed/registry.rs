//! Installing and changing providers, and finding the one that is meant.

use super::components::{Components, manifest_of, policy, unlinked};
use super::{Installed, ProviderFiles, embedded};
use crate::error::Error;
use crate::runtime::Leasehold;
use leasehold_contract::Method;
use leasehold_contract::authority::Grant;
use leasehold_contract::declaration::ProviderManifest;
use leasehold_engine::Digest;
use leasehold_engine::limits::COMPONENT_BYTES_MAX;
use leasehold_lease::registry::{
    Change, Package, ProviderRecord, Published, Recovery, Removed, Resolved, Schema, Wait,
};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// A provider that the host application brings along.
#[derive(Clone, Debug)]
pub(crate) struct Brought {
    pub(crate) name: String,
    pub(crate) component: Component,
    pub(crate) manifest: Option<ProviderManifest>,
    pub(crate) granted: Vec<Grant>,
    pub(crate) source: String,
}

/// Where a component comes from.
#[derive(Clone, Debug)]
pub(crate) enum Component {
    Bytes(Vec<u8>),
    File(PathBuf),
}

impl Component {
    /// Its digest, if it is in binary form. Blocks.
    fn digest(&self) -> Result<Digest, Error> {
        Ok(match self {
            Component::Bytes(bytes) => Digest::of(bytes),
            Component::File(path) => Digest::of(&super::package::read(path, COMPONENT_BYTES_MAX + 1)?),
        })
    }
}

/// What to do when one of its key is installed already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    Refuse,
    Replace,
    ReplaceOrInstall,
}

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
        self.put(brought(files, granted), Taken::Refuse).await
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
        let change = self.put(brought(files, granted), Taken::Replace).await?;
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
        let own = self.0.brought.iter().map(|brought| brought.name.clone());
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

    async fn ensure_all(&self) -> Result<(), Error> {
        self.ensure_local().await?;
        let ensured = self.0.ensured.get_or_try_init(|| async {
            for brought in &self.0.brought {
                if !self.is_here(brought).await? {
                    self.put(brought.clone(), Taken::ReplaceOrInstall).await?;
                }
            }
            Ok::<_, Error>(())
        });
        ensured.await.copied()
    }

    /// The registry has the embedded provider as this host has it.
    async fn ensure_local(&self) -> Result<(), Error> {
        let ensured = self.0.local.get_or_try_init(|| async {
            let digest = embedded::digest().to_string();
            let found = self.0.registry.find(embedded::LOCAL_PROVIDER).await?;
            if found.as_ref().is_some_and(|found| found.digest == digest) {
                return Ok(());
            }
            let package = embedded::package(found.map(|found| found.grants))?;
            let shelf = self.components().shelf().clone();
            let manifest = package.manifest.clone();
            let kept = move || {
                let in_use = shelf.in_use()?;
                shelf.keep(&in_use, embedded::LOCAL_PROVIDER, &digest, embedded::COMPONENT, &manifest)?;
                Ok(in_use)
            };
            let _in_use = blocking("keeping a component", kept).await?;
            self.0.registry.ensure(package).await?;
            Ok::<_, Error>(())
        });
        ensured.await.copied()
    }

    /// What a driver's name declares, of the first provider that has it, ready or not.
    pub(crate) async fn declared(&self, name: &str) -> Result<ProviderRecord, Error> {
        self.ensure_for(name).await?;
        Ok(self.0.registry.declared(name).await?)
    }

    /// Whether this very provider is installed already, so that nothing has to be compiled to know it.
    async fn is_here(&self, brought: &Brought) -> Result<bool, Error> {
        let key = brought.manifest.as_ref().map_or(&brought.name, |manifest| &manifest.plugin_key);
        let Some(found) = self.0.registry.find(key).await? else { return Ok(false) };
        let grants = serde_json::to_string(&brought.granted).unwrap_or_default();
        let declared = brought.manifest.as_ref().is_none_or(|manifest| {
            serde_json::to_string(manifest).is_ok_and(|declaration| declaration == found.declaration)
        });
        if found.grants != grants || !declared || !self.components().shelf().has(&found.id, &found.digest) {
            return Ok(false);
        }
        let component = brought.component.clone();
        let digest = blocking("reading a provider", move || component.digest()).await?;
        Ok(digest.to_string() == found.digest)
    }

    async fn put(&self, brought: Brought, taken: Taken) -> Result<Change, Error> {
        let components = self.components().clone();
        let (compiled, bytes, manifest, brought) = blocking("compiling a provider", move || {
            let (compiled, bytes) = match &brought.component {
                Component::File(path) => components.compile(path)?,
                Component::Bytes(bytes) => (components.compile_bytes(&brought.name, bytes)?, bytes.clone()),
            };
            let manifest = match &brought.manifest {
                Some(manifest) => manifest.clone(),
                None => manifest_of(&brought.name, &compiled)?,
            };
            Ok((compiled, bytes, manifest, brought))
        })
        .await?;
        let key = manifest.plugin_key.clone();
        let found = self.0.registry.find(&key).await?;
        let mut granted = brought.granted;
        if let (Taken::Replace, Some(found)) = (taken, &found) {
            let before: Vec<Grant> = serde_json::from_str(&found.grants).unwrap_or_default();
            granted = once_each(before.into_iter().chain(granted));
        }
        if !compiled.inspection().verification().has(Method::AcquireLease) {
            return Err(Error::NoProvider { provider: key });
        }
        let digest = compiled.digest().to_string();
        let policy = policy(&key, &manifest, granted);
        let refused = |error| Error::Link { provider: key.clone(), text: unlinked(&policy, &error) };
        compiled.link(&policy.permissions()).map_err(refused)?;
        let id = found.as_ref().map_or_else(|| crate::id::random("prv"), |found| found.id.clone());
        let grants = serde_json::to_string(policy.granted()).unwrap_or_else(|_| "[]".into());
        let source = brought.source;
        let package = Package { id, manifest, digest, grants, source, embedded: false };
        let (shelf, kept) = (self.components().shelf().clone(), package.clone());
        let _in_use = blocking("keeping a component", move || {
            let in_use = shelf.in_use()?;
            if !shelf.has(&kept.id, &kept.digest) || taken != Taken::ReplaceOrInstall {
                shelf.keep(&in_use, &kept.id, &kept.digest, &bytes, &kept.manifest)?;
            }
            Ok(in_use)
        })
        .await?;
        let registry = &self.0.registry;
        Ok(match taken {
            Taken::Refuse => registry.install(package).await?,
            Taken::Replace => registry.upgrade(package).await?,
            Taken::ReplaceOrInstall => registry.ensure(package).await?,
        })
    }
}

fn brought(files: ProviderFiles, granted: impl IntoIterator<Item = Grant>) -> Brought {
    let ProviderFiles { component, manifest, name, source } = files;
    let granted = once_each(granted);
    Brought { name, component: Component::File(component), manifest, granted, source }
}

/// The same grants, each once and in one order, so that they are the same text however they were given.
pub(crate) fn once_each(granted: impl IntoIterator<Item = Grant>) -> Vec<Grant> {
    let ordered: BTreeMap<_, _> = granted.into_iter().map(|grant| (grant.to_string(), grant)).collect();
    ordered.into_values().collect()
}

/// What waits for the disk or computes gets a thread of its own.
pub(crate) async fn blocking<T: Send + 'static>(
    doing: &'static str,
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(work).await.unwrap_or(Err(Error::CutOff { doing }))
}
