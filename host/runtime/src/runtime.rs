//! The runtime: one engine, one store, the installed providers.

use crate::builder::{Builder, LOCAL_PROVIDER};
use crate::error::Error;
use crate::installed::Installed;
use leasehold_authority::jail::Jails;
use leasehold_lease::{Leases, Pins, Providers, Report, Resolving, Unready};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Supplies sandboxes to a host application. Cheap to clone; all clones are one runtime. There is no global
/// state: several runtimes in one process do not know of each other.
#[derive(Clone, Debug)]
pub struct Leasehold(pub(crate) Arc<Inner>);

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) leases: Leases,
    pub(crate) jails: Arc<Jails>,
}

/// The installed providers.
#[derive(Debug)]
pub(crate) struct Catalog(pub(crate) BTreeMap<String, Arc<Installed>>);

impl Leasehold {
    /// A runtime that keeps what it knows in this directory, which is made when it is not there.
    pub fn builder(directory: impl Into<PathBuf>) -> Builder {
        Builder::new(directory.into())
    }

    /// Ends what hosts that died have left: their leases, and what runs in their jails.
    ///
    /// # Errors
    /// When the store or the jails cannot be read. What can be ended is ended all the same.
    pub async fn reconcile(&self) -> Result<Report, Error> {
        self.0.jails.reap().await?;
        Ok(self.0.leases.reconcile().await?)
    }

    /// Waits until nothing begun here is under way any more; a host that is about to exit awaits it.
    pub async fn idle(&self) {
        self.0.leases.idle().await;
    }

    /// The leases of every host that shares this directory.
    pub fn leases(&self) -> &Leases {
        &self.0.leases
    }

    pub(crate) fn provider(&self, name: &str) -> Result<Arc<Installed>, Error> {
        self.0.catalog.find(name)
    }
}

impl Catalog {
    fn find(&self, name: &str) -> Result<Arc<Installed>, Error> {
        let known = || self.0.keys().cloned().collect();
        let found = self.0.get(name).cloned();
        found.ok_or_else(|| Error::UnknownProvider { name: name.into(), known: known() })
    }
}

impl Providers for Catalog {
    fn resolve<'a>(&'a self, pins: &'a Pins) -> Resolving<'a> {
        Box::pin(async move {
            let name = &pins.provider;
            let provider = self.find(name).map_err(|error| Unready(error.to_string()))?;
            let digest = provider.provider.digest().to_string();
            // The name is the allocation's id for our own provider, whichever version made it.
            if digest != pins.digest && name != LOCAL_PROVIDER {
                return Err(Unready(format!("`{name}` is installed as {digest}, not {}", pins.digest)));
            }
            Ok(provider as Arc<dyn leasehold_lease::Provider>)
        })
    }
}
