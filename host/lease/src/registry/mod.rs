//! Which providers there are, and which of them is meant.
//!
//! A provider is a row in the store: who it is, what it declares, which component it is now, whether it may
//! be used. A driver's key is unique within one provider only, so it is resolved in the order of
//! installation among those that are ready and can be loaded; a lease is resolved by the id and the digest it
//! pins and by nothing else. What a component is and how it is loaded is a [`Loader`]'s affair.

mod install;
mod listing;
mod loading;
mod published;
mod record;
mod refusal;
mod resolve;
mod schema;

pub(crate) use install::declaration;
pub use install::{Change, Package, Removed};
pub use listing::{RECOVERY_WAIT, Recovery};
pub(crate) use loading::AfterFailure;
pub use loading::{Standing, Unloaded};
pub use published::Published;
pub use record::{ProviderRecord, ProviderStatus};
pub use refusal::{InstallFault, Refusal, RegistryError};
pub use resolve::{POLL_EVERY, POLL_FOR, Resolved, Wait};
pub use schema::{Contradiction, SCHEMA_BYTES_KEPT, SCHEMAS_KEPT, Schema};
pub(crate) use schema::{Stored, Version, revision};

use crate::{Store, StoreError};
use leasehold_contract::Verification;
use loading::Loading;
use schema::SchemaCache;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

/// Driver keys that no provider may declare, as hosts use them for probes of their own.
pub const RESERVED_DRIVERS: [&str; 1] = ["fake"];

/// Which component is to be loaded, and with what it is to be linked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComponentRef {
    /// The provider's id.
    pub provider: String,
    /// The provider's key, for messages.
    pub key: String,
    /// Digest of the component.
    pub digest: String,
    /// What the host grants the provider now, as JSON.
    pub grants: String,
}

/// A component on its way to being called.
pub type Starting<T> = Pin<Box<dyn Future<Output = Result<T, Unloaded>> + Send>>;

/// Makes components callable. Implemented by whoever knows what a component is.
pub trait Loader: Send + Sync + 'static {
    /// A component that can be called; cheap to clone.
    type Component: Clone + Send + Sync + 'static;

    /// Loads one. Goes on when nobody waits for it any more.
    fn load(&self, pin: ComponentRef) -> Starting<Self::Component>;

    /// What reading its type said of its methods.
    fn verification(component: &Self::Component) -> &Verification;
}

/// The providers of one store, as one host can call them. Clones are one registry.
pub struct Registry<L: Loader> {
    inner: Arc<Inner<L>>,
}

struct Inner<L: Loader> {
    store: Store,
    loader: L,
    loading: Loading<L::Component>,
    schemas: Mutex<SchemaCache>,
}

impl<L: Loader> Clone for Registry<L> {
    fn clone(&self) -> Self {
        Registry { inner: self.inner.clone() }
    }
}

impl<L: Loader> std::fmt::Debug for Registry<L> {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Registry").field("store", &self.inner.store).finish_non_exhaustive()
    }
}

impl<L: Loader> Registry<L> {
    /// The registry in this store. Nothing is read or loaded yet.
    pub fn new(store: Store, loader: L) -> Registry<L> {
        let (loading, schemas) = (Loading::default(), Mutex::default());
        Registry { inner: Arc::new(Inner { store, loader, loading, schemas }) }
    }

    /// What makes its components callable.
    pub fn loader(&self) -> &L {
        &self.inner.loader
    }

    /// Every provider that is installed, in the order of installation.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn list(&self) -> Result<Vec<ProviderRecord>, StoreError> {
        self.inner.store.providers().await
    }

    /// The installed provider of this key.
    ///
    /// # Errors
    /// [`Refusal::UnknownKey`] when there is none.
    pub async fn get(&self, key: &str) -> Result<ProviderRecord, RegistryError> {
        Ok(self.find(key).await?.ok_or_else(|| Refusal::UnknownKey { key: key.to_owned() })?)
    }

    /// The installed provider of this key, if there is one.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn find(&self, key: &str) -> Result<Option<ProviderRecord>, StoreError> {
        self.inner.store.provider_by_key(key).await
    }

    /// The schema of the configuration that the first provider of this driver declares, whether it is ready
    /// or not; none when nobody declares the driver. The caller's own copy.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read, [`Contradiction`] when it contradicts itself.
    pub async fn config_schema(&self, driver: &str) -> Result<Schema, RegistryError> {
        let known = self.schemas().version(driver);
        let stored = self.inner.store.config_schema(driver, known).await?;
        Ok(self.schemas().take(driver, stored)?)
    }

    fn schemas(&self) -> std::sync::MutexGuard<'_, SchemaCache> {
        self.inner.schemas.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
