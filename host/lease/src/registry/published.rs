//! What a host publishes of its providers, for people and programs that choose one.

use super::ProviderRecord;
use leasehold_contract::Verification;
use leasehold_contract::capability::{Capability, published_reusable};
use leasehold_contract::declaration::DriverDeclaration;
use serde::Serialize;

/// One sandbox provider that can be chosen now.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Published {
    /// The id that leases would pin.
    pub plugin_id: String,
    /// The provider's key.
    pub plugin_key: String,
    /// What the driver declares, every flag said.
    #[serde(flatten)]
    pub driver: DriverDeclaration,
    /// Whether leases can be reused: declared, and all methods for it verified. The acquisition asks the same.
    pub reusable_leases: bool,
    /// Whether all methods for reusing leases are verified, whatever is declared.
    pub reusable_lease_methods_verified: bool,
}

impl Published {
    pub(super) fn of(
        record: &ProviderRecord,
        driver: DriverDeclaration,
        verification: &Verification,
    ) -> Published {
        Published {
            plugin_id: record.id.clone(),
            plugin_key: record.key.clone(),
            reusable_leases: published_reusable(verification, &driver.capabilities),
            reusable_lease_methods_verified: Capability::ReusableLeases.verified_by(verification),
            driver,
        }
    }
}
