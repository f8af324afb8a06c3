//! What a runtime is made of, and the making of it.

use crate::environment::{Environment, Place};
use crate::error::Error;
use crate::installed::components::Components;
use crate::installed::installing::{Brought, Component, once_each};
use crate::installed::shelf::Shelf;
use crate::installed::{ProviderFiles, embedded};
use crate::ledger::Ledger;
use crate::runtime::{Inner, Leasehold, Pinned};
use leasehold_authority::Services;
use leasehold_authority::facility::{
    ConnectFacility, EgressFacility, HttpFacility, JailFacility, StateFacility,
};
use leasehold_authority::http::{HttpEdge, HttpSettings};
use leasehold_authority::jail::{Bounds, Isolation, Jails};
use leasehold_authority::secret::resolve::{NoSecrets, Resolver};
use leasehold_contract::authority::Grant;
use leasehold_engine::{Allocation, Facility, Limits};
use leasehold_lease::registry::Registry;
use leasehold_lease::{Clock, Leases, Options, Settings as LeaseSettings, Store, SystemClock, Times};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::OnceCell;

/// Where leases are written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreAt {
    /// In this SQLite file, which is made when it is not there.
    File(PathBuf),
    /// In the PostgreSQL server at this address, which other hosts may share.
    #[cfg(feature = "postgres")]
    Server(String),
}

/// What a runtime is made of.
#[derive(Debug)]
pub struct Builder {
    directory: PathBuf,
    store: Option<StoreAt>,
    cache: Option<PathBuf>,
    limits: Limits,
    isolation: Isolation,
    ceilings: Bounds,
    allocation: Option<Allocation>,
    clock: Arc<dyn Clock>,
    times: Times,
    environments: Vec<(Environment, Place)>,
    brought: Vec<Brought>,
    warm: bool,
    network: HttpSettings,
    secrets: Arc<dyn Resolver>,
}

impl Builder {
    pub(crate) fn new(directory: PathBuf) -> Builder {
        Builder {
            directory,
            store: None,
            cache: None,
            limits: Limits::default(),
            isolation: Isolation::default(),
            ceilings: Bounds::default(),
            allocation: None,
            clock: Arc::new(SystemClock),
            times: Times::default(),
            environments: Vec::new(),
            brought: Vec::new(),
            warm: false,
            network: HttpSettings::default(),
            secrets: Arc::new(NoSecrets),
        }
    }

    /// Keeps leases here instead of in the file `leases.db` of the runtime's directory.
    pub fn store(mut self, store: StoreAt) -> Self {
        self.store = Some(store);
        self
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

    /// The most that an environment may ask for a sandbox of the provider `local`, and so the most one gets that
    /// asks for nothing. What is not set stays a part of the machine.
    pub fn ceilings(mut self, ceilings: Bounds) -> Self {
        self.ceilings = ceilings;
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

    /// Takes times and pauses from here instead of from the machine, for tests.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// How long what keeps leases in order takes and waits.
    pub fn times(mut self, times: Times) -> Self {
        self.times = times;
        self
    }

    /// Begins to load the provider `local` while the store is opened, for a host that is going to lease from
    /// it at once.
    pub fn warm(mut self) -> Self {
        self.warm = true;
        self
    }

    /// Knows an environment of the host application's own. `place` is where the application has it from, for
    /// messages, for example the path of a file of settings.
    pub fn environment(mut self, environment: Environment, place: impl Into<String>) -> Self {
        self.environments.push((environment, Place(place.into())));
        self
    }

    /// Reaches the network like this.
    pub fn network(mut self, settings: HttpSettings) -> Self {
        self.network = settings;
        self
    }

    /// Takes the values of secrets from here; without it no configuration may have any.
    pub fn secrets(mut self, resolver: Arc<dyn Resolver>) -> Self {
        self.secrets = resolver;
        self
    }

    /// Brings a provider along: it is installed, or upgraded, when one other than `local` is first asked for.
    /// Without a declaration it declares itself by its name and may have what it imports, as far as it is
    /// granted.
    pub fn provider(
        mut self,
        name: impl Into<String>,
        component: impl Into<Vec<u8>>,
        granted: impl IntoIterator<Item = Grant>,
    ) -> Self {
        self.brought.push(Brought {
            name: name.into(),
            component: Component::Bytes(component.into()),
            manifest: None,
            granted: once_each(granted),
            source: "the host application".into(),
        });
        self
    }

    /// The same from files, which are read when one is first asked for.
    pub fn provider_files(mut self, files: ProviderFiles, granted: impl IntoIterator<Item = Grant>) -> Self {
        self.brought.push(Brought::from_files(files, granted));
        self
    }

    /// Makes the runtime. Providers are loaded, and the engine is made, when they are first used.
    ///
    /// # Errors
    /// When a directory or the store cannot be used.
    pub async fn build(self) -> Result<Leasehold, Error> {
        let Builder {
            directory, store, cache, limits, isolation, ceilings, allocation, clock, times, ..
        } = self;
        own(&directory)?;
        let jails = Arc::new(Jails::open(&directory.join("jails"))?.with_ceilings(ceilings));
        let edge = Arc::new(HttpEdge::new(self.network)?);
        let facilities: [Arc<dyn Facility>; 5] = [
            Arc::new(JailFacility::new(jails.clone(), isolation)),
            Arc::new(HttpFacility::new(edge.clone())),
            Arc::new(ConnectFacility::new(edge)),
            Arc::new(StateFacility),
            Arc::new(EgressFacility),
        ];
        let ledger = Ledger::default();
        let services = Services {
            resolver: self.secrets,
            state: Arc::new(ledger.clone()),
            audit: Arc::new(ledger.clone()),
        };
        let components = Components::new(
            cache.unwrap_or_else(|| directory.join("compiled")),
            facilities.into_iter().collect(),
            allocation,
            Shelf::new(directory.join("providers")),
            limits,
            services,
        );
        let warming = self.warm.then(|| components.begin(embedded::pin()));
        let options = Options { clock: clock.clone(), ..Options::default() };
        let store = match store.unwrap_or_else(|| StoreAt::File(directory.join("leases.db"))) {
            StoreAt::File(file) => Store::open(file, options).await?,
            #[cfg(feature = "postgres")]
            StoreAt::Server(address) => Store::connect(&address, options).await?,
        };
        ledger.open(store.clone());
        let registry = Registry::new(store.clone(), components);
        if let Some(warming) = warming {
            registry.begin(&embedded::pin(), warming);
        }
        let settings = LeaseSettings { times, spool: Some(directory.join("spool")) };
        let providers = Arc::new(Pinned(registry.clone()));
        let leases = Leases::open(store.clone(), providers, settings).await?;
        Ok(Leasehold(Arc::new(Inner {
            state: directory,
            store,
            ledger,
            registry,
            leases,
            jails,
            clock,
            environments: self.environments,
            brought: self.brought,
            local: OnceCell::new(),
            ensured: OnceCell::new(),
        })))
    }
}

/// Makes the runtime's directory, for its owner alone.
fn own(directory: &Path) -> Result<(), Error> {
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
    made.map_err(|source| Error::Directory { path: directory.into(), source })
}
