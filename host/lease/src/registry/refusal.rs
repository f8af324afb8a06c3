//! Why a provider cannot be used, or not be changed.

use super::{Contradiction, ProviderStatus, Unloaded};
use crate::StoreError;

/// Why there is no provider to be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// Nobody declares the driver as a sandbox provider.
    #[error("there is no provider `{}`; installed: {}. Type `leasehold provider install PATH` to add one", .driver.escape_debug(), listed(.known))]
    NotInstalled {
        /// The driver asked for.
        driver: String,
        /// The drivers there are.
        known: Vec<String>,
    },
    /// No provider has this key.
    #[error("no provider `{key}` is installed; type `leasehold provider ls` to see which are")]
    UnknownKey {
        /// The key asked for.
        key: String,
    },
    /// No provider has this id any more.
    #[error("the provider that made it (`{id}`) is not installed in this store")]
    UnknownId {
        /// The id asked for.
        id: String,
    },
    /// Whoever declares it is taken out of use.
    #[error("provider `{key}:{driver}` is not ready, it is {status}; type `leasehold provider enable {key}`")]
    NotReady {
        /// The provider's key.
        key: String,
        /// The driver asked for.
        driver: String,
        /// What it is instead.
        status: ProviderStatus,
    },
    /// The provider has no such driver.
    #[error("provider `{key}` declares no sandbox provider `{driver}`; it declares: {}", listed(.declared))]
    NotDeclared {
        /// The provider's key.
        key: String,
        /// The driver asked for.
        driver: String,
        /// The sandbox providers it declares.
        declared: Vec<String>,
    },
    /// It is installed and ready, and its component cannot be called.
    #[error("provider `{key}:{driver}` is installed and its component cannot be used: {cause}")]
    NotLoadable {
        /// The provider's key.
        key: String,
        /// The driver asked for, or its key where only one provider was meant.
        driver: String,
        /// Why.
        cause: Unloaded,
    },
}

impl Refusal {
    /// Whether asking again later may help without anybody doing anything.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        matches!(self, Refusal::NotLoadable { cause, .. } if cause.passing)
    }
}

/// Why nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InstallFault {
    /// Another component or declaration of that key is installed.
    #[error(
        "`{key}` is installed already, as version {version}; type `leasehold provider upgrade PATH` to replace it"
    )]
    AlreadyInstalled {
        /// The key.
        key: String,
        /// The version that is installed.
        version: String,
    },
    /// The key or the driver's belongs to the host itself.
    #[error("`{key}` is reserved for the host itself; declare another key")]
    Reserved {
        /// The key.
        key: String,
    },
    /// It is part of the host.
    #[error(
        "`{key}` is part of Leasehold and cannot be removed; type `leasehold provider disable {key}` to take it out of use"
    )]
    Embedded {
        /// The key.
        key: String,
    },
    /// Somebody else changed it in between.
    #[error("`{key}` was changed by another in between; look again with `leasehold provider ls`")]
    Changed {
        /// The key.
        key: String,
    },
}

/// What can go wrong with the registry.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no provider to be had.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Nothing was changed.
    #[error(transparent)]
    Install(#[from] InstallFault),
    /// The store contradicts what is kept of it.
    #[error(transparent)]
    Contradiction(#[from] Contradiction),
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "none".into() } else { names.join(", ") }
}
