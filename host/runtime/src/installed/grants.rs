//! What installed providers are granted, and changing it.

use super::components::policy;
use super::installing::once_each;
use super::package::wants;
use crate::error::Error;
use crate::runtime::Leasehold;
use leasehold_contract::authority::{Ask, Grant, Permission};
use leasehold_lease::registry::{Package, ProviderRecord};
use leasehold_lease::{Audit, AuditFilter};

/// What a provider is granted, and what comes of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Granted {
    /// The provider's key.
    pub key: String,
    /// What it declares.
    pub declared: Vec<Ask>,
    /// Each grant, and whether anything can come of it: whether it is declared, and some import wants it.
    pub grants: Vec<(Grant, bool)>,
    /// Why it cannot be loaded with these; none when it can.
    pub refused: Option<String>,
}

impl Leasehold {
    /// What a provider is granted.
    ///
    /// # Errors
    /// When it is not installed.
    pub async fn grants(&self, key: &str) -> Result<Granted, Error> {
        self.ensure_all().await?;
        let record = self.0.registry.get(key).await?;
        self.granted(record).await
    }

    /// Grants a provider more. New calls may use it at once.
    ///
    /// # Errors
    /// When it is not installed.
    pub async fn grant(&self, key: &str, more: impl IntoIterator<Item = Grant>) -> Result<Granted, Error> {
        let more: Vec<_> = more.into_iter().collect();
        self.regranted(key, |before| before.into_iter().chain(more).collect()).await
    }

    /// Takes grants back: those this says yes to. Calls that are under way keep what they have.
    ///
    /// # Errors
    /// When it is not installed.
    pub async fn revoke(&self, key: &str, taken: impl Fn(&Grant) -> bool) -> Result<Granted, Error> {
        self.regranted(key, |before| before.into_iter().filter(|grant| !taken(grant)).collect()).await
    }

    /// Uses of grants and refusals, the newest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn audit(&self, filter: AuditFilter) -> Result<Vec<Audit>, Error> {
        self.0.ledger.flushed().await;
        Ok(self.0.store.audited(filter).await?)
    }

    async fn regranted(
        &self,
        key: &str,
        change: impl FnOnce(Vec<Grant>) -> Vec<Grant>,
    ) -> Result<Granted, Error> {
        self.ensure_all().await?;
        let record = self.0.registry.get(key).await?;
        let before: Vec<Grant> = serde_json::from_str(&record.grants).unwrap_or_default();
        let grants = once_each(change(before));
        let package = Package {
            id: record.id.clone(),
            manifest: record.manifest().map_err(|fault| Error::Declaration {
                of: key.to_owned(),
                faults: vec![fault.to_string()],
            })?,
            digest: record.digest.clone(),
            grants: serde_json::to_string(&grants).unwrap_or_else(|_| "[]".into()),
            source: record.source.clone(),
            embedded: record.position == 0,
        };
        let change = self.0.registry.ensure(package).await?;
        self.granted(change.record().clone()).await
    }

    async fn granted(&self, record: ProviderRecord) -> Result<Granted, Error> {
        let grants: Vec<Grant> = serde_json::from_str(&record.grants).unwrap_or_default();
        let manifest = record.manifest().ok();
        let declared = manifest.as_ref().map(|manifest| manifest.permissions.clone()).unwrap_or_default();
        let loaded = self.0.registry.pinned(&record.id, &record.digest).await;
        // What no import wants is known only of a component that can be loaded.
        let (wanted, refused) = match &loaded {
            Ok(installed) => {
                (installed.provider.inspection().imports().iter().flat_map(wants).collect(), None)
            }
            Err(error) => (Permission::ALL.iter().copied().collect(), Some(error.to_string())),
        };
        let unused: Vec<Grant> = match &manifest {
            Some(manifest) => {
                policy(&record.key, manifest, grants.clone()).unused(&wanted).into_iter().cloned().collect()
            }
            None => Vec::new(),
        };
        let grants = grants.into_iter().map(|grant| {
            let used = !unused.contains(&grant);
            (grant, used)
        });
        Ok(Granted { key: record.key, declared, grants: grants.collect(), refused })
    }
}
