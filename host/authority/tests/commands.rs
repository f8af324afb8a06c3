//! Commands in a jail: how they start, what they get, how they end.

#![allow(clippy::unwrap_used, clippy::panic, reason = "only tests use the helpers")]

mod common;

use common::{marker, one, run, run_with, runs, said, sh, state, until};
use leasehold_authority::jail::{Command, Exit, JailError, Limit, LimitHit};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

#[test]
fn all_of_this_holds_for_an_ordinary_user() {
    common::again_as_ordinary_user();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_runs_and_its_code_is_passed_on() {
    let state = state();
    let jails = one(&state).await;
    for code in [0, 7, 126, 127, 255] {
        assert_eq!(run(&jails, sh(&format!("exit {code}"))).await.unwrap().exit, Exit::Exited(code));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_a_signal_ended_says_which() {
    let state = state();
    let jails = one(&state).await;
    for signal in [1, 9, 15] {
        let ran = run(&jails, sh(&format!("kill -{signal} $$"))).await.unwrap();
        assert_eq!(ran.exit, Exit::Signaled(signal));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn output_and_error_are_kept_apart_and_whole() {
    let state = state();
    let jails = one(&state).await;
    let ran = run(&jails, sh("for i in 1 2 3; do echo out $i; echo err $i >&2; done")).await.unwrap();
    assert_eq!(ran.output, "out 1\nout 2\nout 3\n");
    assert_eq!(ran.error, "err 1\nerr 2\nerr 3\n");
    let ran = run(&jails, sh("head -c 3000000 /dev/zero; head -c 2000000 /dev/zero >&2")).await.unwrap();
    assert_eq!((ran.output.len(), ran.error.len()), (3_000_000, 2_000_000));
}

#[tokio::test(flavor = "multi_thread")]
async fn input_arrives_and_ends() {
    let state = state();
    let jails = one(&state).await;
    assert_eq!(run_with(&jails, sh("cat"), b"a\0b\n").await.unwrap().output, "a\0b\n");
    let big = vec![b'x'; 2_000_000];
    assert_eq!(run_with(&jails, sh("wc -c"), &big).await.unwrap().output.trim(), "2000000");
    // A command that does not want its input is none the worse for it.
    assert_eq!(run_with(&jails, sh("exec <&-; echo done"), &big).await.unwrap().output, "done\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_ends_although_its_input_stays_open() {
    let state = state();
    let jails = one(&state).await;
    let (_keep, input) = tokio::io::duplex(16);
    let exit = jails.run("one", &sh("exit 3"), input, tokio::io::sink(), tokio::io::sink()).await.unwrap();
    assert_eq!(exit, Exit::Exited(3));
}

#[tokio::test(flavor = "multi_thread")]
async fn output_arrives_while_the_command_still_runs() {
    let state = state();
    let jails = one(&state).await;
    let (mut input, command_input) = tokio::io::duplex(64);
    let (command_output, output) = tokio::io::duplex(64);
    let command = sh("while read line; do echo got $line; done; echo over");
    let running = jails.run("one", &command, command_input, command_output, tokio::io::sink());
    let talking = async {
        let mut lines = tokio::io::BufReader::new(output).lines();
        for word in ["a", "b"] {
            input.write_all(format!("{word}\n").as_bytes()).await.unwrap();
            assert_eq!(lines.next_line().await.unwrap().unwrap(), format!("got {word}"));
        }
        drop(input);
        assert_eq!(lines.next_line().await.unwrap().unwrap(), "over");
    };
    let (exit, ()) = tokio::join!(running, talking);
    assert_eq!(exit.unwrap(), Exit::Exited(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_takes_nothing_holds_the_command_up() {
    let state = state();
    let jails = one(&state).await;
    let (command_output, mut output) = tokio::io::duplex(4096);
    // More than the pipe and every buffer hold: the file that says "over" cannot be there before.
    let command = sh("head -c 10000000 /dev/zero; : > /workspace/over");
    let running = jails.run("one", &command, tokio::io::empty(), command_output, tokio::io::sink());
    let checking = async {
        let mut first = [0; 1];
        output.read_exact(&mut first).await.unwrap();
        assert_eq!(said(&jails, "ls /workspace").await, "");
        let mut rest = Vec::new();
        output.read_to_end(&mut rest).await.unwrap();
        assert_eq!(rest.len(), 9_999_999);
    };
    let (exit, ()) = tokio::join!(running, checking);
    assert_eq!(exit.unwrap(), Exit::Exited(0));
    assert_eq!(said(&jails, "ls /workspace").await, "over\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_went_away_ends_the_command_as_a_closed_pipe_does() {
    struct Gone;
    impl AsyncWrite for Gone {
        fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<std::io::Result<usize>> {
            Poll::Ready(Err(std::io::ErrorKind::BrokenPipe.into()))
        }
        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
            Poll::Ready(Ok(()))
        }
        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }
    let state = state();
    let jails = one(&state).await;
    let yes = Command::new(["yes"]);
    let exit = jails.run("one", &yes, tokio::io::empty(), Gone, tokio::io::sink()).await.unwrap();
    assert_eq!(exit, Exit::Signaled(13));
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_with_newlines_quotes_and_nothing_in_them_arrive_as_they_are() {
    let state = state();
    let jails = one(&state).await;
    let odd = ["a\nb", "it's \"quoted\"", "", "$HOME `id` *", "-n", "ü€ \t"];
    let mut argv = vec!["printf", "%s|"];
    argv.extend(odd);
    assert_eq!(run(&jails, Command::new(argv)).await.unwrap().output, odd.join("|") + "|");
    let name = "/workspace/new\nline 'and' \"quotes\"";
    let ran = run(&jails, Command::new(["sh", "-c", "echo kept > \"$1\" && cat \"$1\"", "sh", name])).await;
    assert_eq!(ran.unwrap().output, "kept\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_environment_is_the_given_one_and_nothing_of_the_host() {
    let state = state();
    let jails = one(&state).await;
    let mut command = Command::new(["env"]);
    command.env = vec![("A".into(), "1\n2".into()), ("HOME".into(), "/workspace".into())];
    let output = run(&jails, command).await.unwrap().output;
    let mut lines: Vec<_> = output.lines().collect();
    lines.sort_unstable();
    let path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    assert_eq!(lines, ["2", "A=1", "HOME=/workspace", path]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_working_directory_is_the_given_one_or_the_workspace() {
    let state = state();
    let jails = one(&state).await;
    assert_eq!(run(&jails, Command::new(["pwd"])).await.unwrap().output, "/workspace\n");
    let in_directory = |cwd: &str| Command { cwd: Some(cwd.into()), ..Command::new(["pwd"]) };
    assert_eq!(run(&jails, in_directory("/tmp")).await.unwrap().output, "/tmp\n");
    let missing = run(&jails, in_directory("/nowhere")).await.err().unwrap();
    assert!(matches!(missing, JailError::WorkingDirectory { .. }), "{missing}");
    let relative = run(&jails, in_directory("tmp")).await.err().unwrap();
    assert!(matches!(relative, JailError::Command { .. }), "{relative}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_is_looked_for_in_the_path_of_the_command() {
    let state = state();
    let jails = one(&state).await;
    said(&jails, "mkdir bin && printf '#!/bin/sh\\necho mine\\n' > bin/tool && chmod +x bin/tool").await;
    let mut command = Command::new(["tool"]);
    assert!(
        matches!(run(&jails, command.clone()).await, Err(JailError::NotFound { program }) if program == "tool")
    );
    command.env = vec![("PATH".into(), "/nowhere:/workspace/bin:/usr/bin".into())];
    assert_eq!(run(&jails, command).await.unwrap().output, "mine\n");
    assert_eq!(run(&jails, Command::new(["bin/tool"])).await.unwrap().output, "mine\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_is_not_there_differs_from_one_that_cannot_be_executed() {
    let state = state();
    let jails = one(&state).await;
    for program in ["no-such-program", "/no/such/program", "/bin/sh/below"] {
        let error = run(&jails, Command::new([program])).await.err().unwrap();
        assert!(matches!(error, JailError::NotFound { .. }), "{program}: {error}");
    }
    said(&jails, "echo data > data; echo data > garbage; chmod +x garbage").await;
    for program in ["/workspace/data", "/workspace/garbage", "/usr"] {
        let error = run(&jails, Command::new([program])).await.err().unwrap();
        assert!(matches!(error, JailError::NotExecutable { .. }), "{program}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_kernel_could_start_is_refused_with_the_reason() {
    let state = state();
    let jails = one(&state).await;
    let mut with_equals = Command::new(["true"]);
    with_equals.env = vec![("A=B".into(), "c".into())];
    for command in [Command::new([""]), Command::default(), Command::new(["true", "a\0b"]), with_equals] {
        assert!(matches!(run(&jails, command).await, Err(JailError::Command { .. })));
    }
    let long = "x".repeat(10 << 20);
    let error = run(&jails, Command::new(["true", &long])).await.err().unwrap();
    assert!(matches!(error, JailError::Limit(LimitHit { which: Limit::Arguments, .. })), "{error}");
    let many = std::iter::once("true".to_owned()).chain((0..100).map(|_| "y".repeat(100_000)));
    let error = run(&jails, Command::new(many)).await.err().unwrap();
    assert!(matches!(error, JailError::Limit(LimitHit { which: Limit::Arguments, .. })), "{error}");
    assert_eq!(
        run(&jails, Command::new(["true", &"z".repeat(100_000)])).await.unwrap().exit,
        Exit::Exited(0)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeout_ends_every_process_of_the_command_and_keeps_what_it_wrote() {
    let state = state();
    let jails = one(&state).await;
    let mark = marker("timeout");
    // Children in other process groups too, as an interactive shell makes them.
    let script = "set -m; sleep 100000 & sh -c 'while :; do sleep 100000; done' \"$0\" & echo before; while :; do sleep 100000; done";
    let mut command = Command::new(["sh", "-c", script, &mark]);
    command.timeout = Some(Duration::from_millis(500));
    let ran = run(&jails, command).await.unwrap();
    assert_eq!((ran.exit, ran.output.as_str()), (Exit::TimedOut, "before\n"));
    assert!(!runs(&mark));
    assert_eq!(said(&jails, "ps ax | grep -c '[s]leep 100000' || :").await, "0\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_ignores_the_request_to_end_is_made_to() {
    let state = state();
    let jails = one(&state).await;
    let mark = marker("stubborn");
    let script = "trap '' TERM HUP INT; sh -c 'while :; do sleep 1; done' \"$0\" & while :; do sleep 1; done";
    let mut command = Command::new(["sh", "-c", script, &mark]);
    command.timeout = Some(Duration::from_millis(100));
    assert_eq!(run(&jails, command).await.unwrap().exit, Exit::TimedOut);
    assert!(!runs(&mark));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_command_ends_at_its_timeout_too() {
    let state = state();
    let jails = one(&state).await;
    let mut command = sh("kill -STOP $$");
    command.timeout = Some(Duration::from_millis(100));
    assert_eq!(run(&jails, command).await.unwrap().exit, Exit::TimedOut);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_nobody_waits_for_any_more_ends() {
    let state = state();
    let jails = one(&state).await;
    let mark = marker("dropped");
    let script = "trap '' TERM; echo up; while :; do sleep 1; done";
    let command = Command::new(["sh", "-c", script, &mark]);
    let (output, mut up) = tokio::io::duplex(64);
    let running = jails.run("one", &command, tokio::io::empty(), output, tokio::io::sink());
    let mut line = [0; 3];
    tokio::select! {
        _ = running => unreachable!("it has no end"),
        read = up.read_exact(&mut line) => { read.unwrap(); }
    }
    until("the dropped command ends", || !runs(&mark));
    assert_eq!(said(&jails, "echo still here").await, "still here\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_commands_run_at_once_and_each_gets_its_own_output() {
    let state = state();
    let jails = one(&state).await;
    // Neither could end if they ran one after the other.
    let (first, second) = tokio::join!(
        run(&jails, sh("mkfifo a b 2>/dev/null; : > a; cat b > /dev/null; echo first")),
        run(&jails, sh("mkfifo a b 2>/dev/null; cat a > /dev/null; : > b; echo second")),
    );
    assert_eq!(first.unwrap().output, "first\n");
    assert_eq!(second.unwrap().output, "second\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn short_commands_run_beside_a_long_one() {
    let state = state();
    let jails = one(&state).await;
    let (mut input, long_input) = tokio::io::duplex(64);
    let long = sh("cat");
    let mut output = Vec::new();
    let running = jails.run("one", &long, long_input, &mut output, tokio::io::sink());
    let short = async {
        for round in 0..20 {
            assert_eq!(said(&jails, &format!("echo {round}")).await, format!("{round}\n"));
        }
        input.write_all(b"end").await.unwrap();
        drop(input);
    };
    let (exit, ()) = tokio::join!(running, short);
    assert_eq!(exit.unwrap(), Exit::Exited(0));
    assert_eq!(output, b"end");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_background_process_lives_on_and_neither_holds_its_command_nor_dies_of_a_closed_pipe() {
    let state = state();
    let jails = one(&state).await;
    let mark = marker("background");
    // It writes to its command's output for ever.
    let script =
        "(while :; do echo noise; done) & sh -c 'while :; do sleep 100000; done' \"$0\" & echo started";
    let ran = run(&jails, Command::new(["sh", "-c", script, &mark])).await.unwrap();
    assert_eq!(ran.exit, Exit::Exited(0));
    assert!(ran.output.contains("started\n"));
    assert!(runs(&mark));
    for _ in 0..10 {
        said(&jails, "true").await;
    }
    assert!(runs(&mark));
    assert_eq!(said(&jails, "ps ax | grep -c '[d]o echo noise'").await, "1\n");
    jails.stop("one").await.unwrap();
    assert!(!runs(&mark));
}

#[tokio::test(flavor = "multi_thread")]
async fn orphans_are_taken_away() {
    let state = state();
    let jails = one(&state).await;
    said(&jails, "i=0; while [ $i -lt 50 ]; do (true & ) ; i=$((i+1)); done").await;
    let zombies = || async { said(&jails, "ps ax -o stat | grep -c ^Z || :").await };
    while zombies().await != "0\n" {}
}

#[tokio::test(flavor = "multi_thread")]
async fn more_commands_at_once_than_the_jail_can_hold_are_a_typed_refusal() {
    let state = state();
    let jails = std::sync::Arc::new(one(&state).await);
    let mut waiting = Vec::new();
    let mut holds = Vec::new();
    for _ in 0..256 {
        let (hold, input) = tokio::io::duplex(1);
        let (output, mut up) = tokio::io::duplex(8);
        let jails = std::sync::Arc::clone(&jails);
        waiting.push(tokio::spawn(async move {
            let command = sh("echo; read x");
            jails.run("one", &command, input, output, tokio::io::sink()).await
        }));
        up.read_exact(&mut [0]).await.unwrap();
        holds.push((hold, up));
    }
    let error = run(&jails, Command::new(["true"])).await.err().unwrap();
    assert!(matches!(error, JailError::Limit(LimitHit { which: Limit::Commands, .. })), "{error}");
    drop(holds);
    for command in waiting {
        command.await.unwrap().unwrap();
    }
    said(&jails, "true").await;
}
