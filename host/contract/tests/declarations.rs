//! What a declaration may say, and what is said of one that is wrong.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use leasehold_contract::authority::{Ask, Permission};
use leasehold_contract::capability::Capability;
use leasehold_contract::declaration::{DRIVER_KEYS, DriverKind, Fault, MANIFEST_KEYS, driver, manifest};
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Map, Value, json};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    set: Map<String, Value>,
    #[serde(default)]
    remove: Vec<String>,
    /// Path and a part of the message of every fault, in order; none when the declaration is valid.
    faults: Vec<(String, String)>,
}

impl Case {
    fn applied_to(&self, mut valid: Value) -> Value {
        let object = valid.as_object_mut().unwrap();
        object.extend(self.set.clone());
        self.remove.iter().for_each(|key| drop(object.remove(key)));
        valid
    }

    fn check(&self, faults: &[Fault]) {
        let paths: Vec<_> = faults.iter().map(|fault| fault.path.as_str()).collect();
        let expected: Vec<_> = self.faults.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(paths, expected, "{}: {faults:?}", self.name);
        for (fault, (_, part)) in faults.iter().zip(&self.faults) {
            assert!(fault.message.contains(part), "{}: {fault}", self.name);
        }
    }
}

fn cases(text: &str) -> Vec<Case> {
    serde_json::from_str(text).unwrap()
}

fn valid_driver() -> Value {
    json!({"driverKey": "boxes", "displayName": "Boxes", "configSchema": {"type": "object"}})
}

fn valid_manifest() -> Value {
    json!({
        "pluginKey": "acme.boxes", "version": "1.0.0", "capabilities": ["environment.drivers.register"],
        "environmentDrivers": [valid_driver()],
    })
}

/// A valid driver with one more field.
fn with(key: &str, value: Value) -> Value {
    let mut driver = valid_driver();
    driver[key] = value;
    driver
}

#[test]
fn every_driver_has_the_faults_the_table_says() {
    for case in cases(include_str!("data/drivers.json")) {
        case.check(&driver(&case.applied_to(valid_driver())).err().unwrap_or_default());
    }
}

#[test]
fn every_manifest_has_the_faults_the_table_says() {
    for case in cases(include_str!("data/manifests.json")) {
        case.check(&manifest(&case.applied_to(valid_manifest())).err().unwrap_or_default());
    }
}

#[test]
fn every_known_key_is_read_and_a_key_is_never_both_known_and_dropped() {
    // An array is right for no scalar and wrong inside for every list.
    let drivers = DRIVER_KEYS.iter().map(|key| (*key, driver(&with(key, json!([[]]))).err()));
    let manifests = MANIFEST_KEYS.iter().map(|key| {
        let mut value = valid_manifest();
        value[*key] = json!([[]]);
        (*key, manifest(&value).err())
    });
    for (key, faults) in drivers.chain(manifests) {
        let faults = faults.unwrap_or_default();
        assert!(faults.iter().any(|fault| fault.path.starts_with(key)), "{key}: {faults:?}");
        assert!(!faults.iter().any(|fault| fault.message.contains("unknown key")), "{key}: {faults:?}");
    }
}

#[test]
fn lengths_are_counted_in_characters() {
    let long = |count: usize| Value::from("é".repeat(count));
    let name = |count: usize| Value::from("x".repeat(count));
    let cases = [
        ("displayName", long(100), long(101)),
        ("description", long(500), long(501)),
        ("templateRefKind", long(100), long(101)),
        ("interactiveSetupConnectionTypes", json!([long(100)]), json!([long(101)])),
        ("templateIdentityPaths", json!([long(200)]), json!([long(201)])),
        ("templateConfigBinding", json!({"field": name(100)}), json!({"field": name(101)})),
    ];
    for (key, longest, too_long) in cases {
        assert_eq!(driver(&with(key, longest)).err(), None, "{key}");
        assert_eq!(driver(&with(key, too_long)).unwrap_err().len(), 1, "{key}");
    }
    let mut value = valid_manifest();
    value["version"] = long(101);
    assert_eq!(manifest(&value).unwrap_err().len(), 1);
}

#[test]
fn a_declaration_that_is_no_object_has_one_fault() {
    for value in [Value::Null, json!([]), json!("boxes"), json!(1)] {
        for faults in [driver(&value).unwrap_err(), manifest(&value).unwrap_err()] {
            assert_eq!(faults.len(), 1);
            assert_eq!(faults[0].path, "$");
            assert!(faults[0].message.starts_with("expected an object"), "{value}");
        }
    }
}

#[test]
fn what_is_left_out_is_off() {
    let driver = driver(&valid_driver()).unwrap();
    assert_eq!(driver.kind, DriverKind::EnvironmentDriver);
    assert!(driver.capabilities.is_empty());
    assert_eq!(driver.default_acquire_timeout_ms, None);
    assert!(!driver.requires_agent && !driver.supports_login_pty && !driver.supports_interactive_setup);
    assert!(driver.template_identity_paths.is_empty() && driver.template_config_binding.is_none());
}

#[test]
fn older_fields_are_folded_into_their_successors() {
    let reuse = |extra: Value| {
        let mut value = valid_driver();
        value.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        driver(&value).unwrap().capabilities.get(Capability::ReusableLeases)
    };
    assert_eq!(reuse(json!({"supportsReusableLeases": true})), Some(true));
    let nested = json!({"reusableLeases": false});
    assert_eq!(reuse(json!({"supportsReusableLeases": true, "sandboxCapabilities": nested})), Some(false));
    let silent = json!({"nativeSyncIn": false});
    assert_eq!(reuse(json!({"supportsReusableLeases": true, "sandboxCapabilities": silent})), Some(true));

    let read = driver(&with("supportsSetupTokenLogin", json!(true))).unwrap();
    assert!(read.supports_login_pty);
    let shown = serde_json::to_value(&read).unwrap();
    assert_eq!(shown["supportsLoginPty"], json!(true));
    assert_eq!(shown.get("supportsSetupTokenLogin"), None);
}

#[test]
fn a_manifest_gives_its_drivers_and_permissions() {
    let mut value = valid_manifest();
    value["permissions"] = json!(["time", "http"]);
    let read = manifest(&value).unwrap();
    assert_eq!(read.plugin_key, "acme.boxes");
    assert_eq!(read.environment_drivers[0].driver_key, "boxes");
    assert_eq!(read.permissions, [Ask::All(Permission::Time), Ask::All(Permission::Http)]);
}

/// Any JSON value of a few levels, with keys of the contract among the others.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        any::<i64>().prop_map(Value::from),
        "[a-zA-Z._-]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 5, |inner| {
        let key = prop_oneof![
            prop::sample::select(DRIVER_KEYS).prop_map(str::to_owned),
            prop::sample::select(MANIFEST_KEYS).prop_map(str::to_owned),
            ".{0,4}".prop_map(|text| text),
        ];
        let object = prop::collection::vec((key, inner.clone()), 0..5);
        prop_oneof![
            prop::collection::vec(inner, 0..5).prop_map(Value::from),
            object.prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_json_is_read_without_a_crash_and_every_fault_says_something(value in any_json()) {
        for faults in [driver(&value).err(), manifest(&value).err()].into_iter().flatten() {
            prop_assert!(!faults.is_empty());
            prop_assert!(faults.iter().all(|fault| !fault.path.is_empty() && !fault.message.is_empty()));
        }
    }

    #[test]
    fn a_field_of_any_value_is_either_valid_or_a_fault_of_that_field(
        key in prop::sample::select(DRIVER_KEYS), value in any_json(),
    ) {
        match driver(&with(key, value)) {
            // What was found valid is written so that it is valid again, and means the same.
            Ok(read) => prop_assert_eq!(driver(&serde_json::to_value(&read).unwrap()), Ok(read)),
            Err(faults) => {
                prop_assert!(faults.iter().all(|fault| fault.path.starts_with(key)), "{:?}", faults);
            }
        }
    }
}
