//! What a lease has of its provider: verified ∩ declared ∩ narrowed, by the provider that made it.

use leasehold_contract::Verification;
use leasehold_contract::capability::{
    Effective, IdentityFailure, LeasePolicy, Narrowing, deny, resolve as intersect,
};
use leasehold_contract::declaration::DriverDeclaration;
use leasehold_lease::{Lease, Policy};
use serde_json::Value;

/// The snapshot for a lease. Where it is not established whose declaration counts, there is nothing.
pub(super) fn of(
    lease: &Lease,
    verification: &Verification,
    declaration: &Result<DriverDeclaration, IdentityFailure>,
) -> Effective {
    let declared = match declaration {
        Ok(driver) => &driver.capabilities,
        Err(failure) => return deny(failure),
    };
    let policy = match lease.policy {
        Policy::Ephemeral => LeasePolicy::Ephemeral,
        Policy::Reuse => LeasePolicy::ReuseByEnvironment,
        Policy::KeepOnFailure => LeasePolicy::RetainOnFailure,
    };
    let metadata = lease.allocation.as_ref().and_then(|allocation| allocation.metadata.as_deref());
    let metadata = metadata.and_then(|text| serde_json::from_str(text).ok()).unwrap_or(Value::Null);
    let narrowing = Narrowing::none().lease_policy(Some(policy)).lease_metadata(&metadata);
    intersect(verification, declared, &narrowing)
}
