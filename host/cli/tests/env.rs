//! `leasehold env`, and what `leasehold.toml` may say.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use common::Place;
use serde_json::json;

#[test]
fn environments_are_added_listed_used_and_removed() {
    let place = Place::new();
    place.write("leasehold.toml", "[environments.written]\nprovider = \"local\"\n");
    let add = ["env", "add", "small", "--provider", "local", "--set", "memoryBytes=33554432"];
    assert_eq!(place.host(&add).quiet(), "");
    insta::assert_snapshot!(place.host(&["env", "ls"]).quiet());
    assert_eq!(
        place.host(&["env", "ls", "--json"]).json(),
        json!([
            {"name": "small", "provider": "local", "config": {"memoryBytes": 33_554_432},
             "place": "the store (`leasehold env add`)"},
            {"name": "written", "provider": "local", "config": {}, "place": "leasehold.toml"},
        ])
    );
    for name in ["small", "written"] {
        place.host(&["run", "--environment", name, "--no-sync", "--", "true"]).quiet();
    }
    let hungry = "x=$(head -c 200000000 /dev/zero | tr '\\0' x); echo ${#x}";
    let ran = place.host(&["run", "--environment", "small", "--no-sync", "--", "sh", "-c", hungry]);
    assert!(ran.code != Some(0) && ran.stdout.is_empty(), "{} {}", ran.stdout, ran.stderr);
    assert_eq!(place.host(&["env", "rm", "small", "--json"]).json(), json!({"removed": "small"}));
    assert!(place.host(&["env", "ls"]).quiet().lines().all(|line| !line.starts_with("small")));
}

#[test]
fn one_name_in_two_places_is_an_error_that_names_both() {
    let place = Place::new();
    place.host(&["env", "add", "twice", "--provider", "local"]).quiet();
    place.write("leasehold.toml", "[environments.twice]\nprovider = \"local\"\n");
    let both = "leasehold: there are two environments `twice`, one in leasehold.toml and one in the store \
        (`leasehold env add`); remove one of them\n";
    assert_eq!(place.host(&["lease", "acquire", "--environment", "twice"]).refused(1), both);
    assert_eq!(place.host(&["run", "--environment", "twice", "--", "true"]).refused(125), both);
    assert_eq!(place.host(&["env", "probe", "twice"]).refused(1), both);
    // The one in the store can be removed, and then it is clear again which is meant.
    place.host(&["env", "rm", "twice"]).quiet();
    place.host(&["run", "--environment", "twice", "--no-sync", "--", "true"]).quiet();
}

#[test]
fn every_refusal_says_what_to_type_next() {
    let place = Place::new();
    place.write("leasehold.toml", "[environments.written]\nprovider = \"local\"\n");
    place.host(&["env", "add", "there", "--provider", "local"]).quiet();
    let mut told = String::new();
    for arguments in [
        &["add", "there", "--provider", "local"][..],
        &["add", "written", "--provider", "local"],
        &["add", "new", "--provider", "nobody"],
        &["add", "new", "--provider", "local:other"],
        &["add", "new", "--provider", "nobody:local"],
        &["add", "a name", "--provider", "local"],
        &["add", "new", "--provider", "local", "--config", "[]"],
        &["rm", "nothing"],
        &["rm", "written"],
        &["probe", "nothing"],
    ] {
        let text = place.host(&[&["env"], arguments].concat()).refused(1);
        told.push_str(&format!("$ leasehold env {}\n{text}\n", arguments.join(" ")));
    }
    insta::assert_snapshot!(told);
}

#[test]
fn a_probe_answers_whatever_it_finds() {
    let place = Place::new();
    let file = place.fixture("full");
    place.host(&["provider", "install", &file, "--grant", "time", "--grant", "random"]).quiet();
    place.host(&["env", "add", "well", "--provider", "full"]).quiet();
    // Adding it is refused, as the provider validates first; what a file says is seen when it is used.
    let settings = "[environments.ill]\nprovider = \"full\"\nconfig = { fail = \"denied\" }\n";
    place.write("leasehold.toml", settings);
    assert_eq!(place.host(&["env", "probe", "well", "--json"]).json()["ok"], true);
    let ill = place.host(&["env", "probe", "ill"]);
    assert_eq!((ill.code, ill.stderr.as_str()), (Some(1), ""), "{}", ill.stdout);
    assert!(ill.stdout.starts_with("not ready\nerror  probe_failed"), "{}", ill.stdout);
    place.host(&["provider", "disable", "full"]).quiet();
    let gone = place.host(&["env", "probe", "well", "--json"]);
    assert_eq!(gone.code, Some(1));
    let gone: serde_json::Value = serde_json::from_str(&gone.stdout).unwrap();
    assert_eq!(gone["ok"], false);
    assert_eq!(gone["diagnostics"][0]["details"], json!({"driver": "sandbox", "provider": "full"}));
}

#[test]
fn an_environment_with_leases_that_are_kept_is_not_removed() {
    let place = Place::new();
    place.host(&["env", "add", "kept", "--provider", "local"]).quiet();
    let id = place.host(&["lease", "acquire", "--environment", "kept"]).quiet().trim().to_owned();
    place.host(&["lease", "stop", &id]).quiet();
    let refused = place.host(&["env", "rm", "kept"]).refused(1);
    assert!(refused.starts_with("leasehold: environment `kept` cannot be removed: "), "{refused}");
    assert!(refused.contains(&id), "{refused}");
    place.host(&["lease", "destroy", &id]).quiet();
    place.host(&["env", "rm", "kept"]).quiet();
}

#[test]
fn a_key_of_the_settings_that_nobody_reads_is_an_error_that_names_it_and_its_owner() {
    let place = Place::new();
    let mut told = String::new();
    for text in [
        "colour = 1",
        "store = 7",
        "[environments.a]\nprovider = \"local\"\ncolour = 1",
        "[environments.a]\nconfig = {}",
        "[environments]\na = 1",
        "[providers.p]\ncomponent = \"p.wasm\"\ngrant = [\"time\"]",
        "[providers.p]\ncomponent = \"p.wasm\"\ngrants = [\"everything\"]",
        "[providers.p]\ngrants = []",
        "[environments.a",
    ] {
        place.write("leasehold.toml", text);
        let refused = place.host(&["env", "ls"]).refused(1);
        told.push_str(&format!("{text}\n=> {refused}\n"));
    }
    insta::assert_snapshot!(told);
}

#[cfg(not(feature = "postgres"))]
#[test]
fn a_server_needs_a_build_that_can_use_one() {
    let place = Place::new();
    place.write("leasehold.toml", "store = \"postgres://somewhere/else\"");
    assert_eq!(
        place.host(&["env", "ls"]).refused(1),
        "leasehold: `store` names a PostgreSQL server, which this build cannot use; build with `--features \
         postgres`, or name a file\n"
    );
}

#[test]
fn the_settings_name_the_file_that_leases_are_kept_in() {
    let place = Place::new();
    place.folder("elsewhere");
    place.write("leasehold.toml", "store = \"elsewhere/mine.db\"\n");
    let id = place.host(&["lease", "acquire"]).quiet().trim().to_owned();
    assert!(place.path().join("elsewhere/mine.db").exists());
    assert!(!place.path().join("state/leasehold/leases.db").exists());
    place.host(&["lease", "destroy", &id]).quiet();
}
