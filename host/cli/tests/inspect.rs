//! `leasehold inspect`, `capabilities` and `limits` as people and scripts see them.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use common::Place;
use serde_json::Value;
use std::fs;

/// The report without the lines that differ from one compiler or engine to the next.
fn stable(report: &str) -> String {
    let varies = ["blake3", "  component ", "  compiled "];
    let lines = report.lines().filter(|line| !varies.iter().any(|start| line.starts_with(start)));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn inspect_shows_methods_wanted_authority_capabilities_and_sizes() {
    let place = Place::new();
    for fixture in
        ["dummy-full", "execute-env-strings", "execute-extra-function", "interactive-setup-without-cancel"]
    {
        let file = place.fixture(fixture);
        insta::assert_snapshot!(fixture, stable(&place.run(&["inspect", &file]).quiet()));
    }
}

#[test]
fn inspect_of_every_fixture_gives_json_with_a_verdict_on_every_method() {
    let place = Place::new();
    let mut fixtures: Vec<_> = fs::read_dir(leasehold_builder::guests_dir())
        .unwrap()
        .filter_map(|file| Some(file.unwrap().path().file_stem()?.to_str()?.to_owned()))
        .collect();
    fixtures.sort();
    fixtures.dedup();
    let mut report = String::new();
    for fixture in fixtures {
        let Ok(bytes) = leasehold_builder::fixture(&fixture) else { continue };
        let file = place.write("fixture.wasm", bytes);
        let ran = place.run(&["inspect", "--json", &file]);
        let verdicts = match ran.code {
            Some(0) => verdicts(&serde_json::from_str(&ran.stdout).unwrap()),
            _ => ran.refused(1).trim().to_owned(),
        };
        report.push_str(&format!("{fixture}: {verdicts}\n"));
    }
    insta::assert_snapshot!(report);
}

/// How many methods have each verdict, and where the first difference is.
fn verdicts(report: &Value) -> String {
    let methods = report["methods"].as_array().unwrap();
    assert_eq!(methods.len(), 21);
    let count = |verdict| methods.iter().filter(|method| method["verdict"] == verdict).count();
    let mut text = format!("{} verified", count("verified"));
    for verdict in ["absent", "wrong-shape", "unknown-version"] {
        if count(verdict) > 0 {
            text.push_str(&format!(", {} {verdict}", count(verdict)));
        }
    }
    let paths = methods.iter().filter_map(|method| method["path"].as_str());
    let mut paths: Vec<_> = paths.collect();
    paths.dedup();
    paths.iter().for_each(|path| text.push_str(&format!("; {path}")));
    text
}

#[test]
fn a_method_in_json_has_its_name_its_verdict_and_the_path_of_the_first_difference() {
    let place = Place::new();
    let file = place.fixture("execute-env-strings");
    let report: Value = serde_json::from_str(&place.run(&["inspect", "--json", &file]).quiet()).unwrap();
    let execute = report["methods"].as_array().unwrap().iter().find(|m| m["name"] == "environmentExecute");
    insta::assert_json_snapshot!(execute.unwrap(), @r#"
    {
      "name": "environmentExecute",
      "interface": "leasehold:provider/execute@0.1.0",
      "function": "execute",
      "verdict": "wrong-shape",
      "path": "execute.params.request.env",
      "expected": "list<tuple<string, string>>",
      "found": "list<string>"
    }
    "#);
}

#[test]
fn the_text_form_of_a_component_is_inspected_like_its_binary() {
    let place = Place::new();
    let file = place.write("empty.wat", "(component)");
    let report: Value = serde_json::from_str(&place.run(&["inspect", "--json", &file]).quiet()).unwrap();
    assert_eq!(verdicts(&report), "0 verified, 21 absent");
}

#[test]
fn what_cannot_be_inspected_gives_one_clear_message_and_leaves_nothing_behind() {
    let place = Place::new();
    let zeros = fs::File::create(place.path().join("zeros")).unwrap();
    zeros.set_len(200 << 20).unwrap();
    let full = leasehold_builder::fixture("full").unwrap();
    for (file, content, expected) in [
        (
            "core",
            wat_module(),
            "leasehold: core: this is a core module, not a component; build for `wasm32-wasip2`",
        ),
        (
            "text",
            b"hello".to_vec(),
            "leasehold: text: this is no WebAssembly component: it is neither the binary",
        ),
        ("cut", full[..full.len() / 3].to_vec(), "leasehold: cut: the component is not valid here: "),
    ] {
        place.write(file, content);
        let message = place.run(&["inspect", file]).refused(1);
        assert!(message.starts_with(expected), "{message}");
        assert_eq!(message.lines().count(), 1, "{message}");
    }
    let message = place.run(&["inspect", "zeros"]).refused(1);
    assert!(message.contains("the component has 209715200 bytes and may have 67108864"), "{message}");
    let message = place.run(&["inspect", "missing"]).refused(1);
    assert!(message.starts_with("leasehold: missing: cannot read missing: No such file"), "{message}");
    let kept = fs::read_dir(place.cache().join("leasehold/compiled")).unwrap();
    let kept: Vec<_> = kept.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(kept, ["key"], "something of a refused file was kept");
}

fn wat_module() -> Vec<u8> {
    b"\0asm\x01\0\0\0".to_vec()
}

#[test]
fn a_tampered_cache_entry_is_reported_and_the_component_compiled_again() {
    let place = Place::new();
    let file = place.fixture("minimal");
    let first = place.run(&["inspect", &file]).quiet();
    let compiled = place.cache().join("leasehold/compiled");
    let mut entries = fs::read_dir(&compiled).unwrap().map(|entry| entry.unwrap().path());
    let entry = entries.find(|path| path.extension().is_some()).unwrap();
    let mut bytes = fs::read(&entry).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&entry, bytes).unwrap();

    let again = place.run(&["inspect", &file]);
    assert_eq!((again.code, again.stdout), (Some(0), first.clone()));
    assert!(again.stderr.contains("is not what this host wrote; it was removed"), "{}", again.stderr);
    assert_eq!(place.run(&["inspect", &file]).quiet(), first);
}

#[test]
fn capabilities_show_what_is_verified_declared_narrowed_and_effective() {
    let place = Place::new();
    let file = place.fixture("full");
    let declaration = place.write(
        "driver.json",
        r#"{"driverKey":"k","kind":"sandbox_provider","displayName":"K","configSchema":{},
            "sandboxCapabilities":{"reusableLeases":true,"nativeSyncOut":false}}"#,
    );
    let table = |narrowing: &str| {
        let arguments = ["capabilities", &file, "--declaration", &declaration, "--narrowing", narrowing];
        place.run(&arguments).quiet()
    };
    insta::assert_snapshot!("reused", table(r#"{"leasePolicy":"reuse_by_environment"}"#));
    insta::assert_snapshot!(
        "narrowed",
        table(r#"{"leasePolicy":"ephemeral","configResolutionFailed":true}"#)
    );
    let arguments = ["capabilities", &file, "--declaration", &declaration, "--json"];
    let report: Value = serde_json::from_str(&place.run(&arguments).quiet()).unwrap();
    assert_eq!(report["capabilities"]["nativeSyncOut"]["reason"], "declared false");
    assert_eq!(report["capabilities"]["reusableLeases"]["effective"], true);
}

#[test]
fn a_declaration_with_many_mistakes_gives_all_of_them_at_once() {
    let place = Place::new();
    let file = place.fixture("minimal");
    let declaration = place.write(
        "driver.json",
        r#"{"driverKey":"Not A Key","kind":"worker","displayName":"","description":7,"configSchema":[],
            "supportsLoginPTY":true,"requiresAgent":"yes","defaultAcquireTimeoutMs":0,
            "sandboxCapabilities":{"nativeSyncIn":"true","concurrentSyncAndExec":true,"unheard":1},
            "interactiveSetupConnectionTypes":["",7],"templateRefKind":"",
            "templateConfigBinding":{"field":"provider","unsetFields":["a","a"]},
            "templateIdentityPaths":["a..b"],"supportsTemplateCapture":1,"supportsTemplateDelete":2,
            "supportsReusableLeases":"no","supportsInteractiveSetup":null}"#,
    );
    let message = place.run(&["capabilities", &file, "--declaration", &declaration]).refused(1);
    assert!(message.lines().count() > 20, "{message}");
    insta::assert_snapshot!(message);
}

#[test]
fn a_narrowing_that_is_not_understood_is_wrong_usage() {
    let place = Place::new();
    let arguments = ["capabilities", "x", "--declaration", "y", "--narrowing", r#"{"nativeSync":false}"#];
    let message = place.run(&arguments).refused(2);
    assert!(message.contains("`nativeSync` is no key; there are reusableLeases, nativeSyncIn"), "{message}");
}

#[test]
fn limits_print_every_limit_with_its_reason() {
    let place = Place::new();
    insta::assert_snapshot!(place.run(&["limits"]).quiet());
    let report: Value = serde_json::from_str(&place.run(&["limits", "--json"]).quiet()).unwrap();
    assert!(report["call"].as_array().unwrap().iter().all(|limit| limit["reason"].is_string()));
}

#[test]
fn help_documents_the_exit_codes() {
    let place = Place::new();
    assert!(place.run(&["--help"]).quiet().contains("Exit codes:"));
    place.run(&["no-such-command"]).refused(2);
}
