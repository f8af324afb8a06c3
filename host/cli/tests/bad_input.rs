//! Bad input, row by row: one clear message that says what to do next, the right exit code, nothing left.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use common::Place;
use common::sandbox::{
    again_as_ordinary_user, alive, binary, is_root, leasehold, mark, nothing_left, outcome, place, ran,
    until, waiting, within,
};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

#[test]
fn all_of_this_holds_for_an_ordinary_user() {
    again_as_ordinary_user();
}

/// Runs in the project and expects this code, one line on standard error that holds all of this, and nothing
/// on standard output or left over.
fn refused(place: &Place, arguments: &[&str], code: i32, says: &[&str]) {
    let (got, stdout, stderr) = ran(place, arguments);
    assert_eq!((got, stdout.as_str()), (code, ""), "{arguments:?}: {stderr}");
    one_line(&stderr, says);
    nothing_left(place, "no such mark");
}

fn one_line(stderr: &str, says: &[&str]) {
    assert!(stderr.starts_with("leasehold: ") && stderr.trim_end().lines().count() == 1, "{stderr}");
    for part in says {
        assert!(stderr.contains(part), "{part:?} is not in {stderr}");
    }
}

#[test]
fn an_unknown_provider_is_named_with_those_there_are() {
    let place = place();
    refused(&place, &["run", "--provider", "nope", "--", "true"], 125, &["no provider `nope`", "local"]);
    refused(&place, &["run", "--environment", "nope", "--", "true"], 125, &["no environment `nope`"]);
}

#[test]
fn a_folder_that_cannot_be_taken_in_is_named() {
    let place = place();
    refused(&place, &["run", "--sync", "missing", "--", "true"], 125, &["missing", "No such file", "--sync"]);
    fs::write(place.path().join("project/file"), "no folder").unwrap();
    refused(&place, &["run", "--sync", "file", "--", "true"], 125, &["file is no folder", "--sync"]);
    let closed = place.path().join("project/closed");
    fs::create_dir(&closed).unwrap();
    fs::write(closed.join("inside"), "inside").unwrap();
    fs::set_permissions(&closed, Permissions::from_mode(0o000)).unwrap();
    // Root reads everything.
    if !is_root() {
        for folder in [".", "closed"] {
            refused(&place, &["run", "--sync", folder, "--", "true"], 125, &["closed", "Permission denied"]);
        }
        let file = place.path().join("project/secret");
        fs::set_permissions(&closed, Permissions::from_mode(0o755)).unwrap();
        fs::write(&file, "secret").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o000)).unwrap();
        refused(&place, &["run", "--", "true"], 125, &["secret", "Permission denied"]);
    }
    fs::set_permissions(&closed, Permissions::from_mode(0o755)).unwrap();
}

/// Runs a script in which `$PLACE/small` is a file system of this many KiB, in a mount namespace of its own.
fn on_a_small_disk(place: &Place, kib: u32, script: &str) -> (i32, String, String) {
    let small = place.path().join("small");
    fs::create_dir_all(&small).unwrap();
    let mount = format!("mount -t tmpfs -o size={kib}k,mode=700 small \"$PLACE/small\" && {script}");
    let mut unshare = Command::new("unshare");
    unshare.args(if is_root() { &["-m"][..] } else { &["-rm"] }).args(["sh", "-c", &mount]);
    let mut command = within(place, unshare, &[] as &[&str]);
    outcome(command.env("PLACE", place.path()).env("LEASEHOLD", binary()))
}

#[test]
fn a_disk_without_room_for_the_state_is_told_before_anything_runs() {
    let place = place();
    for (kib, filled) in [(64, 60), (2_000, 1_990)] {
        let script = format!(
            "head -c {filled}k /dev/zero > $PLACE/small/full; \
             XDG_STATE_HOME=$PLACE/small \"$LEASEHOLD\" run --no-sync -- echo ran"
        );
        let (code, stdout, stderr) = on_a_small_disk(&place, kib, &script);
        assert_eq!((code, stdout.as_str()), (125, ""), "{stderr}");
        assert!(stderr.starts_with("leasehold: "), "{stderr}");
        assert!(["No space left", "is full"].iter().any(|text| stderr.contains(text)), "{stderr}");
    }
}

#[test]
fn a_folder_that_does_not_fit_into_the_sandbox_is_told_and_let_go() {
    let place = place();
    fs::write(place.path().join("project/big"), vec![7; 20 << 20]).unwrap();
    let script = "export XDG_STATE_HOME=$PLACE/small; \"$LEASEHOLD\" run -- echo ran; code=$?; \
                  ls -A $PLACE/small/leasehold/jails; \"$LEASEHOLD\" reconcile; exit $code";
    let (code, stdout, stderr) = on_a_small_disk(&place, 16 << 10, script);
    assert_eq!((code, stdout.as_str()), (125, ""), "{stderr}");
    one_line(&stderr, &["taking", "project"]);
}

#[test]
fn work_that_does_not_fit_back_into_the_folder_is_kept_elsewhere_and_the_folder_stays_as_it_was() {
    let place = place();
    let script = "mkdir $PLACE/small/project; cd $PLACE/small/project; echo before > file; \
                  \"$LEASEHOLD\" run -- sh -c 'echo after > file; head -c 20000000 /dev/urandom > big'; code=$?; \
                  cat file; ls -A; exit $code";
    let (code, stdout, stderr) = on_a_small_disk(&place, 8 << 10, script);
    assert_eq!((code, stdout.as_str()), (125, "before\nfile\n"), "{stderr}");
    one_line(&stderr, &["No space left", "all the sandbox held is in "]);
    let kept = stderr.split("all the sandbox held is in ").nth(1).unwrap().split(':').next().unwrap().trim();
    let listed = Command::new("tar").args(["-xOf", kept, "./file"]).output().unwrap();
    assert_eq!(listed.stdout, b"after\n");
    fs::remove_file(kept).unwrap();
    nothing_left(&place, "no such mark");
}

#[test]
fn closed_standard_streams_are_no_reason_to_fail() {
    let place = place();
    for closed in ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"] {
        let script =
            format!("exec \"$LEASEHOLD\" run --no-sync -- sh -c 'echo a; echo b >&2; exit 7' {closed}");
        let mut shell = within(&place, Command::new("sh"), &["-c", script.as_str()]);
        assert_eq!(outcome(shell.env("LEASEHOLD", binary())).0, 7, "{closed}");
    }
    nothing_left(&place, "no such mark");
}

#[test]
fn a_reader_that_goes_away_ends_the_command_as_a_pipe_does() {
    let place = place();
    let mark = mark("reader");
    let script = "\"$LEASEHOLD\" run --no-sync -- sh -c 'exec yes \"$0\"' \"$MARK\"; echo $? > code";
    let piped = format!("{{ {script}; }} | head -n 1");
    let mut shell = within(&place, Command::new("sh"), &["-c", piped.as_str()]);
    let (code, stdout, stderr) = outcome(shell.env("LEASEHOLD", binary()).env("MARK", &mark));
    assert_eq!((code, stdout.trim(), stderr.as_str()), (0, mark.as_str(), ""));
    until("the run ended", || place.path().join("project/code").exists());
    until("it was told", || !fs::read(place.path().join("project/code")).unwrap().is_empty());
    assert_eq!(fs::read_to_string(place.path().join("project/code")).unwrap(), "141\n");
    nothing_left(&place, &mark);
}

#[test]
fn each_signal_that_asks_for_an_end_ends_the_command_and_lets_the_sandbox_go() {
    let place = place();
    for (signal, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        let mark = mark(signal);
        let mut child = waiting(&place, &mark);
        let pid = child.id().to_string();
        assert!(Command::new("kill").args([&format!("-{signal}"), &pid]).status().unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(code), "{signal}");
        nothing_left(&place, &mark);
    }
}

/// A real terminal that goes away while a command writes to it: the kernel sends SIGHUP and fails every write.
#[test]
fn a_terminal_that_is_closed_ends_the_run_and_lets_the_sandbox_go() {
    let place = place();
    let mark = mark("terminal");
    let script = "echo $$ > pid; exec \"$LEASEHOLD\" run --no-sync -- \
                  sh -c 'while :; do echo \"$0\"; sleep 0.05; done' \"$MARK\"";
    let mut terminal = within(&place, Command::new("script"), &["-qec", script, "/dev/null"]);
    let mut terminal = terminal
        .env("LEASEHOLD", binary())
        .env("MARK", &mark)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut some = [0; 8];
    std::io::Read::read_exact(terminal.stdout.as_mut().unwrap(), &mut some).unwrap();
    let run = fs::read_to_string(place.path().join("project/pid")).unwrap();
    // Its end closes the other side of the terminal, as a window that is closed does.
    terminal.kill().unwrap();
    terminal.wait().unwrap();
    let process = Path::new("/proc").join(run.trim()).join("cmdline");
    until("the run ended", || fs::read(&process).unwrap_or_default().is_empty());
    nothing_left(&place, &mark);
}

#[test]
fn arguments_and_variables_as_large_as_the_system_passes_them_arrive_whole() {
    let place = place();
    // The system takes 128 KiB for one and a quarter of the stack, 2 MiB as a rule, for all; 10 MiB never
    // reach this program, and are tried where a host application can give them.
    let one = "x".repeat(100_000);
    let mut arguments = vec!["run", "--no-sync"];
    let variables: Vec<_> = (0..5).map(|number| format!("V{number}={one}")).collect();
    variables.iter().for_each(|variable| arguments.extend(["--env", variable]));
    arguments.extend(["--", "sh", "-c", "echo $# ${#9} ${#V4}", "sh"]);
    arguments.extend([one.as_str(); 9]);
    assert_eq!(ran(&place, &arguments), (0, "9 100000 100000\n".into(), String::new()));
    let mut shell =
        leasehold(&place, &[&["run", "--no-sync", "--", "true"][..], &[one.as_str(); 110]].concat());
    assert_eq!(shell.spawn().err().and_then(|error| error.raw_os_error()), Some(7), "the system refuses");
    nothing_left(&place, "no such mark");
}

#[test]
fn names_with_newlines_cross_both_ways_and_never_break_a_message() {
    let place = place();
    let project = place.path().join("project");
    fs::write(project.join("a\nb"), "in").unwrap();
    fs::create_dir(project.join("dir\n")).unwrap();
    fs::write(project.join("dir\n/file"), "in").unwrap();
    let script = "cat 'a\nb' 'dir\n/file'; echo out > 'dir\n/new\nfile'; echo out > 'a\nb'";
    assert_eq!(ran(&place, &["run", "--", "sh", "-c", script]), (0, "inin".into(), String::new()));
    assert_eq!(fs::read_to_string(project.join("a\nb")).unwrap(), "out\n");
    assert_eq!(fs::read_to_string(project.join("dir\n/new\nfile")).unwrap(), "out\n");
    for (arguments, code) in [
        (&["run", "--no-sync", "--", "no\nsuch"][..], 127),
        (&["run", "--sync", "no\nsuch", "--", "true"], 125),
        (&["run", "--provider", "no\nsuch", "--", "true"], 125),
        (&["run", "--environment", "no\nsuch", "--", "true"], 125),
    ] {
        refused(&place, arguments, code, &["no"]);
    }
}

/// Sandboxes so small that a bomb is no danger to the machine that runs the tests.
fn small(place: &Place) {
    let config = "{ memoryBytes = 67108864, processes = 40, diskBytes = 16777216 }";
    let settings = format!("[environments.small]\nprovider = \"local\"\nconfig = {config}\n");
    fs::write(place.path().join("project/leasehold.toml"), settings).unwrap();
}

#[test]
fn a_command_that_takes_without_end_is_ended_by_the_bound_and_its_work_comes_back() {
    for (bound, greedy) in [
        ("processes", "exec perl -e 'fork while 1' \"$0\""),
        ("memory", "exec perl -e 'my @a; push @a, q(x) x 1000000 while 1' \"$0\""),
        ("disk", "while :; do head -c 500000 /dev/zero > \"/tmp/$((i=i+1))\"; done"),
    ] {
        let place = place();
        small(&place);
        let mark = mark(bound);
        let script = format!("echo work > work; {greedy}");
        let arguments =
            ["run", "--environment", "small", "--", "nice", "-n", "19", "sh", "-c", &script, &mark];
        let (code, stdout, stderr) = ran(&place, &arguments);
        assert_eq!((code, stdout.as_str()), (137, ""), "{bound}: {stderr}");
        one_line(&stderr, &[&format!("limit `{bound}`"), "leasehold.toml"]);
        assert_eq!(fs::read_to_string(place.path().join("project/work")).unwrap(), "work\n", "{bound}");
        nothing_left(&place, &mark);
    }
}

#[test]
fn a_bound_above_what_the_host_gives_is_refused_with_what_it_gives() {
    let place = place();
    let settings = "[environments.huge]\nprovider = \"local\"\nconfig = { memoryBytes = 1125899906842624 }\n";
    fs::write(place.path().join("project/leasehold.toml"), settings).unwrap();
    let says = ["bound `memory-bytes`", "not 1125899906842624"];
    refused(&place, &["run", "--environment", "huge", "--no-sync", "--", "true"], 125, &says);
}

#[test]
fn a_command_that_ignores_the_request_to_end_is_ended_all_the_same() {
    let place = place();
    let mark = mark("ignores");
    let script = "trap '' TERM INT HUP; echo started; while :; do sleep 1; done";
    let (code, stdout, stderr) =
        ran(&place, &["run", "--no-sync", "--timeout", "300ms", "--", "sh", "-c", script, &mark]);
    assert_eq!((code, stdout.as_str(), stderr.as_str()), (124, "started\n", ""));
    nothing_left(&place, &mark);
}

#[test]
fn who_asks_twice_does_not_wait_and_reconcile_clears_away_what_is_left() {
    let place = place();
    let mark = mark("twice");
    let mut child = waiting(&place, &mark);
    let pid = child.id().to_string();
    let interrupt = || Command::new("kill").args(["-INT", &pid]).status().unwrap();
    interrupt();
    // Either it is quick enough to end by itself, or the second one ends it.
    interrupt();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    until("nothing of the jail runs", || !alive(&mark));
    assert_eq!(ran(&place, &["reconcile"]).0, 0);
    nothing_left(&place, &mark);
}

#[test]
fn a_program_that_cannot_be_had_is_told_from_one_that_failed() {
    let place = place();
    refused(&place, &["run", "--no-sync", "--", "no-such-program"], 127, &["`no-such-program`"]);
    refused(&place, &["run", "--no-sync", "--", "/etc/ld.so.cache"], 126, &["/etc/ld.so.cache"]);
    let mut crashed = leasehold(&place, &["run", "--no-sync", "--", "sh", "-c", "kill -SEGV $$"]);
    assert_eq!(crashed.status().unwrap().code(), Some(139));
}
