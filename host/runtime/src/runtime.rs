//! The runtime: one engine, one store, the installed providers.

use crate::error::Error;
use crate::provider::Installed;
use leasehold_authority::facility::JailFacility;
use leasehold_authority::jail::{Isolation, Jails};
use leasehold_contract::authority::Permission;
use leasehold_engine::{Allocation, Cache, Compiled, Engine, EngineOptions, Facility, Limits};
use leasehold_lease::{Answer, Budgets, Lease, Leases, Options, Providers, Report, Store, Unready};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The component of the provider `local`, built from `guests/local`.
const LOCAL: &[u8] = include_bytes!("../embedded/local.wasm");

/// The provider that is always installed: sandboxes on the host's own machine.
pub const LOCAL_PROVIDER: &str = "local";

/// Supplies sandboxes to a host application. Cheap to clone; all clones are one runtime. There is no global
/// state: several runtimes in one process do not know of each other.
#[derive(Clone, Debug)]
pub struct Leasehold(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    providers: BTreeMap<String, Arc<Installed>>,
    leases: Leases,
    jails: Arc<Jails>,
}

/// What a runtime is made of.
#[derive(Debug)]
pub struct Builder {
    directory: PathBuf,
    cache: Option<PathBuf>,
    limits: Limits,
    isolation: Isolation,
    allocation: Option<Allocation>,
    providers: Vec<(String, Vec<u8>, BTreeSet<Permission>)>,
}

impl Builder {
    /// Keeps compiled components here instead of in the runtime's own directory.
    pub fn cache(mut self, directory: impl Into<PathBuf>) -> Self {
        self.cache = Some(directory.into());
        self
    }

    /// Limits of every call, but for the wall clock, which the contract's budgets give.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// How sandboxes of the provider `local` are isolated.
    pub fn isolation(mut self, isolation: Isolation) -> Self {
        self.isolation = isolation;
        self
    }

    /// How instances get their memory. A pool, which is taken where this is not set, makes calls faster and
    /// the start of the runtime slower.
    pub fn allocation(mut self, allocation: Allocation) -> Self {
        self.allocation = Some(allocation);
        self
    }

    /// Installs a provider and grants it these permissions.
    pub fn provider(
        mut self,
        name: impl Into<String>,
        component: impl Into<Vec<u8>>,
        granted: impl IntoIterator<Item = Permission>,
    ) -> Self {
        self.providers.push((name.into(), component.into(), granted.into_iter().collect()));
        self
    }

    /// Makes the runtime.
    ///
    /// # Errors
    /// When a directory cannot be used, the engine does not run here, or a provider cannot be linked.
    pub async fn build(self) -> Result<Leasehold, Error> {
        let Builder { directory, cache, limits, isolation, allocation, mut providers } = self;
        own(&directory)?;
        let cache = Cache::open(&cache.unwrap_or_else(|| directory.join("compiled")))?;
        let jails = Arc::new(Jails::open(&directory.join("jails"))?);
        let jail: Arc<dyn Facility> = Arc::new(JailFacility::new(jails.clone(), isolation));
        let options =
            EngineOptions { cache: Some(cache), facilities: std::iter::once(jail).collect(), allocation };
        providers.push((LOCAL_PROVIDER.into(), LOCAL.to_vec(), BTreeSet::from([Permission::Jail])));
        // Compiling takes its time and a thread; nobody else's.
        let install = move || install(&Engine::new(options)?, providers, &limits);
        let providers = tokio::task::spawn_blocking(install)
            .await
            .map_err(|_| Error::CutOff { doing: "installing providers" })??;
        let store = Store::open(directory.join("leases.db"), Options::default()).await?;
        let leases = Leases::new(store, Budgets::default())?;
        Ok(Leasehold(Arc::new(Inner { providers, leases, jails })))
    }
}

impl Leasehold {
    /// A runtime that keeps what it knows in this directory, which is made when it is not there.
    pub fn builder(directory: impl Into<PathBuf>) -> Builder {
        Builder {
            directory: directory.into(),
            cache: None,
            limits: Limits::default(),
            isolation: Isolation::default(),
            allocation: None,
            providers: Vec::new(),
        }
    }

    /// Ends what hosts that died have left: their leases, and what runs in their jails.
    ///
    /// # Errors
    /// When the store or the jails cannot be read. What can be ended is ended all the same.
    pub async fn reconcile(&self) -> Result<Report, Error> {
        self.0.jails.reap().await?;
        Ok(self.0.leases.reconcile(Arc::new(self.clone())).await?)
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
        let known = || self.0.providers.keys().cloned().collect();
        let found = self.0.providers.get(name).cloned();
        found.ok_or_else(|| Error::UnknownProvider { name: name.into(), known: known() })
    }
}

impl Providers for Leasehold {
    fn resolve<'a>(
        &'a self,
        lease: &'a Lease,
    ) -> Answer<'a, Result<Arc<dyn leasehold_lease::Provider>, Unready>> {
        Box::pin(async move {
            let provider = self.provider(&lease.provider).map_err(|error| Unready(error.to_string()))?;
            let digest = provider.provider.digest().to_string();
            // The name is the allocation's id for our own provider, whichever version made it.
            if digest != lease.digest && lease.provider != LOCAL_PROVIDER {
                return Err(Unready(format!(
                    "`{}` is installed as {digest}, not {}",
                    lease.provider, lease.digest
                )));
            }
            Ok(provider as Arc<dyn leasehold_lease::Provider>)
        })
    }
}

fn install(
    engine: &Engine,
    providers: Vec<(String, Vec<u8>, BTreeSet<Permission>)>,
    limits: &Limits,
) -> Result<BTreeMap<String, Arc<Installed>>, Error> {
    let mut installed = BTreeMap::new();
    for (name, component, granted) in providers {
        let load = |source| Error::Load { provider: name.clone(), source };
        let compiled: Compiled = engine.load(&component).map_err(load)?;
        let link = |source| Error::Link { provider: name.clone(), source };
        let provider = compiled.link(&granted).map_err(link)?;
        installed.insert(name, Arc::new(Installed { provider, limits: limits.clone() }));
    }
    Ok(installed)
}

/// Makes the runtime's directory, for its owner alone.
fn own(directory: &Path) -> Result<(), Error> {
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
    made.map_err(|source| Error::Directory { path: directory.into(), source })
}
