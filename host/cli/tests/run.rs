//! `leasehold run` and `leasehold reconcile`, in real sandboxes.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use common::sandbox::{alive, leasehold, nothing_left, place, ran, waiting};
use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

#[test]
fn the_folder_goes_in_the_command_runs_and_what_it_changed_comes_back() {
    let place = place();
    let project = place.path().join("project");
    fs::write(project.join("kept.txt"), "kept").unwrap();
    fs::write(project.join("changed.txt"), "before").unwrap();
    fs::write(project.join("deleted.txt"), "gone soon").unwrap();
    let script = "uname -n; echo after > changed.txt; rm deleted.txt; mkdir new; ls > new/listing.txt";
    let (code, stdout, stderr) = ran(&place, &["run", "--", "sh", "-c", script]);
    assert_eq!((code, stdout.as_str(), stderr.as_str()), (0, "leasehold\n", ""));
    assert_eq!(fs::read_to_string(project.join("changed.txt")).unwrap(), "after\n");
    assert_eq!(fs::read_to_string(project.join("kept.txt")).unwrap(), "kept");
    assert_eq!(fs::read_to_string(project.join("new/listing.txt")).unwrap(), "changed.txt\nkept.txt\nnew\n");
    assert!(!project.join("deleted.txt").exists());
    nothing_left(&place, "no such mark");
}

#[test]
fn the_exit_code_is_the_commands_or_says_why_there_is_none() {
    let place = place();
    for (command, expected) in [
        (&["true"][..], 0),
        (&["sh", "-c", "exit 3"], 3),
        (&["sh", "-c", "kill -9 $$"], 137),
        (&["no-such-program"], 127),
        (&["/etc/ld.so.cache"], 126),
    ] {
        let (code, ..) = ran(&place, &[&["run", "--no-sync", "--"], command].concat());
        assert_eq!(code, expected, "{command:?}");
    }
    let (code, ..) = ran(&place, &["run", "--no-sync", "--timeout", "200ms", "--", "sleep", "3600"]);
    assert_eq!(code, 124);
    nothing_left(&place, "3600");
}

#[test]
fn what_fails_before_the_command_has_one_clear_message_and_code_125() {
    let place = place();
    for (arguments, expected) in [
        (
            &["run", "--provider", "nope", "--", "true"][..],
            "leasehold: there is no provider `nope`; installed: local. Type `leasehold provider install PATH` to add one\n",
        ),
        (
            &["run", "--environment", "nope", "--", "true"],
            "leasehold: there is no environment `nope` (there are: none); type `leasehold env add nope --provider PROVIDER`, or write it into leasehold.toml\n",
        ),
        (
            &["run", "--sync", "missing", "--", "true"],
            "leasehold: give --sync a folder that is there; cannot use the folder missing: No such file or directory (os error 2)\n",
        ),
    ] {
        let (code, stdout, stderr) = ran(&place, arguments);
        assert_eq!((code, stdout.as_str(), stderr.as_str()), (125, "", expected));
    }
    fs::write(
        place.path().join("project/leasehold.toml"),
        "[environments.a]\nprovider = \"local\"\ncolour = 1\n",
    )
    .unwrap();
    let (code, _, stderr) = ran(&place, &["run", "--no-sync", "--", "true"]);
    assert_eq!(code, 125);
    assert!(stderr.contains("`colour` in [environments.a] is read by nobody"), "{stderr}");
    let (code, _, stderr) = ran(&place, &["run", "--timeout", "soon", "--", "true"]);
    assert_eq!(code, 2);
    assert!(stderr.contains("expected a time such as 90s, 10m or 2h, not `soon`"), "{stderr}");
}

#[test]
fn an_environment_of_the_settings_bounds_its_sandboxes() {
    let place = place();
    let settings = "[environments.small]\nprovider = \"local\"\nconfig = { memoryBytes = 33554432 }\n";
    fs::write(place.path().join("project/leasehold.toml"), settings).unwrap();
    let (code, ..) = ran(&place, &["run", "--environment", "small", "--no-sync", "--", "true"]);
    assert_eq!(code, 0);
    let hungry = "x=$(head -c 200000000 /dev/zero | tr '\\0' x); echo ${#x}";
    let (code, stdout, _) =
        ran(&place, &["run", "--environment", "small", "--no-sync", "--", "sh", "-c", hungry]);
    assert!(code != 0 && stdout.is_empty(), "{code} {stdout}");
    nothing_left(&place, "no such mark");
}

#[test]
fn output_and_errors_stay_apart_input_passes_through_and_variables_are_set() {
    let place = place();
    let script = "cat; echo error >&2; echo \"$NAME\"";
    let arguments = ["run", "--no-sync", "--env", "NAME=a=b", "--", "sh", "-c", script];
    let mut child = leasehold(&place, &arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let input = "line\n".repeat(100_000);
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.stdout == format!("{input}a=b\n").into_bytes(), "{} bytes", output.stdout.len());
    assert_eq!(output.stderr, b"error\n");
}

#[test]
fn work_that_cannot_be_brought_back_is_kept_in_an_archive() {
    let place = place();
    let project = place.path().join("project");
    fs::write(project.join("file"), "before").unwrap();
    let (code, _, stderr) =
        ran(&place, &["run", "--", "sh", "-c", "echo after > file; ln -s /etc/passwd escape"]);
    assert_eq!(code, 125, "{stderr}");
    assert_eq!(fs::read_to_string(project.join("file")).unwrap(), "before");
    assert_eq!(fs::read_dir(&project).unwrap().count(), 1);
    let (before, after) = stderr.split_once("all the sandbox held is in ").unwrap();
    assert!(before.contains("the files could not be brought back"), "{stderr}");
    let archive = after.split(".tar").next().unwrap().to_owned() + ".tar";
    let listed = Command::new("tar").args(["-xOf", &archive, "./file"]).output().unwrap();
    assert_eq!(listed.stdout, b"after\n");
    // Kept for whoever runs it, and not a leftover.
    fs::remove_file(archive).unwrap();
    nothing_left(&place, "no such mark");
}

#[test]
fn nothing_of_the_host_is_seen_inside() {
    let place = place();
    let secret = place.path().join("secret");
    fs::write(&secret, "secret").unwrap();
    let script = format!(
        "cat {} /etc/shadow 2>/dev/null; ls -A /home; ls -A /root 2>/dev/null; ls /proc | grep -c '^[0-9]'; cat /proc/net/dev | grep -c eth",
        secret.display()
    );
    let (_, stdout, _) = ran(&place, &["run", "--no-sync", "--", "sh", "-c", &script]);
    let lines: Vec<_> = stdout.lines().collect();
    let processes: u32 = lines[0].parse().unwrap();
    assert!(processes < 10, "{stdout}");
    assert_eq!(lines[1..], ["0"], "{stdout}");
}

#[test]
fn an_interrupt_ends_the_command_and_lets_the_sandbox_go() {
    let place = place();
    let mut child = waiting(&place, "3601");
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    nothing_left(&place, "3601");
}

#[test]
fn a_host_that_is_killed_leaves_nothing_running_and_reconcile_leaves_nothing_at_all() {
    let place = place();
    // Once before, so that killing hits the run and not the making of the cache.
    assert_eq!(ran(&place, &["run", "--no-sync", "--", "true"]).0, 0);
    for _ in 0..5 {
        let mut child = waiting(&place, "3602");
        child.kill().unwrap();
        child.wait().unwrap();
    }
    while alive("3602") {
        std::thread::yield_now();
    }
    let (code, stdout, stderr) = ran(&place, &["reconcile"]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert_eq!(stdout.lines().filter(|line| line.starts_with("ended lh-")).count(), 5, "{stdout}");
    nothing_left(&place, "3602");
    assert_eq!(ran(&place, &["reconcile"]), (0, String::new(), String::new()));
}

/// `script` gives the run a terminal of its own. Bars are for transfers that take long.
#[test]
fn on_a_terminal_a_short_run_shows_the_commands_output_and_nothing_else() {
    let place = place();
    fs::write(place.path().join("project/file"), "content").unwrap();
    let run = "exec \"$LEASEHOLD\" run -- sh -c 'cat file; echo; echo more >> file'";
    let script = Command::new("script");
    let mut terminal = common::sandbox::within(&place, script, &["-qec", run, "/dev/null"]);
    let output = terminal.env("LEASEHOLD", common::sandbox::binary()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "content\r\n");
    nothing_left(&place, "no such mark");
}
