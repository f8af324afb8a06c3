//! Putting a provider where it belongs: its component on the shelf, then its row in the store.

use super::components::{manifest_of, policy, unlinked};
use super::registry::blocking;
use super::{ProviderFiles, embedded};
use crate::error::Error;
use crate::runtime::Leasehold;
use leasehold_contract::Method;
use leasehold_contract::authority::Grant;
use leasehold_contract::declaration::ProviderManifest;
use leasehold_engine::Digest;
use leasehold_engine::limits::COMPONENT_BYTES_MAX;
use leasehold_lease::registry::{Change, Package};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A provider that the host application brings along.
#[derive(Clone, Debug)]
pub(crate) struct Brought {
    pub(crate) name: String,
    pub(crate) component: Component,
    pub(crate) manifest: Option<ProviderManifest>,
    pub(crate) granted: Vec<Grant>,
    pub(crate) source: String,
}

impl Brought {
    /// From files, with what they are granted.
    pub(crate) fn from_files(files: ProviderFiles, granted: impl IntoIterator<Item = Grant>) -> Brought {
        let ProviderFiles { component, manifest, name, source } = files;
        let granted = once_each(granted);
        Brought { name, component: Component::File(component), manifest, granted, source }
    }

    /// The key it is installed under.
    pub(super) fn key(&self) -> &str {
        self.manifest.as_ref().map_or(&self.name, |manifest| &manifest.plugin_key)
    }
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
pub(super) enum Taken {
    Refuse,
    Replace,
    ReplaceOrInstall,
}

impl Leasehold {
    pub(super) async fn ensure_all(&self) -> Result<(), Error> {
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
    pub(super) async fn ensure_local(&self) -> Result<(), Error> {
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

    /// Whether this very provider is installed already, so that nothing has to be compiled to know it.
    async fn is_here(&self, brought: &Brought) -> Result<bool, Error> {
        let Some(found) = self.0.registry.find(brought.key()).await? else { return Ok(false) };
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

    pub(super) async fn put(&self, brought: Brought, taken: Taken) -> Result<Change, Error> {
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
        let in_use = blocking("keeping a component", move || {
            let in_use = shelf.in_use()?;
            shelf.keep(&in_use, &kept.id, &kept.digest, &bytes, &kept.manifest)?;
            Ok(in_use)
        })
        .await?;
        let registry = &self.0.registry;
        let changed = match taken {
            Taken::Refuse => registry.install(package).await,
            Taken::Replace => registry.upgrade(package).await,
            Taken::ReplaceOrInstall => registry.ensure(package).await,
        };
        if changed.is_err() {
            drop(in_use);
            // What was kept for nothing is also found by the next reconcile.
            self.collect().await.ok();
        }
        Ok(changed?)
    }
}

/// The same grants, each once and in one order, so that they are the same text however they were given.
pub(crate) fn once_each(granted: impl IntoIterator<Item = Grant>) -> Vec<Grant> {
    let ordered: BTreeMap<_, _> = granted.into_iter().map(|grant| (grant.to_string(), grant)).collect();
    ordered.into_values().collect()
}
