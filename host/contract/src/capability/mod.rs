//! Optional abilities of a provider, and how a run gets them.
//!
//! `effective = verified ∩ declared ∩ narrowing`, key by key: the component must have the methods, the
//! declaration must not forbid the key (and must ask for it where it is opt-in), and this run must not have
//! taken it away. Nothing else grants a capability.

mod declared;
mod identity;
mod narrowing;
mod resolve;

pub use declared::Declared;
pub use identity::{IdentityFailure, InstalledPlugin, identify};
pub use narrowing::{LeasePolicy, Narrowing, NarrowingFault};
pub use resolve::{Effective, Resolution, deny, native_sync, published_reusable, resolve};

use crate::method::Method;
use crate::verification::Verification;
use serde::{Serialize, Serializer};

/// An optional ability of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Capability {
    /// The host keeps a lease and resumes it in later runs.
    ReusableLeases,
    /// The host moves files into the sandbox through the provider's own way.
    NativeSyncIn,
    /// The host moves files out of the sandbox through the provider's own way.
    NativeSyncOut,
    /// A process session stays open across commands.
    PersistentProcessSessions,
    /// A short command runs beside a long one.
    IndependentControlCommands,
    /// Output of a live session arrives as it is produced.
    IncrementalSessionOutput,
}

/// What the contract says of one capability.
#[derive(Clone, Copy, Debug)]
pub struct CapabilityInfo {
    /// The capability.
    pub capability: Capability,
    /// Its key in declarations and in JSON.
    pub name: &'static str,
    /// The methods it needs, all of them.
    pub methods: &'static [Method],
    /// Whether a declaration that leaves the key out denies it.
    pub opt_in: bool,
}

/// Every capability, in the order people see them; the index is the capability's.
pub const CAPABILITIES: [CapabilityInfo; 6] = [
    // Without a destroy, a lease that cannot be resumed any more would be stranded. Opt-in, because keeping
    // a sandbox costs money and keeps its data.
    CapabilityInfo {
        capability: Capability::ReusableLeases,
        name: "reusableLeases",
        methods: &[Method::ResumeLease, Method::ReleaseLease, Method::DestroyLease],
        opt_in: true,
    },
    CapabilityInfo {
        capability: Capability::NativeSyncIn,
        name: "nativeSyncIn",
        methods: &[Method::SyncIn],
        opt_in: false,
    },
    CapabilityInfo {
        capability: Capability::NativeSyncOut,
        name: "nativeSyncOut",
        methods: &[Method::SyncOut],
        opt_in: false,
    },
    CapabilityInfo {
        capability: Capability::PersistentProcessSessions,
        name: "persistentProcessSessions",
        methods: &[Method::Execute],
        opt_in: false,
    },
    CapabilityInfo {
        capability: Capability::IndependentControlCommands,
        name: "independentControlCommands",
        methods: &[Method::Execute],
        opt_in: false,
    },
    // Opt-in, because no method's type shows whether output really arrives while a session runs.
    CapabilityInfo {
        capability: Capability::IncrementalSessionOutput,
        name: "incrementalSessionOutput",
        methods: &[Method::Execute],
        opt_in: true,
    },
];

impl Capability {
    /// Every capability, in the table's order.
    pub const ALL: [Capability; 6] = [
        Capability::ReusableLeases,
        Capability::NativeSyncIn,
        Capability::NativeSyncOut,
        Capability::PersistentProcessSessions,
        Capability::IndependentControlCommands,
        Capability::IncrementalSessionOutput,
    ];

    /// What the contract says of this capability.
    pub const fn info(self) -> &'static CapabilityInfo {
        // A test compares every row with its index.
        &CAPABILITIES[self as usize]
    }

    /// The key in declarations and in JSON.
    pub const fn name(self) -> &'static str {
        self.info().name
    }

    /// The capability of this name; none when the contract has no such key. Case matters.
    pub fn by_name(name: &str) -> Option<Capability> {
        Capability::ALL.into_iter().find(|capability| capability.name() == name)
    }

    /// The methods it needs, all of them.
    pub const fn methods(self) -> &'static [Method] {
        self.info().methods
    }

    /// Whether a declaration that leaves the key out denies it.
    pub const fn opt_in(self) -> bool {
        self.info().opt_in
    }

    /// Whether every method it needs is verified.
    pub fn verified_by(self, verification: &Verification) -> bool {
        self.methods().iter().all(|method| verification.has(*method))
    }
}

impl std::fmt::Display for Capability {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Capability {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_capability_is_its_own_row_and_is_found_by_its_name() {
        for (index, capability) in Capability::ALL.into_iter().enumerate() {
            assert_eq!(capability as usize, index);
            assert_eq!(capability.info().capability, capability);
            assert_eq!(Capability::by_name(capability.name()), Some(capability));
            assert!(!capability.methods().is_empty());
        }
        assert_eq!(Capability::by_name("NativeSyncIn"), None);
    }

    #[test]
    fn only_reuse_and_incremental_output_have_to_be_asked_for() {
        let opt_in: Vec<_> = Capability::ALL.into_iter().filter(|capability| capability.opt_in()).collect();
        assert_eq!(opt_in, [Capability::ReusableLeases, Capability::IncrementalSessionOutput]);
    }
}
