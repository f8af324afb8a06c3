//! Components, loaded when they are first used.
//!
//! The engine is made with the first of them: whoever only lists leases has none. Compiling and linking
//! happen on threads of their own.

use super::{Installed, embedded, package};
use crate::error::Error;
use crate::installed::shelf::Shelf;
use leasehold_authority::Services;
use leasehold_contract::Verification;
use leasehold_contract::authority::{Grant, Permission, Policy};
use leasehold_contract::declaration::ProviderManifest;
use leasehold_engine::limits::COMPONENT_BYTES_MAX;
use leasehold_engine::{
    Allocation, Cache, CacheError, Compiled, Digest, Engine, EngineError, EngineOptions, Facilities, Limits,
    LinkError, LoadError,
};
use leasehold_lease::registry::{ComponentRef, Loader, Starting, Unloaded};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// What is needed to load components. Clones are one.
#[derive(Clone, Debug)]
pub(crate) struct Components(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Where compiled components are kept.
    cache: PathBuf,
    facilities: Facilities,
    allocation: Option<Allocation>,
    engine: OnceLock<Result<Engine, Arc<EngineFault>>>,
    shelf: Shelf,
    limits: Limits,
    services: Services,
}

/// Why there is no engine.
#[derive(Debug, thiserror::Error)]
pub enum EngineFault {
    /// It does not run here.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The cache cannot be used.
    #[error(transparent)]
    Cache(#[from] CacheError),
}

impl Components {
    pub(crate) fn new(
        cache: PathBuf,
        facilities: Facilities,
        allocation: Option<Allocation>,
        shelf: Shelf,
        limits: Limits,
        services: Services,
    ) -> Components {
        let engine = OnceLock::new();
        Components(Arc::new(Inner { cache, facilities, allocation, engine, shelf, limits, services }))
    }

    /// Begins to load what is pinned, on a thread of its own.
    pub(crate) fn begin(
        &self,
        pin: ComponentRef,
    ) -> impl Future<Output = Result<Arc<Installed>, Unloaded>> + Send + use<> {
        let components = self.clone();
        let loading = tokio::task::spawn_blocking(move || components.load_now(&pin));
        async move {
            let broke_off = || Unloaded { why: "loading it broke off".into(), passing: true };
            loading.await.map_err(|_| broke_off())?
        }
    }

    pub(crate) fn shelf(&self) -> &Shelf {
        &self.0.shelf
    }

    /// Makes the engine, or waits until another thread has. Blocks.
    fn engine(&self) -> Result<&Engine, Error> {
        let made = self.0.engine.get_or_init(|| {
            let make = || {
                let cache = Some(Cache::open(&self.0.cache)?);
                let facilities = self.0.facilities.clone();
                Ok(Engine::new(EngineOptions { cache, facilities, allocation: self.0.allocation })?)
            };
            make().map_err(Arc::new)
        });
        made.as_ref().map_err(|error| Error::Engine(error.clone()))
    }

    /// Compiles a component from a file and reads it; nothing of it runs. Also gives its bytes. Blocks.
    pub(crate) fn compile(&self, path: &Path) -> Result<(Compiled, Vec<u8>), Error> {
        // One byte above what is allowed is enough for the engine to refuse it.
        let bytes = package::read(path, COMPONENT_BYTES_MAX + 1)?;
        Ok((self.compile_bytes(&path.display().to_string(), &bytes)?, bytes))
    }

    /// Compiles a component from its bytes. Blocks.
    pub(crate) fn compile_bytes(&self, name: &str, bytes: &[u8]) -> Result<Compiled, Error> {
        let refused = |source| Error::Load { provider: name.to_owned(), source };
        self.engine()?.load(bytes).map_err(refused)
    }

    /// Loads what is pinned, from the cache where it is there. Blocks.
    fn load_now(&self, pin: &ComponentRef) -> Result<Arc<Installed>, Unloaded> {
        let lasting = |error: &dyn std::fmt::Display| Unloaded { why: error.to_string(), passing: false };
        let engine = self.engine().map_err(|error| lasting(&error))?;
        let digest = Digest::parse(&pin.digest).ok_or_else(|| lasting(&"its digest is none"))?;
        let embedded = pin.provider == embedded::LOCAL_PROVIDER && digest == embedded::digest();
        let manifest = if embedded {
            embedded::declared().map_err(|error| lasting(&error))?
        } else {
            self.0.shelf.manifest(&pin.provider, &pin.digest).map_err(|error| missing(pin, &error))?
        };
        let compiled = match engine.load_cached(digest) {
            Ok(compiled) => compiled,
            Err(_) if embedded => engine.load(embedded::COMPONENT).map_err(|error| lasting(&error))?,
            Err(_) => {
                let path = self.0.shelf.component(&pin.provider, &pin.digest);
                let compiled = engine.load_file(&path).map_err(|error| match error {
                    LoadError::Unreadable { .. } => missing(pin, &error),
                    _ => lasting(&error),
                })?;
                if compiled.digest() != digest {
                    let what = format!("{} was changed; install the provider again", path.display());
                    return Err(lasting(&what));
                }
                compiled
            }
        };
        let granted: Vec<Grant> = serde_json::from_str(&pin.grants).map_err(|error| lasting(&error))?;
        let policy = policy(&pin.key, &manifest, granted);
        let linked = compiled.link(&policy.permissions());
        let provider = linked.map_err(|error| lasting(&unlinked(&policy, &error)))?;
        let (limits, services) = (self.0.limits.clone(), self.0.services.clone());
        Ok(Arc::new(Installed { provider, limits, policy: Arc::new(policy), services }))
    }
}

impl Loader for Components {
    type Component = Arc<Installed>;

    fn load(&self, pin: ComponentRef) -> Starting<Arc<Installed>> {
        Box::pin(self.begin(pin))
    }

    fn verification(component: &Arc<Installed>) -> &Verification {
        component.provider.inspection().verification()
    }
}

/// What a provider may reach: what it declares and is granted.
pub(crate) fn policy(key: &str, manifest: &ProviderManifest, granted: Vec<Grant>) -> Policy {
    Policy::new(key, Some(manifest.permissions.clone()), granted)
}

/// A refusal to link, with what to type: what is declared has only to be granted.
pub(crate) fn unlinked(policy: &Policy, error: &LinkError) -> String {
    use leasehold_engine::Refusal;
    let wanted = error.refusals.iter().flat_map(|refusal| match refusal {
        Refusal::NotGranted { permissions, .. } => permissions.clone(),
        _ => Vec::new(),
    });
    let wanted: BTreeSet<_> = wanted.collect();
    let granted = |permission: &Permission| policy.granted().iter().any(|it| it.permission() == *permission);
    let declares = |permission: &Permission| {
        policy.declared().is_none_or(|asks| asks.iter().any(|ask| ask.permission() == *permission))
    };
    let (declared, undeclared): (Vec<_>, Vec<_>) = wanted.into_iter().partition(declares);
    let mut text = error.to_string();
    let flags: Vec<_> =
        declared.iter().filter(|it| !granted(it)).map(|it| format!("--grant {}", it.form())).collect();
    if !flags.is_empty() {
        text.push_str(&format!("\nto grant what `{}` declares, add {}", policy.provider(), flags.join(" ")));
    }
    if !undeclared.is_empty() {
        let names: Vec<_> = undeclared.iter().map(ToString::to_string).collect();
        text.push_str(&format!(
            "\nto declare it, add {} to \"permissions\" in provider.json",
            names.join(", ")
        ));
    }
    text
}

/// A component that is not here may still come: another host of the same store has it.
fn missing(pin: &ComponentRef, error: &dyn std::fmt::Display) -> Unloaded {
    let ComponentRef { key, digest, .. } = pin;
    let short = digest.get(..12).unwrap_or(digest);
    let why = format!("its component {short} is not on this machine ({error}); install `{key}` here as well");
    Unloaded { why, passing: true }
}

/// What a component by itself declares, when nobody says more.
pub(crate) fn manifest_of(name: &str, compiled: &Compiled) -> Result<ProviderManifest, Error> {
    package::by_itself(name, compiled.inspection())
}
