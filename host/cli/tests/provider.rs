//! `leasehold provider`: installing, choosing among and removing providers, with real components.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use common::Place;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

/// A provider's folder with this component and declaration.
fn package(place: &Place, folder: &str, component: &str, declaration: &Value) -> String {
    let path = place.folder(folder);
    fs::write(path.join("component.wasm"), leasehold_builder::fixture(component).unwrap()).unwrap();
    fs::write(path.join("provider.json"), declaration.to_string()).unwrap();
    folder.to_owned()
}

fn declaration(key: &str, version: &str, driver: &str) -> Value {
    json!({
        "pluginKey": key, "version": version, "capabilities": ["environment.drivers.register"],
        "permissions": ["time", "random"],
        "environmentDrivers": [
            {"driverKey": driver, "kind": "sandbox_provider", "displayName": driver, "configSchema": {}}
        ],
    })
}

/// Installs the fixture as the provider of this key and driver.
fn installed(place: &Place, component: &str, key: &str, driver: &str) {
    let folder = package(place, key, component, &declaration(key, "1.0", driver));
    place.host(&["provider", "install", &folder, "--grant", "time", "--grant", "random"]).quiet();
}

/// A column of `provider ls`.
fn listed(place: &Place, column: &str) -> Vec<String> {
    let all = place.host(&["provider", "ls", "--json"]).json();
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    all.as_array().unwrap().iter().map(|provider| text(&provider[column])).collect()
}

/// Acquires a lease and gives its id.
fn acquired(place: &Place, arguments: &[&str]) -> String {
    place.host(&[&["lease", "acquire"], arguments].concat()).quiet().trim().to_owned()
}

fn digest_of(place: &Place, id: &str) -> String {
    place.host(&["lease", "show", id, "--json"]).json()["digest"].as_str().unwrap().to_owned()
}

/// The components on the shelf but those of `local`.
fn shelf(place: &Place) -> Vec<PathBuf> {
    let providers = fs::read_dir(place.path().join("state/leasehold/providers")).unwrap();
    let others = providers.map(|entry| entry.unwrap()).filter(|entry| entry.file_name() != "local");
    let folders = others.filter(|entry| entry.file_type().unwrap().is_dir());
    let files =
        folders.flat_map(|entry| fs::read_dir(entry.path()).unwrap().map(|file| file.unwrap().path()));
    files.filter(|path| path.extension().is_some_and(|extension| extension == "wasm")).collect()
}

#[test]
fn a_provider_is_installed_listed_taken_out_of_use_and_removed() {
    let place = Place::new();
    let list = || {
        let text = place.host(&["provider", "ls"]).quiet();
        // Digests differ with the compiler that built the guests.
        let cut = |line: &str| {
            let words = line
                .split_whitespace()
                .filter(|word| word.len() != 12 || !word.bytes().all(|byte| byte.is_ascii_hexdigit()));
            words.collect::<Vec<_>>().join(" ")
        };
        text.lines().map(cut).collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!("only what is part of the host", list());
    installed(&place, "full", "example", "sandboxes");
    insta::assert_snapshot!("with one more", list());
    assert_eq!(place.host(&["provider", "disable", "example"]).quiet(), "");
    assert_eq!(listed(&place, "status"), ["ready", "disabled"]);
    let again = place.host(&["provider", "disable", "example", "--json"]).json();
    assert_eq!(again, json!({"key": "example", "ready": false, "changed": false}));
    place.host(&["provider", "enable", "example"]).quiet();
    assert_eq!(listed(&place, "status"), ["ready", "ready"]);
    assert_eq!(place.host(&["provider", "rm", "example"]).quiet(), "");
    assert_eq!(listed(&place, "key"), ["local"]);
    assert!(shelf(&place).is_empty());
}

#[test]
fn every_refusal_says_what_to_type_next() {
    let place = Place::new();
    let missing = declaration("full", "1", "full");
    let mut undeclared = missing.clone();
    undeclared["permissions"] = json!([]);
    package(&place, "undeclared", "full", &undeclared);
    let faults = json!({"pluginKey": "Upper", "version": 1, "environmentDrivers": []});
    package(&place, "faults", "full", &faults);
    package(&place, "reserved", "minimal", &declaration("probes", "1", "fake"));
    package(&place, "two", "minimal", &missing);
    place.folder("empty");
    fs::write(place.path().join("two/other.wasm"), "").unwrap();
    place.fixture("full");
    place.fixture("absent-acquire-lease");
    place.write("text.wasm", "not a component");
    let mut told = String::new();
    for arguments in [
        &["install", "full.wasm"][..],
        &["install", "undeclared"],
        &["install", "faults"],
        &["install", "reserved"],
        &["install", "two"],
        &["install", "empty"],
        &["install", "nowhere"],
        &["install", "text.wasm"],
        &["install", "absent-acquire-lease.wasm", "--name", "UPPER"],
        &["install", "undeclared", "--name", "other"],
        &["upgrade", "two/component.wasm", "--name", "two"],
        &["rm", "example"],
        &["rm", "local"],
        &["enable", "example"],
    ] {
        let text = place.host(&[&["provider"], arguments].concat()).refused(1);
        told.push_str(&format!("$ leasehold provider {}\n{text}\n", arguments.join(" ")));
    }
    insta::assert_snapshot!(told);
    assert_eq!(listed(&place, "key"), ["local"]);
    let usage = place.host(&["provider", "install", "full.wasm", "--grant", "everything"]);
    assert!(usage.refused(2).contains("`everything` names no permission; known: http, "));
}

#[test]
fn what_is_no_provider_is_not_installed() {
    let place = Place::new();
    let file = place.fixture("absent-acquire-lease");
    let all = ["http=https://*", "tcp=a=localhost:1", "unix-http=b=/b", "jail", "state", "time", "random"];
    let grants = all.iter().flat_map(|grant| ["--grant", grant]).collect::<Vec<_>>();
    let refused = place.host(&[&["provider", "install", &file], &grants[..]].concat()).refused(1);
    assert!(refused.contains("is no provider: it has no environmentAcquireLease"), "{refused}");
}

#[test]
fn the_same_again_is_no_fault_and_another_of_that_key_needs_an_upgrade() {
    let place = Place::new();
    installed(&place, "full", "example", "sandboxes");
    let same = ["provider", "install", "example", "--grant", "random", "--grant", "time", "--json"];
    assert_eq!(place.host(&same).json()["change"], "unchanged");
    let other = package(&place, "other", "minimal", &declaration("example", "2.0", "sandboxes"));
    assert_eq!(
        place.host(&["provider", "install", &other]).refused(1),
        "leasehold: `example` is installed already, as version 1.0; type `leasehold provider upgrade PATH` to replace it\n"
    );
    let upgraded = place.host(&["provider", "upgrade", &other, "--json"]).json();
    assert_eq!((&upgraded["change"], &upgraded["provider"]["version"]), (&json!("upgraded"), &json!("2.0")));
    // What was granted stays granted.
    assert_eq!(upgraded["provider"]["grants"], json!(["random", "time"]));
    assert_eq!(shelf(&place).len(), 1);
}

#[test]
fn of_two_providers_of_one_driver_the_first_that_is_ready_is_taken_or_the_one_that_is_named() {
    let place = Place::new();
    installed(&place, "full", "first", "sandboxes");
    installed(&place, "minimal", "second", "sandboxes");
    let from = |provider: &str| {
        let id = acquired(&place, &["--provider", provider]);
        let provider = place.host(&["lease", "show", &id, "--json"]).json()["provider"].clone();
        place.host(&["lease", "destroy", &id]);
        provider.as_str().unwrap().to_owned()
    };
    assert_eq!(from("sandboxes"), "first");
    assert_eq!(from("second:sandboxes"), "second");
    place.host(&["provider", "disable", "first"]).quiet();
    assert_eq!(from("sandboxes"), "second");
    let refused = place.host(&["lease", "acquire", "--provider", "first:sandboxes"]).refused(1);
    assert_eq!(
        refused,
        "leasehold: provider `first:sandboxes` is not ready, it is disabled; type `leasehold provider enable first`\n"
    );
}

#[test]
fn a_component_that_was_damaged_is_not_loaded_and_the_next_provider_is_taken() {
    let place = Place::new();
    installed(&place, "full", "first", "sandboxes");
    for file in shelf(&place) {
        fs::write(file, leasehold_builder::fixture("minimal").unwrap()).unwrap();
    }
    // Compiled before, it would still be loaded from the cache, which is authenticated.
    fs::remove_dir_all(place.path().join("state/leasehold/compiled")).unwrap();
    let refused = place.host(&["lease", "acquire", "--provider", "sandboxes"]).refused(1);
    assert!(refused.contains("was changed; install the provider again"), "{refused}");
    installed(&place, "minimal", "second", "sandboxes");
    acquired(&place, &["--provider", "sandboxes"]);
}

#[test]
fn leases_go_on_with_the_component_they_were_made_by_until_the_last_has_ended() {
    let place = Place::new();
    installed(&place, "full", "example", "sandboxes");
    let old = acquired(&place, &["--provider", "sandboxes"]);
    let other = package(&place, "other", "minimal", &declaration("example", "2.0", "sandboxes"));
    let upgrade = place.host(&["provider", "upgrade", &other]);
    assert_eq!(upgrade.code, Some(0));
    assert_eq!(
        upgrade.stderr,
        "leasehold: 1 lease goes on with the component `example` had; `leasehold lease ls` shows them\n"
    );
    let new = acquired(&place, &["--provider", "sandboxes"]);
    assert_ne!(digest_of(&place, &old), digest_of(&place, &new));
    assert_eq!(shelf(&place).len(), 2);
    // Only the old component knows this command.
    assert_eq!(place.host(&["lease", "exec", &old, "--", "echo", "still", "here"]).quiet(), "still here\n");
    let removed = place.host(&["provider", "rm", "example"]);
    assert_eq!(removed.code, Some(0));
    assert!(removed.stderr.starts_with("leasehold: 2 leases go on"), "{}", removed.stderr);
    assert_eq!(listed(&place, "key"), ["local"]);
    assert!(place.host(&["lease", "acquire", "--provider", "sandboxes"]).refused(1).contains("no provider"));
    // Its key is free again, and the leases of the removed one still end by their own components.
    installed(&place, "full", "example", "sandboxes");
    place.host(&["lease", "release", &old]).quiet();
    place.host(&["reconcile"]).quiet();
    assert_eq!(shelf(&place).len(), 2, "the new installation, and what the other lease pins");
    place.host(&["lease", "release", &new]).quiet();
    place.host(&["reconcile"]).quiet();
    assert_eq!(shelf(&place).len(), 1);
}

#[test]
fn a_provider_of_the_settings_is_installed_when_it_is_asked_for() {
    let place = Place::new();
    place.fixture("full");
    let settings = |component: &str| {
        format!("[providers.mine]\ncomponent = \"{component}.wasm\"\ngrants = [\"time\", \"random\"]\n")
    };
    place.write("leasehold.toml", settings("full"));
    let ran = place.host(&["run", "--provider", "mine", "--no-sync", "--", "echo", "hello"]);
    assert_eq!(ran.quiet(), "hello\n");
    assert_eq!(listed(&place, "key"), ["local", "mine"]);
    place.fixture("minimal");
    place.write("leasehold.toml", settings("minimal"));
    place.host(&["run", "--provider", "mine", "--no-sync", "--", "echo", "hello"]).quiet();
    assert_eq!(listed(&place, "key"), ["local", "mine"]);
    // Nothing is left to say of what the settings bring along when they no longer do.
    place.write("leasehold.toml", "");
    place.host(&["provider", "rm", "mine"]).quiet();
}
