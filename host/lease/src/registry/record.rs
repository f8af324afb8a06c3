//! A provider as the store knows it.

use super::Unloaded;
use leasehold_contract::declaration::{DriverDeclaration, DriverKind, ProviderManifest, manifest};

/// Whether a provider may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProviderStatus {
    /// New leases may be acquired from it.
    Ready,
    /// A person took it out of use; its leases still end.
    Disabled,
    /// It is no longer installed. It stays in the store until the last of its leases has ended.
    Removed,
}

impl ProviderStatus {
    const ALL: [ProviderStatus; 3] =
        [ProviderStatus::Ready, ProviderStatus::Disabled, ProviderStatus::Removed];

    /// The word for it, in the store and for people.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            ProviderStatus::Ready => "ready",
            ProviderStatus::Disabled => "disabled",
            ProviderStatus::Removed => "removed",
        }
    }

    pub(crate) fn parse(word: &str) -> Option<ProviderStatus> {
        ProviderStatus::ALL.into_iter().find(|status| status.word() == word)
    }
}

impl std::fmt::Display for ProviderStatus {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str(self.word())
    }
}

/// An installed provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderRecord {
    /// Its own id, which leases pin. Another installation of the same key has another.
    pub id: String,
    /// The key it declares for itself; one ready or disabled provider has it.
    pub key: String,
    /// Digest of the component that new leases get.
    pub digest: String,
    /// The version it declares.
    pub version: String,
    /// Its whole declaration, as JSON.
    pub declaration: String,
    /// What the host granted it, as JSON. This crate only keeps it.
    pub grants: String,
    /// Whether it may be used.
    pub status: ProviderStatus,
    /// Its place in the order of installation.
    pub position: u64,
    /// Where it came from, for people.
    pub source: String,
    /// When it was installed, in milliseconds since the Unix epoch.
    pub installed_ms: u64,
    /// When it was changed last.
    pub updated_ms: u64,
}

impl ProviderRecord {
    /// Reads its declaration.
    ///
    /// # Errors
    /// When this version of the host no longer accepts it.
    pub fn manifest(&self) -> Result<ProviderManifest, Unloaded> {
        let value = serde_json::from_str(&self.declaration).map_err(|error| error.to_string());
        let read = value.and_then(|value| {
            manifest(&value)
                .map_err(|faults| faults.iter().map(|fault| fault.to_string()).collect::<Vec<_>>().join("; "))
        });
        read.map_err(|why| Unloaded {
            why: format!("its declaration is not accepted by this version ({why}); install it again"),
            passing: false,
        })
    }

    /// The declaration of a driver that is a sandbox provider; none when it has no such driver.
    #[must_use]
    pub fn sandbox_driver(&self, driver: &str) -> Option<DriverDeclaration> {
        let drivers = self.manifest().ok()?.environment_drivers;
        drivers.into_iter().find(|it| it.driver_key == driver && it.kind == DriverKind::SandboxProvider)
    }
}
