//! What a runtime is made of, and the making of it.

use crate::error::Error;
use crate::installed::Installed;
use crate::runtime::{Catalog, Inner, Leasehold};
use leasehold_authority::facility::JailFacility;
use leasehold_authority::jail::{Isolation, Jails};
use leasehold_contract::authority::{Grant, Permission, Policy};
use leasehold_engine::{Allocation, Cache, Compiled, Engine, EngineOptions, Facility, Limits};
use leasehold_lease::{Leases, Options, Settings, Store};
use std::collections::BTreeMap;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The component of the provider `local`, built from `guests/local`.
const LOCAL: &[u8] = include_bytes!("../embedded/local.wasm");

/// The provider that is always installed: sandboxes on the host's own machine.
pub const LOCAL_PROVIDER: &str = "local";

/// What a runtime is made of.
#[derive(Debug)]
pub struct Builder {
    directory: PathBuf,
    cache: Option<PathBuf>,
    limits: Limits,
    isolation: Isolation,
    allocation: Option<Allocation>,
    providers: Vec<(String, Vec<u8>, Vec<Grant>)>,
}

impl Builder {
    pub(crate) fn new(directory: PathBuf) -> Builder {
        Builder {
            directory,
            cache: None,
            limits: Limits::default(),
            isolation: Isolation::default(),
            allocation: None,
            providers: Vec::new(),
        }
    }

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

    /// Installs a provider and grants it these things. Nothing is declared for it: the grants alone decide.
    pub fn provider(
        mut self,
        name: impl Into<String>,
        component: impl Into<Vec<u8>>,
        granted: impl IntoIterator<Item = Grant>,
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
        providers.push((LOCAL_PROVIDER.into(), LOCAL.to_vec(), vec![Grant::Jail]));
        // Compiling takes its time and a thread; nobody else's.
        let install = move || install(&Engine::new(options)?, providers, &limits);
        let providers = tokio::task::spawn_blocking(install)
            .await
            .map_err(|_| Error::CutOff { doing: "installing providers" })??;
        let store = Store::open(directory.join("leases.db"), Options::default()).await?;
        let catalog = Arc::new(Catalog(providers));
        let settings = Settings { spool: Some(directory.join("spool")), ..Settings::default() };
        let leases = Leases::open(store, catalog.clone(), settings).await?;
        Ok(Leasehold(Arc::new(Inner { catalog, leases, jails })))
    }
}

fn install(
    engine: &Engine,
    providers: Vec<(String, Vec<u8>, Vec<Grant>)>,
    limits: &Limits,
) -> Result<BTreeMap<String, Arc<Installed>>, Error> {
    let mut installed = BTreeMap::new();
    for (name, component, granted) in providers {
        let load = |source| Error::Load { provider: name.clone(), source };
        let compiled: Compiled = engine.load(&component).map_err(load)?;
        let link = |source| Error::Link { provider: name.clone(), source };
        let policy = Policy::new(&name, None, granted);
        let permissions = policy.permissions();
        let reaches = [Permission::Http, Permission::Tcp, Permission::UnixHttp];
        let network = reaches.iter().any(|permission| permissions.contains(permission));
        let provider = compiled.link(&permissions).map_err(link)?;
        installed.insert(name, Arc::new(Installed { provider, limits: limits.clone(), network }));
    }
    Ok(installed)
}

/// Makes the runtime's directory, for its owner alone.
fn own(directory: &Path) -> Result<(), Error> {
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
    made.map_err(|source| Error::Directory { path: directory.into(), source })
}
