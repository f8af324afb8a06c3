//! `leasehold explain`, as a program sees it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

/// Gives the lines to the command; the lines it answers, and its exit code.
fn explain(subject: &str, input: &[u8]) -> (Vec<Value>, i32) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_leasehold"))
        .args(["explain", subject])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // From another thread, so that a long input and a long output do not wait for each other.
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (lines, output.status.code().unwrap())
}

/// One answer to one input.
fn answer(subject: &str, input: &Value) -> Value {
    let (mut lines, _) = explain(subject, format!("{input}\n").as_bytes());
    assert_eq!(lines.len(), 1, "{input}");
    lines.remove(0)
}

/// The message of the one error line an input gives.
fn refusal(subject: &str, input: &Value) -> String {
    let (lines, code) = explain(subject, format!("{input}\n").as_bytes());
    assert_eq!(code, 1, "{input}");
    assert_eq!(lines[0]["error"]["line"], 1, "{input}");
    lines[0]["error"]["message"].as_str().unwrap().to_owned()
}

fn effective(input: &Value) -> Vec<String> {
    let answer = answer("capabilities", input);
    let keys = answer["effective"].as_object().unwrap();
    assert_eq!(keys.len(), 6);
    for (key, value) in keys {
        assert_eq!(answer["reasons"].get(key).is_none(), value.as_bool().unwrap(), "{input}: {key}");
    }
    keys.iter().filter(|(_, value)| **value == json!(true)).map(|(key, _)| key.clone()).collect()
}

const LEASE_METHODS: [&str; 3] =
    ["environmentResumeLease", "environmentReleaseLease", "environmentDestroyLease"];

#[test]
fn a_run_is_answered_with_six_keys_and_a_reason_for_every_no() {
    let input = json!({
        "methods": ["environmentExecute", "environmentSyncIn"],
        "declared": {"independentControlCommands": false},
        "leasePolicy": "ephemeral", "leaseMetadata": {"backend": "job"}, "configResolutionFailed": false,
    });
    let expected = json!({
        "effective": {
            "reusableLeases": false, "nativeSyncIn": false, "nativeSyncOut": false,
            "persistentProcessSessions": true, "independentControlCommands": false,
            "incrementalSessionOutput": false,
        },
        "reasons": {
            "reusableLeases": "not verified: environmentResumeLease absent, environmentReleaseLease absent, \
                environmentDestroyLease absent; not declared (opt-in); narrowed: ephemeral lease",
            "nativeSyncIn": "narrowed: job-backed lease",
            "nativeSyncOut": "not verified: environmentSyncOut absent; narrowed: job-backed lease",
            "independentControlCommands": "declared false",
            "incrementalSessionOutput": "not declared (opt-in)",
        },
    });
    assert_eq!(answer("capabilities", &input), expected);
}

#[test]
fn inputs_may_be_left_out_empty_or_null() {
    let nothing = json!({
        "methods": null, "declared": null, "leasePolicy": null, "leaseMetadata": null,
        "configResolutionFailed": null, "narrowing": null, "identityFailed": null,
        "supportsReusableLeases": null,
    });
    for input in [json!({}), json!({"methods": []}), nothing] {
        assert_eq!(effective(&input), [""; 0], "{input}");
    }
}

#[test]
fn a_declaration_is_read_alone_or_inside_its_driver_with_the_older_field() {
    let cases = [
        (json!({"reusableLeases": true}), None, true),
        (json!({"supportsReusableLeases": true}), None, true),
        (json!({"supportsReusableLeases": true, "reusableLeases": false}), None, false),
        (json!({"driverKey": "boxes", "supportsReusableLeases": true}), None, true),
        (json!({"driverKey": "boxes", "sandboxCapabilities": {"reusableLeases": true}}), None, true),
        (
            json!({"sandboxCapabilities": {"reusableLeases": false}, "supportsReusableLeases": true}),
            None,
            false,
        ),
        (json!({}), Some(true), true),
        (json!({"reusableLeases": false}), Some(true), false),
        (json!({"supportsReusableLeases": false}), Some(true), false),
    ];
    for (declared, legacy, expected) in cases {
        let input = json!({"methods": LEASE_METHODS, "declared": declared, "supportsReusableLeases": legacy});
        assert_eq!(!effective(&input).is_empty(), expected, "{input}");
    }
}

#[test]
fn a_host_narrowing_and_a_failed_identity_are_applied() {
    let methods = ["environmentSyncIn", "environmentSyncOut"];
    let narrowed = json!({"methods": methods, "narrowing": {"nativeSyncIn": false, "nativeSyncOut": true}});
    assert_eq!(effective(&narrowed), ["nativeSyncOut"]);
    for (failed, reason) in [(json!(true), "identity: not established"), (json!("gone"), "identity: gone")] {
        let input = json!({"methods": methods, "identityFailed": failed});
        assert_eq!(effective(&input), [""; 0]);
        assert_eq!(answer("capabilities", &input)["reasons"]["nativeSyncIn"], reason);
    }
    assert_eq!(effective(&json!({"methods": methods, "identityFailed": false})).len(), 2);
}

#[test]
fn what_is_not_understood_is_listed() {
    let input = json!({
        "methods": ["environmentSyncIn", "environmentFly"], "colour": "red",
        "declared": {"nativeSyncIn": true, "concurrentSyncOperations": true},
    });
    let found = answer("capabilities", &input);
    assert_eq!(
        found["ignored"],
        json!(["colour", "methods.environmentFly", "declared.concurrentSyncOperations"])
    );
    assert_eq!(found["effective"]["nativeSyncIn"], true);
    let driver = json!({"driverKey": "x", "supportsLoginPTY": true, "sandboxCapabilities": {"sync": true}});
    let found = answer("capabilities", &json!({"declared": driver}));
    assert_eq!(found["ignored"], json!(["declared.supportsLoginPTY", "declared.sandboxCapabilities.sync"]));
    assert_eq!(answer("capabilities", &json!({})).get("ignored"), None);
}

#[test]
fn wrong_inputs_are_refused_by_name() {
    let cases = [
        ("capabilities", json!([]), "expected a JSON object"),
        ("capabilities", json!({"methods": "environmentSyncIn"}), "methods: expected an array"),
        ("capabilities", json!({"methods": [1]}), "methods: expected an array of method names, found 1"),
        ("capabilities", json!({"declared": true}), "declared: expected"),
        (
            "capabilities",
            json!({"declared": {"nativeSyncIn": "true"}}),
            "declared.nativeSyncIn: expected true or false",
        ),
        (
            "capabilities",
            json!({"leasePolicy": "forever"}),
            "leasePolicy: expected one of ephemeral, reuse_by_environment",
        ),
        ("capabilities", json!({"leaseMetadata": "job"}), "leaseMetadata: expected an object"),
        (
            "capabilities",
            json!({"configResolutionFailed": 1}),
            "configResolutionFailed: expected true or false",
        ),
        ("capabilities", json!({"narrowing": {"sync": false}}), "narrowing: \"sync\" is no capability"),
        (
            "capabilities",
            json!({"narrowing": {"nativeSyncIn": 0}}),
            "narrowing: \"nativeSyncIn\" must be true or false",
        ),
        ("capabilities", json!({"identityFailed": 1}), "identityFailed: expected"),
        ("budget", json!({}), "method: expected one of environmentValidateConfig"),
        ("budget", json!({"method": "execute"}), "found \"execute\""),
        ("budget", json!({"method": "environmentExecute", "config": []}), "config: expected an object"),
        (
            "budget",
            json!({"method": "environmentExecute", "kind": "sandbox"}),
            "kind: expected environment_driver or sandbox_provider",
        ),
        (
            "budget",
            json!({"method": "environmentExecute", "defaultAcquireTimeoutMs": 0.5}),
            "defaultAcquireTimeoutMs: expected a whole number",
        ),
    ];
    for (subject, input, message) in cases {
        let found = refusal(subject, &input);
        assert!(found.contains(message), "{input}: {found}");
    }
}

#[test]
fn a_call_gets_its_time_and_the_reason() {
    let cases = [
        (
            json!({"method": "environmentExecute", "requestedTimeoutMs": 1000, "config": {"timeoutMs": 9999}}),
            31_000,
        ),
        (
            json!({"method": "environmentExecute", "requestedTimeoutMs": "NaN", "config": {"timeoutMs": 1234}}),
            31_234,
        ),
        (json!({"method": "environmentExecute", "requestedTimeoutMs": null}), 30_000),
        (
            json!({"method": "environmentAcquireLease", "defaultAcquireTimeoutMs": 300_000, "config": null}),
            330_000,
        ),
        (json!({"method": "environmentResumeLease"}), 60_000),
        (json!({"method": "environmentResumeLease", "kind": "environment_driver"}), 30_000),
    ];
    for (input, expected) in cases {
        let found = answer("budget", &input);
        assert_eq!(found["timeoutMs"], expected, "{input}");
        assert!(!found["because"].as_str().unwrap().is_empty());
        assert_eq!(found.as_object().unwrap().len(), 2);
    }
}

#[test]
fn a_declaration_is_answered_with_all_its_faults_and_a_manifest_is_told_apart() {
    let driver = json!({"driverKey": "boxes", "displayName": "Boxes", "configSchema": {}});
    let valid = json!({"ok": true, "errors": []});
    assert_eq!(answer("declaration", &driver), valid);
    let manifest = json!({
        "pluginKey": "acme", "version": "1", "capabilities": ["environment.drivers.register"],
        "environmentDrivers": [driver],
    });
    assert_eq!(answer("declaration", &manifest), valid);
    let (lines, code) = explain("declaration", b"{\"environmentDrivers\":[{}]}\n{\"kind\":1}\n[]");
    assert_eq!(code, 0, "an invalid declaration is an answer");
    let paths = |line: &Value| -> Vec<String> {
        assert_eq!(line["ok"], false);
        let errors = line["errors"].as_array().unwrap();
        errors.iter().map(|error| error["path"].as_str().unwrap().to_owned()).collect()
    };
    assert!(paths(&lines[0]).contains(&"environmentDrivers[0].driverKey".to_owned()));
    assert!(paths(&lines[1]).contains(&"kind".to_owned()));
    assert_eq!(paths(&lines[2]), ["$"]);
}

#[test]
fn a_bad_line_is_reported_by_its_number_and_the_others_are_answered() {
    let mut input = b"{}\n\n  \nnot json\n\xff\n".to_vec();
    input.extend(b" ".repeat((1 << 20) + 1));
    input.extend(b"\n{} {}\n");
    input.extend("[".repeat(100_000).into_bytes());
    input.extend(b"\r\n{}\r\n{}");
    let (lines, code) = explain("capabilities", &input);
    assert_eq!(code, 1);
    let numbers: Vec<_> = lines.iter().map(|line| line["error"]["line"].as_u64().unwrap_or(0)).collect();
    assert_eq!(numbers, [0, 4, 5, 6, 7, 8, 0, 0]);
    let message = |line: usize| lines[line]["error"]["message"].as_str().unwrap();
    assert!(message(1).contains("not JSON"));
    assert!(message(2).contains("not UTF-8"));
    assert!(message(3).contains("1048577 bytes"));
}

#[test]
fn a_line_of_exactly_the_limit_is_read() {
    let mut input = b"{}".to_vec();
    input.extend(b" ".repeat((1 << 20) - 2));
    assert_eq!(explain("capabilities", &input).1, 0);
}

#[test]
fn every_line_is_answered_before_the_next_is_asked() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_leasehold"))
        .args(["explain", "budget"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    for _ in 0..3 {
        stdin.write_all(b"{\"method\":\"environmentProbe\"}\n").unwrap();
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        assert!(line.contains("120000"), "{line}");
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_reader_that_leaves_ends_the_command_quietly() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_leasehold"))
        .args(["explain", "capabilities"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().unwrap();
    // The command may be gone before everything is written; that is what is tested.
    let _ = stdin.write_all(&b"{}\n".repeat(1000));
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

#[test]
fn a_file_is_read_and_a_missing_one_is_named() {
    let run = |file: &str| {
        Command::new(env!("CARGO_BIN_EXE_leasehold"))
            .args(["explain", "capabilities", file])
            .output()
            .unwrap()
    };
    let path = std::env::temp_dir().join(format!("leasehold-explain-{}.jsonl", std::process::id()));
    std::fs::write(&path, "{}\n{}\n").unwrap();
    let output = run(path.to_str().unwrap());
    std::fs::remove_file(&path).unwrap();
    assert_eq!(output.stdout.iter().filter(|byte| **byte == b'\n').count(), 2);
    let output = run("no-such-file.jsonl");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().contains("no-such-file.jsonl"));
}

#[test]
fn wrong_usage_and_help_have_their_own_exit_codes() {
    let code = |arguments: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_leasehold")).args(arguments).output().unwrap().status.code()
    };
    assert_eq!(code(&[]), Some(2));
    assert_eq!(code(&["explain", "weather"]), Some(2));
    assert_eq!(code(&["explain", "budget", "a", "b"]), Some(2));
    assert_eq!(code(&["--help"]), Some(0));
    let help = Command::new(env!("CARGO_BIN_EXE_leasehold")).arg("--help").output().unwrap();
    assert!(String::from_utf8(help.stdout).unwrap().contains("Exit codes:"));
}

fn operation(target: &str, cwd: Option<&str>) -> Value {
    json!({
        "operationId": "sync-op-1",
        "files": [{"sourcePath": "/host/ws/a", "targetPath": target, "kind": "directory", "exclude": ["*.log"]}],
        "postUploadCommands": [{"command": "true", "cwd": cwd, "timeoutMs": 7000}],
    })
}

fn confined(operations: &[Value]) -> Value {
    let roots = json!({"sourceRoots": ["/host/ws"], "targetRoots": ["/remote/ws"], "operations": operations});
    answer("confine", &roots)
}

#[test]
fn confine_says_yes_or_which_path_is_outside_and_checks_every_operation() {
    let good = operation("/remote/ws/a", Some("/remote/ws/a/b"));
    assert_eq!(confined(&[]), json!({"ok": true, "error": null}));
    assert_eq!(
        confined(&[good.clone(), operation("//remote/ws/./x/../y/", None)]),
        json!({"ok": true, "error": null})
    );
    for (bad, field, said) in [
        (operation("/etc/passwd", None), "operations[1].files[0].targetPath", "escapes its root"),
        (operation("/remote/ws/../x", None), "operations[1].files[0].targetPath", "escapes its root"),
        (operation("/remote/ws2", None), "operations[1].files[0].targetPath", "escapes its root"),
        (operation("a/b", None), "operations[1].files[0].targetPath", "not a confined absolute path"),
        (operation("/remote/ws/a", Some("/remote/ws/a/../a")), "postUploadCommands[0].cwd", "`..`"),
        (operation("/remote/ws/a", Some("/remote/ws")), "postUploadCommands[0].cwd", "escapes its root"),
    ] {
        let answer = confined(&[good.clone(), bad]);
        let error = answer["error"].as_str().unwrap();
        assert!(answer["ok"] == false && error.contains(field) && error.contains(said), "{error}");
    }
    let no_roots = answer("confine", &json!({"operations": [good]}));
    assert_eq!(no_roots["ok"], false);
    let relative = answer("confine", &json!({"sourceRoots": ["ws"], "targetRoots": ["/"]}));
    assert!(relative["error"].as_str().unwrap().starts_with("sourceRoots[0]"));
    assert!(
        refusal("confine", &json!({"operations": [{"files": [{"kind": "x"}]}]}))
            .contains("file or directory")
    );
    assert!(refusal("confine", &json!({"operations": [{"files": [{}]}]})).contains("sourcePath: is missing"));
}

#[test]
fn exclude_keeps_what_tar_keeps() {
    let paths = json!([
        ["keep.txt", "f"],
        ["skip.log", "f"],
        ["sub", "d"],
        ["sub/skip.log", "f"],
        ["sub/l", "l"],
        ["a/node_modules", "d"],
        ["a/node_modules/x", "f"],
        ["dist", "d"],
        ["dist/x", "f"],
        "bare"
    ]);
    let input = json!({"paths": paths, "exclude": ["*.log", "node_modules", "dist/*"]});
    assert_eq!(answer("exclude", &input), json!({"kept": ["keep.txt", "sub", "sub/l", "dist", "bare"]}));
    assert_eq!(answer("exclude", &json!({"paths": [["a", "f"]]})), json!({"kept": ["a"]}));
    assert!(refusal("exclude", &json!({"paths": [["a", "x"]]})).contains("paths[0]"));
    assert!(refusal("exclude", &json!({"exclude": [1]})).contains("exclude[0]"));
}

#[test]
fn secrets_are_found_in_a_schema_and_stripped_from_metadata() {
    let schema = json!({"properties": {"auth": {"properties": {"apiKey": {"format": "secret-ref"}}}}});
    let id = "3f0c2a52-1111-4222-8333-444455556666";
    let binding = |version: Value| json!({"auth": {"apiKey": {"type": "secret_ref", "secretId": id, "version": version}}});
    let input = json!({"schema": schema, "config": binding(json!("latest")), "metadata": {"auth": {"apiKey": "s"}, "a": 1}});
    assert_eq!(answer("secrets", &input), json!({"paths": ["auth.apiKey"], "stripped": {"a": 1}}));
    let pinned = answer("secrets", &json!({"schema": schema, "config": binding(json!(3))}));
    assert_eq!(pinned["errors"][0]["path"], "auth.apiKey");
    assert!(pinned["errors"][0]["message"].as_str().unwrap().contains("version 3"));
    assert_eq!(answer("secrets", &json!({"schmea": {}}))["ignored"], json!(["schmea"]));
    assert!(refusal("secrets", &json!({"schema": 1})).contains("schema: expected an object"));
}
