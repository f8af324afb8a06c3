//! A component on its way to being called: compiled and read, then linked with what it was granted.

use crate::call::{CallOptions, CallState, Finished, run};
use crate::config::places;
use crate::engine::Engine;
use crate::hook::{Guests, Hook};
use crate::host;
use crate::inspect::{Import, Inspection, Wanted};
use leasehold_bindings::types::Context;
use leasehold_contract::authority::Permission;
use leasehold_contract::text::plain;
use std::collections::BTreeSet;
use std::sync::Arc;
use wasmtime::component::{Component, InstancePre};

/// A component that was compiled and read. Nothing of it has run, and it can reach nothing.
#[derive(Clone)]
pub struct Compiled {
    pub(crate) engine: Engine,
    pub(crate) component: Component,
    pub(crate) digest: Digest,
    pub(crate) component_bytes: u64,
    pub(crate) inspection: Arc<Inspection>,
}

/// A component's identity: the BLAKE3 hash of its bytes, written as 64 hex digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Digest(pub(crate) blake3::Hash);

/// A component that is linked and can be called.
#[derive(Clone)]
pub struct Provider {
    compiled: Compiled,
    pre: InstancePre<CallState>,
    guests: Arc<Guests>,
    unused: Arc<BTreeSet<Permission>>,
}

/// A component that wants what it may not have. Every refusal at once.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the component wants what it may not have:{}", lines(.refusals))]
pub struct LinkError {
    /// What is refused, one for each import.
    pub refusals: Vec<Refusal>,
}

/// An import that is refused, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// A permission would cover it, and is not granted.
    #[error("`{import}` needs the permission {}; declare it, and grant it with {}", any(.permissions), commands(.permissions))]
    NotGranted {
        /// The import.
        import: String,
        /// The permissions, any one of which would do.
        permissions: Vec<Permission>,
    },
    /// No permission covers it.
    #[error("`{import}` is never granted; {instead}")]
    Never {
        /// The import.
        import: String,
        /// What to use instead.
        instead: &'static str,
    },
    /// The contract has no such interface.
    #[error("`{}` is no interface of the contract, or of a version that is not served; remove the import, or use a host that has it", shown(.import))]
    Unknown {
        /// The import.
        import: String,
    },
    /// The contract has it, this build has not.
    #[error("`{import}` is not in this build of the host; use a build that has it")]
    NotBuilt {
        /// The import.
        import: String,
    },
    /// An interface that the engine itself provides does not fit.
    #[error("the imports do not fit this host: {reason}; build the component against WASI 0.2")]
    Unfit {
        /// What the engine says.
        reason: String,
    },
    /// Its type is not the contract's.
    #[error(
        "`{import}` has another type than the host's: {reason}; build the component against this host's interfaces"
    )]
    WrongShape {
        /// The import.
        import: String,
        /// Where the types differ.
        reason: String,
    },
}

impl Compiled {
    /// What the component really exports and imports.
    pub fn inspection(&self) -> &Inspection {
        &self.inspection
    }

    /// The component's identity.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Size of the component file in bytes.
    pub fn component_bytes(&self) -> u64 {
        self.component_bytes
    }

    /// Size of the compiled code in bytes.
    pub fn compiled_bytes(&self) -> u64 {
        let range = self.component.image_range();
        (range.end as usize - range.start as usize) as u64
    }

    /// Reads the component's type again; [`Compiled::inspection`] keeps what the first reading said.
    pub fn inspect(&self) -> Inspection {
        Inspection::of(self.engine.wasmtime(), &self.component)
    }

    /// Links the component with what it was granted.
    ///
    /// # Errors
    /// Every import that is not covered, has another type than the host's, or is not in this build.
    pub fn link(self, granted: &BTreeSet<Permission>) -> Result<Provider, LinkError> {
        let imports = self.inspection.imports();
        let refusals: Vec<_> =
            imports.iter().filter_map(|import| refusal(&self.engine, import, granted)).collect();
        if !refusals.is_empty() {
            return Err(LinkError { refusals });
        }
        // Only the WASI interfaces are left to differ; the engine names the one that does.
        let pre =
            self.engine.linker().instantiate_pre(&self.component).map_err(|error| LinkError {
                refusals: vec![Refusal::Unfit { reason: format!("{error:#}") }],
            })?;
        let guests = Arc::new(Guests::of(&pre));
        let used: BTreeSet<_> = imports.iter().flat_map(permissions).collect();
        let unused = Arc::new(granted.difference(&used).copied().collect());
        Ok(Provider { compiled: self, pre, guests, unused })
    }
}

impl Provider {
    /// Calls a method in a fresh instance, which is dropped afterwards whatever happened.
    ///
    /// `context.remaining_ms` is set here from the limits. Dropping the future cancels the call.
    pub async fn call<H: Hook>(
        &self,
        hook: H,
        context: Context,
        options: &CallOptions,
    ) -> Finished<H::Answer> {
        run::run(self, hook, context, options).await
    }

    /// What the component really exports and imports.
    pub fn inspection(&self) -> &Inspection {
        &self.compiled.inspection
    }

    /// The component's identity.
    pub fn digest(&self) -> Digest {
        self.compiled.digest
    }

    /// Permissions that were granted and that no import uses.
    pub fn unused_grants(&self) -> &BTreeSet<Permission> {
        &self.unused
    }

    /// Places that a call takes among those that run at one time.
    pub(crate) fn places(&self) -> u32 {
        places(self.inspection().demand().map(|demand| demand.memories))
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.compiled.engine
    }

    pub(crate) fn pre(&self) -> &InstancePre<CallState> {
        &self.pre
    }

    pub(crate) fn guests(&self) -> &Guests {
        &self.guests
    }
}

impl Digest {
    /// The digest of a component's bytes.
    pub fn of(bytes: &[u8]) -> Digest {
        Digest(blake3::hash(bytes))
    }

    /// The digest written as 64 hex digits; none when the text is something else.
    pub fn parse(text: &str) -> Option<Digest> {
        blake3::Hash::from_hex(text).ok().map(Digest)
    }
}

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.to_hex().as_str())
    }
}

impl std::fmt::Debug for Compiled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compiled").field("digest", &self.digest).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Provider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Provider").field("digest", &self.compiled.digest).finish_non_exhaustive()
    }
}

fn permissions(import: &Import) -> impl Iterator<Item = Permission> {
    let permissions = match import.need {
        Wanted::AnyOf(permissions) => permissions,
        _ => &[],
    };
    permissions.iter().copied()
}

fn refusal(engine: &Engine, import: &Import, granted: &BTreeSet<Permission>) -> Option<Refusal> {
    let name = import.name.clone();
    match import.need {
        Wanted::Unknown => return Some(Refusal::Unknown { import: name }),
        Wanted::Never(instead) => return Some(Refusal::Never { import: name, instead }),
        Wanted::AnyOf(permissions) if !permissions.iter().any(|permission| granted.contains(permission)) => {
            return Some(Refusal::NotGranted { import: name, permissions: permissions.to_vec() });
        }
        Wanted::AnyOf(_) | Wanted::Nothing => {}
    }
    if let Some(difference) = &import.difference {
        return Some(Refusal::WrongShape { import: name, reason: difference.to_string() });
    }
    let provided = host::provides(engine.facilities(), import.bare_name());
    (!provided).then_some(Refusal::NotBuilt { import: name })
}

/// An import's name is the component's own text.
fn shown(import: &str) -> String {
    plain(import, 200)
}

fn lines(refusals: &[Refusal]) -> String {
    refusals.iter().map(|refusal| format!("\n  {refusal}")).collect()
}

/// The commands that would grant it. The component does not know what its host calls it.
fn commands(permissions: &[Permission]) -> String {
    let commands = permissions
        .iter()
        .map(|permission| format!("`leasehold provider grant PROVIDER {}`", permission.form()));
    commands.collect::<Vec<_>>().join(" or ")
}

fn any(permissions: &[Permission]) -> String {
    let names: Vec<_> = permissions.iter().map(|permission| format!("`{permission}`")).collect();
    names.join(" or ")
}
