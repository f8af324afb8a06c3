//! Which plugin's declaration counts for a kept lease.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use leasehold_contract::capability::{
    Capability, Effective, IdentityFailure, InstalledPlugin, LeasePolicy, Narrowing, deny, identify, resolve,
};
use leasehold_contract::declaration::{DriverDeclaration, driver};
use leasehold_contract::method::METHODS;
use leasehold_contract::{Method, Verification};
use serde_json::{Value, json};

fn declare(kind: &str, extra: Value) -> DriverDeclaration {
    let mut value = json!({"driverKey": "boxes", "kind": kind, "displayName": "Boxes", "configSchema": {}});
    value.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    driver(&value).unwrap()
}

fn snapshot(plugins: &[InstalledPlugin<'_>], id: Option<&str>, verification: &Verification) -> Effective {
    let narrowing = Narrowing::none().lease_policy(Some(LeasePolicy::ReuseByEnvironment));
    match identify(plugins, id, "boxes") {
        Ok(driver) => resolve(verification, &driver.capabilities, &narrowing),
        Err(failure) => deny(&failure),
    }
}

fn all_methods() -> Verification {
    Verification::of(METHODS.iter().map(|info| info.method))
}

#[test]
fn a_lease_is_resolved_by_its_own_plugin_not_by_the_first_one_with_the_key() {
    let no_sync = json!({"reusableLeases": true, "nativeSyncIn": false, "nativeSyncOut": false});
    let no_reuse = json!({"reusableLeases": false, "nativeSyncIn": true, "nativeSyncOut": true});
    let first = [declare("sandbox_provider", json!({"sandboxCapabilities": no_sync}))];
    let second = [declare("sandbox_provider", json!({"sandboxCapabilities": no_reuse}))];
    let plugins =
        [InstalledPlugin { id: "one", drivers: &first }, InstalledPlugin { id: "two", drivers: &second }];
    let effective = snapshot(&plugins, Some("two"), &all_methods());
    assert!(!effective.has(Capability::ReusableLeases));
    assert!(effective.has(Capability::NativeSyncIn) && effective.has(Capability::NativeSyncOut));
    let effective = snapshot(&plugins, Some("one"), &all_methods());
    assert!(effective.has(Capability::ReusableLeases) && !effective.has(Capability::NativeSyncIn));
}

#[test]
fn a_lease_whose_plugin_is_not_established_has_nothing() {
    let plain = [declare("environment_driver", json!({}))];
    let valid = [declare("sandbox_provider", json!({}))];
    let plugins = [
        InstalledPlugin { id: "valid", drivers: &valid },
        InstalledPlugin { id: "plain", drivers: &plain },
        InstalledPlugin { id: "empty", drivers: &[] },
    ];
    let cases = [
        (None, "identity: the lease names no plugin"),
        (Some(" "), "identity: the lease names no plugin"),
        (Some("gone"), "identity: plugin gone is not installed"),
        (Some("plain"), "identity: plugin plain no longer declares boxes as sandbox_provider"),
        (Some("empty"), "identity: plugin empty no longer declares boxes as sandbox_provider"),
    ];
    for (id, reason) in cases {
        for (capability, found) in snapshot(&plugins, id, &all_methods()).iter() {
            assert!(!found.effective() && !found.verified(), "{capability}");
            assert_eq!(found.reason(), Some(reason));
        }
    }
    assert_eq!(
        identify(&plugins, Some("valid"), "other"),
        Err(IdentityFailure::NotDeclared { plugin: "valid".to_owned(), driver_key: "other".to_owned() })
    );
}

#[test]
fn a_valid_plugin_that_declares_no_capabilities_defers_to_its_methods() {
    let drivers = [declare("sandbox_provider", json!({}))];
    let plugins = [InstalledPlugin { id: "valid", drivers: &drivers }];
    let effective = snapshot(&plugins, Some("valid"), &Verification::of([Method::SyncIn, Method::SyncOut]));
    assert!(effective.has(Capability::NativeSyncIn) && effective.has(Capability::NativeSyncOut));
    assert!(!effective.has(Capability::ReusableLeases));
}
