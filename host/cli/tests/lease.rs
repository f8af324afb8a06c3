//! `leasehold lease` and `leasehold reconcile`, in real sandboxes, each command a process of its own.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use common::Place;
use serde_json::Value;
use std::fs;
use std::io::Write as _;
use std::process::Stdio;

fn acquired(place: &Place, arguments: &[&str]) -> String {
    place.host(&[&["lease", "acquire"], arguments].concat()).quiet().trim().to_owned()
}

fn shown(place: &Place, id: &str) -> Value {
    place.host(&["lease", "show", id, "--json"]).json()
}

/// What happened to a lease: the states it came to, and why.
fn history(place: &Place, id: &str) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let events = shown(place, id)["history"].as_array().unwrap().clone();
    events.iter().map(|event| (text(&event["to"]), text(&event["reason"]))).collect()
}

fn listed(place: &Place, arguments: &[&str]) -> Vec<String> {
    let all = place.host(&[&["lease", "ls", "--json"], arguments].concat()).json();
    all.as_array().unwrap().iter().map(|lease| lease["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_lease_outlives_the_process_that_acquired_it_and_is_worked_in_from_others() {
    let place = Place::new();
    let id = acquired(&place, &[]);
    place.host(&["lease", "exec", &id, "--", "sh", "-c", "echo one > file"]).quiet();
    assert_eq!(place.host(&["lease", "exec", &id, "--", "cat", "file"]).quiet(), "one\n");
    assert_eq!(listed(&place, &[]), [id.as_str()]);
    let text = place.host(&["lease", "ls"]).quiet();
    let words: Vec<Vec<_>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(words[0], ["LEASE", "STATE", "ENVIRONMENT", "PROVIDER", "HELD", "BY", "AGE"]);
    assert_eq!(words[1][..5], [&id, "active", "local", "local", "you"], "{text}");
    place.host(&["reconcile"]).quiet();
    assert_eq!(listed(&place, &[]), [id.as_str()], "a reconcile leaves what a person holds");
    assert_eq!(place.host(&["lease", "release", &id]).quiet(), "");
    assert!(listed(&place, &[]).is_empty());
    assert_eq!(listed(&place, &["--all"]), [id.as_str()]);
    assert_eq!(place.host(&["lease", "ls"]).quiet(), "");
    assert_eq!(fs::read_dir(place.path().join("state/leasehold/jails")).unwrap().count(), 0);
}

#[test]
fn the_history_says_when_and_why_and_what_each_call_used() {
    let place = Place::new();
    let id = acquired(&place, &[]);
    place.host(&["lease", "exec", &id, "--", "sh", "-c", "exit 3"]);
    place.host(&["lease", "release", &id]).quiet();
    let lease = shown(&place, &id);
    let events = lease["history"].as_array().unwrap();
    let states: Vec<_> = events.iter().map(|event| event["to"].as_str().unwrap()).collect();
    assert_eq!((states.first(), states.last()), (Some(&"acquiring"), Some(&"released")));
    let ran = events.iter().find(|event| event["reason"] == "a command ended with exit code 3").unwrap();
    assert!(ran["bill"]["fuel"].as_u64().unwrap() > 0 && ran["bill"]["wallUs"].as_u64().unwrap() > 0);
    assert!(events.iter().all(|event| event["at"].as_str().unwrap().ends_with('Z')));
    assert_eq!(lease["disposition"], "destroyed");
    let text = place.host(&["lease", "show", &id]).quiet();
    assert!(text.starts_with(&format!("{id}\n  state        released\n")), "{text}");
    assert!(text.contains("\nhistory\n") && text.contains(" fuel, "), "{text}");
}

#[test]
fn files_are_brought_out_of_a_sandbox_that_was_stopped() {
    let place = Place::new();
    let id = acquired(&place, &[]);
    place.host(&["lease", "exec", &id, "--", "sh", "-c", "mkdir deep; echo work > deep/file"]).quiet();
    place.host(&["lease", "stop", &id]).quiet();
    assert_eq!(shown(&place, &id)["state"], "retained");
    place.host(&["lease", "export", &id, "out/here"]).quiet();
    assert_eq!(fs::read_to_string(place.path().join("out/here/deep/file")).unwrap(), "work\n");
    // It is stopped again, and still has everything.
    assert_eq!(shown(&place, &id)["state"], "retained");
    let exported = place.host(&["lease", "export", &id, "again", "--json"]).json();
    assert_eq!(exported["lease"], id.as_str());
    assert_eq!(fs::read_to_string(place.path().join("again/deep/file")).unwrap(), "work\n");
    place.host(&["lease", "destroy", &id]).quiet();
    assert_eq!(shown(&place, &id)["disposition"], "destroyed");
    assert!(listed(&place, &[]).is_empty());
}

#[test]
fn a_lease_in_use_is_exported_and_goes_on() {
    let place = Place::new();
    let id = acquired(&place, &[]);
    place.host(&["lease", "exec", &id, "--", "sh", "-c", "echo work > file"]).quiet();
    place.folder("out");
    place.host(&["lease", "export", &id, "out"]).quiet();
    assert_eq!(fs::read_to_string(place.path().join("out/file")).unwrap(), "work\n");
    place.host(&["lease", "exec", &id, "--", "true"]).quiet();
    place.host(&["lease", "destroy", &id]).quiet();
}

#[test]
fn the_exit_code_of_exec_is_the_commands_or_says_why_there_is_none() {
    let place = Place::new();
    let id = acquired(&place, &[]);
    for (command, expected) in [
        (&["true"][..], 0),
        (&["sh", "-c", "exit 3"], 3),
        (&["sh", "-c", "kill -9 $$"], 137),
        (&["no-such-program"], 127),
        (&["/etc/ld.so.cache"], 126),
    ] {
        let ran = place.host(&[&["lease", "exec", &id, "--"], command].concat());
        assert_eq!(ran.code, Some(expected), "{command:?}");
    }
    let late = place.host(&["lease", "exec", &id, "--timeout", "200ms", "--", "sleep", "3600"]);
    assert_eq!(late.code, Some(124));
    let mut command =
        place.command(&["lease", "exec", &id, "--env", "A=b", "--", "sh", "-c", "cat; echo $A"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"in ").unwrap();
    assert_eq!(child.wait_with_output().unwrap().stdout, b"in b\n");
    place.host(&["lease", "release", &id]).quiet();
    let refused = place.host(&["lease", "exec", &id, "--", "true"]).refused(125);
    assert_eq!(
        refused,
        format!(
            "leasehold: lease {id} is released, not in use; `leasehold lease show {id}` says what happened to it\n"
        )
    );
}

#[test]
fn every_refusal_says_what_to_type_next() {
    let place = Place::new();
    let nobody = "lh-aaaaaaaaaaaaaaaaaaaaaaaaaa";
    let id = acquired(&place, &[]);
    place.host(&["lease", "release", &id]).quiet();
    place.folder("full");
    place.write("full/file", "");
    let mut told = String::new();
    for arguments in [
        &["acquire", "--provider", "nobody"][..],
        &["acquire", "--environment", "nothing"],
        &["show", nobody],
        &["release", nobody],
        &["release", &id],
        &["stop", &id],
        &["destroy", &id],
        &["export", &id, "out"],
        &["export", nobody, "full"],
    ] {
        let text = place.host(&[&["lease"], arguments].concat()).refused(1);
        told.push_str(&format!("$ leasehold lease {}\n{text}\n", arguments.join(" ")));
    }
    insta::assert_snapshot!(told.replace(&id, "lh-ended"));
    assert!(!place.path().join("out").exists(), "a folder that was made for nothing is gone");
    let usage = place.host(&["lease", "show", "nonsense"]).refused(2);
    assert!(usage.contains("`nonsense` is no id of a lease; type `leasehold lease ls`"), "{usage}");
}

/// A provider whose receipts are about other leases: nothing it says proves an end.
#[test]
fn what_cannot_be_cleaned_up_is_listed_as_stuck_and_says_why() {
    let place = Place::new();
    let file = place.fixture("hostile");
    let grants = ["--grant", "time", "--grant", "random"];
    place.host(&[&["provider", "install", &file], &grants[..]].concat()).quiet();
    place.host(&["env", "add", "bad", "--provider", "hostile", "--set", "hostile=wrong-receipt"]).quiet();
    let id = acquired(&place, &["--environment", "bad"]);
    let refused = place.host(&["lease", "release", &id]).refused(1);
    assert!(refused.contains(&id), "{refused}");
    assert_eq!(shown(&place, &id)["state"], "pending_cleanup");
    assert!(listed(&place, &["--stuck"]).is_empty());
    let mut rounds = 0;
    while listed(&place, &["--stuck"]).is_empty() {
        let reconciled = place.host(&["reconcile"]);
        assert_eq!((reconciled.code, reconciled.stderr.as_str()), (Some(1), ""));
        assert!(reconciled.stdout.contains(&id), "{}", reconciled.stdout);
        rounds += 1;
        assert!(rounds < 10, "it is never given up");
    }
    assert_eq!(listed(&place, &["--stuck"]), [id.as_str()]);
    let text = place.host(&["lease", "ls", "--stuck"]).quiet();
    assert!(text.contains(&id) && text.contains("LAST ERROR"), "{text}");
    let report = place.host(&["reconcile", "--json"]);
    let report: Value = serde_json::from_str(&report.stdout).unwrap();
    assert_eq!(report["stuck"][0]["id"], id.as_str());
    assert!(history(&place, &id).iter().filter(|(to, _)| to == "pending_cleanup").count() > 1);
}

#[test]
fn watching_goes_on_until_it_is_interrupted() {
    let place = Place::new();
    acquired(&place, &[]);
    let mut child = place
        .command(&["reconcile", "--watch", "--every", "1ms", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    for _ in 0..3 {
        let report: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(report["settled"], serde_json::json!([]));
    }
    let pid = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    assert!(lines.all(|line| line.is_ok()));
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
