//! The schemas that editors use, held against the readers and against what is checked in.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use leasehold_contract::declaration::{driver, manifest};
use leasehold_contract::schema;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Set to write the files instead of comparing them.
const WRITE: &str = "WRITE_SCHEMAS";

#[test]
fn what_is_checked_in_is_what_the_tables_say() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../schemas");
    let schemas = [
        ("provider", schema::provider()),
        ("narrowing", schema::narrowing()),
        ("leasehold", schema::settings()),
    ];
    for (name, schema) in schemas {
        let path = folder.join(format!("{name}.schema.json"));
        let text = format!("{}\n", serde_json::to_string_pretty(&schema).unwrap());
        if std::env::var_os(WRITE).is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&path, &text).unwrap();
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(kept == text, "{} is old; run this test with {WRITE}=1", path.display());
    }
}

fn driver_of() -> Value {
    json!({"driverKey": "boxes", "displayName": "Boxes", "configSchema": {}})
}

fn manifest_of() -> Value {
    json!({
        "pluginKey": "boxes", "version": "1", "capabilities": ["environment.drivers.register"],
        "environmentDrivers": [driver_of()],
    })
}

/// What a schema cannot say, or says a little more widely: a repetition by one key of an entry, and forms that
/// only the reader knows.
fn only_the_reader_knows(faults: &[leasehold_contract::declaration::Fault]) -> bool {
    faults.iter().all(|fault| {
        ["already at", "contradict", "newer name", "own field", "expected a path", "write "]
            .iter()
            .any(|known| fault.message.contains(known))
    })
}

#[test]
fn a_declaration_passes_its_schema_as_it_passes_its_reader() {
    let validator = jsonschema::validator_for(&schema::provider()).unwrap();
    let cases: Vec<Value> = serde_json::from_str(include_str!("data/drivers.json")).unwrap();
    let drivers = cases.into_iter().map(|case| (case, true));
    let cases: Vec<Value> = serde_json::from_str(include_str!("data/manifests.json")).unwrap();
    for (case, of_driver) in drivers.chain(cases.into_iter().map(|case| (case, false))) {
        let mut value = if of_driver { driver_of() } else { manifest_of() };
        for (key, set) in case["set"].as_object().unwrap() {
            value[key] = set.clone();
        }
        for key in case["remove"].as_array().into_iter().flatten() {
            value.as_object_mut().unwrap().shift_remove(key.as_str().unwrap());
        }
        let (faults, whole) = if of_driver {
            let mut whole = manifest_of();
            whole["environmentDrivers"][0] = value.clone();
            (driver(&value).err(), whole)
        } else {
            (manifest(&value).err(), value)
        };
        let faults = faults.unwrap_or_default();
        if faults.is_empty() || !only_the_reader_knows(&faults) {
            assert_eq!(validator.is_valid(&whole), faults.is_empty(), "{}: {faults:?}", case["name"]);
        }
    }
}

#[test]
fn every_key_has_a_form_in_its_schema() {
    let schema = schema::provider();
    for properties in [&schema["properties"], &schema["$defs"]["driver"]["properties"]] {
        for (key, form) in properties.as_object().unwrap() {
            assert!(form.is_object(), "`{key}` has no form in the schema");
        }
    }
}

#[test]
fn a_narrowing_and_settings_are_described() {
    let narrowing = jsonschema::validator_for(&schema::narrowing()).unwrap();
    assert!(
        narrowing.is_valid(&json!({"nativeSyncIn": false, "leasePolicy": "ephemeral", "leaseMetadata": {}}))
    );
    assert!(!narrowing.is_valid(&json!({"nativeSync": false})));
    let settings = jsonschema::validator_for(&schema::settings()).unwrap();
    let good = json!({
        "store": "leases.db",
        "environments": {"small": {"provider": "local", "config": {"memoryBytes": 1}}},
        "providers": {"mine": {"component": "mine.wasm", "grants": ["jail", "http=https://*.example.com,GET"]}},
        "network": {"certificates": ["ca.pem"], "proxy": {"https": "http://proxy:3128", "except": ["*"]}},
    });
    assert!(settings.is_valid(&good));
    for (at, bad) in [
        ("/providers/mine/grants", json!(["http"])),
        ("/providers/mine/grants", json!(["secrets.reveal"])),
        ("/network/proxy", json!("yes")),
        ("/environments/small", json!({"config": {}})),
    ] {
        let mut value = good.clone();
        *value.pointer_mut(at).unwrap() = bad;
        assert!(!settings.is_valid(&value), "{at}");
    }
}
