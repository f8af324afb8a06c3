//! Commands.

use crate::shop::Shop;
use std::io::Write as _;
use std::process::Stdio;

pub(crate) fn the_exit_code_is_the_commands_or_says_why_there_is_none(shop: &Shop<'_>) {
    let lease = shop.acquired();
    for (command, expected, said) in [
        (&["true"][..], 0, ""),
        (&["sh", "-c", "exit 3"], 3, ""),
        (&["sh", "-c", "exit 126"], 126, ""),
        (&["sh", "-c", "exit 127"], 127, ""),
        (&["sh", "-c", "exit 255"], 255, ""),
        (&["sh", "-c", "kill -9 $$"], 137, ""),
        (&["sh", "-c", "kill -TERM $$"], 143, ""),
        (&["no-such-program"], 127, "the program is not in the image"),
        (&["/no/such/program"], 127, "the program is not in the image"),
        // Words that a shell would act on itself.
        (&["exit"], 127, "the program is not in the image"),
        (&["-x"], 127, "the program is not in the image"),
        (&["/etc/passwd"], 126, "the program cannot be executed"),
        (&["/etc"], 126, "the program cannot be executed"),
    ] {
        let (code, output, error) = shop.exec(&lease, command);
        assert_eq!((code, output.as_str()), (expected, ""), "{command:?}: {error}");
        assert!(error.contains(said) && error.is_empty() == said.is_empty(), "{command:?}: {error}");
    }
    let weird = ["printf", "%s|", "a b", "q'\"", "$HOME", "ü\n", "", "*"];
    assert_eq!(shop.exec(&lease, &weird).1, "a b|q'\"|$HOME|ü\n||*|");
    let long = "a".repeat(131_071);
    assert_eq!(shop.exec(&lease, &["sh", "-c", "echo ${#1}", "x", &long]).1, "131071\n");
    shop.released(&lease);
}

pub(crate) fn output_and_errors_stay_apart_and_input_passes_through(shop: &Shop<'_>) {
    let script = "cat; echo error >&2; echo \"$NAME\"; pwd; id -u";
    let environment = shop.environment.clone();
    let arguments =
        ["run", "--environment", &environment, "--no-sync", "--env", "NAME=a=b", "--", "sh", "-c", script];
    let mut child = shop
        .told(&arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let input = "line\n".repeat(300_000);
    let mut stdin = child.stdin.take().unwrap();
    let sent = input.clone();
    let sending = std::thread::spawn(move || stdin.write_all(sent.as_bytes()).unwrap());
    let output = child.wait_with_output().unwrap();
    sending.join().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "error\n");
    assert!(
        String::from_utf8_lossy(&output.stdout) == format!("{input}a=b\n/workspace\n0\n"),
        "other output"
    );
    assert_eq!(output.status.code(), Some(0));
}

pub(crate) fn a_command_that_reads_nothing_of_a_long_input_still_writes_all_its_output(shop: &Shop<'_>) {
    let environment = shop.environment.clone();
    let script = "head -c 8000000 /dev/zero";
    let mut child = shop
        .told(&["run", "--environment", &environment, "--no-sync", "--", "sh", "-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // Closed under it once the command has ended.
    let sending = std::thread::spawn(move || stdin.write_all(&vec![b'x'; 4 << 20]).ok());
    let output = child.wait_with_output().unwrap();
    sending.join().unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 8_000_000));
}

pub(crate) fn a_timeout_ends_everything_the_command_started(shop: &Shop<'_>) {
    let lease = shop.acquired();
    let script = "echo begun; sleep 4321 & sh -c 'sleep 4321 & wait'; wait";
    let (code, output, _) =
        shop.tell(&["lease", "exec", &lease, "--timeout", "1s", "--", "sh", "-c", script]);
    assert_eq!((code, output.as_str()), (124, "begun\n"));
    let (_, processes, _) = shop.exec(&lease, &["ps", "-o", "args"]);
    assert!(!processes.contains("sleep 4321"), "{processes}");
    shop.released(&lease);
}

pub(crate) fn a_long_command_runs_beside_others(shop: &Shop<'_>) {
    let lease = shop.acquired();
    let script = "mkfifo go; echo ready > ready; cat go; exit 9";
    let mut long = shop.told(&["lease", "exec", &lease, "--", "sh", "-c", script]);
    let long = long.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Control commands while it runs.
    let waited = shop.exec(&lease, &["sh", "-c", "until [ -s ready ]; do sleep 0.05; done; cat ready"]);
    assert_eq!(waited, (0, "ready\n".into(), String::new()));
    assert_eq!(shop.exec(&lease, &["sh", "-c", "echo gone on > go"]).0, 0);
    let output = long.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(9), &b"gone on\n"[..]));
    shop.released(&lease);
}
