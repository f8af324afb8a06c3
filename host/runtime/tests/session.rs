//! The embedding interface, in real sandboxes.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use bytes::Bytes;
use leasehold::{Command, Environment, Exit, For, Leasehold, Session, Streams, WalkOptions};
use std::fs;
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

async fn session(directory: &TempDir) -> (Leasehold, Session) {
    let runtime = Leasehold::builder(directory.path().join("state")).build().await.unwrap();
    let session = Environment::of("local").acquire(&runtime, For::default()).await.unwrap();
    (runtime, session)
}

fn command(script: &str) -> Command {
    Command { argv: ["sh", "-c", script].map(String::from).to_vec(), ..Command::default() }
}

fn streams() -> (Streams, mpsc::Receiver<Bytes>) {
    let (output, lines) = mpsc::channel(16);
    let (error, _) = mpsc::channel(16);
    (Streams { input: Box::new(tokio::io::empty()), output, error }, lines)
}

/// Runs a command to its end; how it ended, and what it wrote.
async fn run(session: &Session, script: &str) -> (Exit, String) {
    let (streams, mut lines) = streams();
    let reading = tokio::spawn(async move {
        let mut text = Vec::new();
        while let Some(piece) = lines.recv().await {
            text.extend_from_slice(&piece);
        }
        String::from_utf8(text).unwrap()
    });
    let (exit, _) = session.execute(command(script), streams, CancellationToken::new()).await.unwrap();
    (exit, reading.await.unwrap())
}

fn code(exit: &Exit) -> Option<i32> {
    match exit {
        Exit::Exited(code) => Some(*code),
        _ => None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_short_command_answers_beside_a_long_one_that_streams() {
    let directory = TempDir::new().unwrap();
    let (_runtime, session) = session(&directory).await;
    let (streams, mut lines) = streams();
    let cancel = CancellationToken::new();
    let long = session.execute(command("echo started; sleep 3600"), streams, cancel.clone());
    let beside = async {
        assert_eq!(lines.recv().await.unwrap(), "started\n");
        for _ in 0..5 {
            let (exit, text) = run(&session, "echo short").await;
            assert_eq!((code(&exit), text.as_str()), (Some(0), "short\n"));
        }
        cancel.cancel();
    };
    let (long, ()) = tokio::join!(long, beside);
    assert!(matches!(long, Err(leasehold::Error::Call(leasehold::engine::CallError::Cancelled))));
    session.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_command_left_in_the_background_lives_until_the_lease_ends_and_no_longer() {
    let directory = TempDir::new().unwrap();
    let (_runtime, session) = session(&directory).await;
    let script = "sh -c 'echo $$ > pid; exec sleep 3603' >/dev/null 2>&1 & while ! [ -s pid ]; do :; done";
    assert_eq!(code(&run(&session, script).await.0), Some(0));
    assert_eq!(code(&run(&session, "kill -0 $(cat pid)").await.0), Some(0));
    assert!(alive("3603"));
    session.release().await.unwrap();
    assert!(!alive("3603"));
}

fn alive(mark: &str) -> bool {
    fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| fs::read(entry.unwrap().path().join("cmdline")).ok())
        .any(|line| line.split(|byte| *byte == 0).any(|argument| argument == mark.as_bytes()))
}

#[tokio::test(flavor = "multi_thread")]
async fn two_runtimes_in_one_process_and_two_leases_of_one_do_not_see_each_other() {
    let (one, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let (runtime, first) = session(&one).await;
    let second = Environment::of("local").acquire(&runtime, For::default()).await.unwrap();
    let (_runtime, third) = session(&other).await;
    run(&first, "echo first > mine").await;
    for session in [&second, &third] {
        assert_eq!(run(session, "ls; ls /tmp").await.1, "");
    }
    for session in [first, second, third] {
        session.release().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_both_sides_changed_is_kept_and_the_sandboxes_put_beside_it() {
    let directory = TempDir::new().unwrap();
    let folder = directory.path().join("folder");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("file"), "before").unwrap();
    let (_runtime, session) = session(&directory).await;
    let synced = session.sync_in(&folder, WalkOptions::default()).await.unwrap();
    run(&session, "echo sandbox > file").await;
    fs::write(folder.join("file"), "host").unwrap();
    let report = session.sync_out(synced).await.unwrap();
    session.release().await.unwrap();
    assert_eq!(fs::read_to_string(folder.join("file")).unwrap(), "host");
    let aside = report.conflicts[0].aside.as_ref().unwrap();
    assert_eq!(fs::read_to_string(folder.join(aside)).unwrap(), "sandbox\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_return_that_breaks_a_rule_leaves_the_folder_as_it_was() {
    let directory = TempDir::new().unwrap();
    let folder = directory.path().join("folder");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("file"), "kept").unwrap();
    let (_runtime, session) = session(&directory).await;
    let synced = session.sync_in(&folder, WalkOptions::default()).await.unwrap();
    run(&session, "ln -s /etc escape").await;
    session.sync_out(synced).await.unwrap_err();
    session.release().await.unwrap();
    assert_eq!(fs::read_to_string(folder.join("file")).unwrap(), "kept");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_variable_that_no_shell_could_name_is_refused_before_anything_runs() {
    let directory = TempDir::new().unwrap();
    let (_runtime, session) = session(&directory).await;
    for name in ["BAD-KEY", "1X", "", "A B"] {
        let command = Command { env: vec![(name.into(), "x".into())], ..command("echo ran") };
        let refused = session.execute(command, streams().0, CancellationToken::new()).await;
        assert!(matches!(refused, Err(leasehold::Error::VariableName { .. })), "{name:?}");
    }
    session.release().await.unwrap();
}

/// More than any command line could hold: the command is not started, and it is said what to do instead.
#[tokio::test(flavor = "multi_thread")]
async fn ten_mebibytes_of_arguments_or_variables_are_refused_and_the_lease_goes_on() {
    let directory = TempDir::new().unwrap();
    let (_runtime, session) = session(&directory).await;
    let large = || "x".repeat(10 << 20);
    let many = std::iter::repeat_n("x".repeat(100 << 10), 100);
    for command in [
        Command { argv: vec!["true".into(), large()], ..Command::default() },
        Command { argv: std::iter::once("true".to_owned()).chain(many).collect(), ..Command::default() },
        Command { env: vec![("LARGE".into(), large())], ..command("true") },
    ] {
        let refused = session.execute(command, streams().0, CancellationToken::new()).await.unwrap_err();
        assert!(refused.is_program_not_executable(), "{refused}");
        let text = refused.to_string();
        assert!(text.contains("limit `arguments`") && text.contains("standard input"), "{text}");
    }
    assert_eq!(run(&session, "echo fine").await.1, "fine\n");
    session.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_environment_gets_what_it_asks_for_up_to_the_ceiling_of_the_host() {
    let directory = TempDir::new().unwrap();
    let ceilings = leasehold::Bounds { processes: Some(60), ..leasehold::Bounds::default() };
    let builder = Leasehold::builder(directory.path().join("state")).ceilings(ceilings);
    let runtime = builder.build().await.unwrap();
    for (processes, granted) in [(60, true), (61, false)] {
        let mut environment = Environment::of("local");
        environment.config.insert("processes".into(), processes.into());
        match environment.acquire(&runtime, For::default()).await {
            Ok(session) => {
                assert!(granted);
                session.release().await.unwrap();
            }
            Err(error) => assert!(!granted && error.to_string().contains("from 1 to 60"), "{error}"),
        }
    }
}

/// The component in the repository and one built from its sources here are the same to a host.
#[tokio::test(flavor = "multi_thread")]
async fn the_embedded_provider_and_one_built_now_behave_the_same() {
    let directory = TempDir::new().unwrap();
    let built = leasehold_builder::fixture("local").unwrap();
    let builder = Leasehold::builder(directory.path().join("state"));
    let runtime = builder.provider("rebuilt", built, [leasehold::Grant::Jail]).build().await.unwrap();
    for provider in ["local", "rebuilt"] {
        let session = Environment::of(provider).acquire(&runtime, For::default()).await.unwrap();
        let folder = directory.path().join(provider);
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("in"), "in").unwrap();
        let synced = session.sync_in(&folder, WalkOptions::default()).await.unwrap();
        let (exit, text) = run(&session, "cat in; echo out > out; exit 4").await;
        assert_eq!((code(&exit), text.as_str()), (Some(4), "in"), "{provider}");
        assert_eq!(session.sync_out(synced).await.unwrap().added, [std::path::PathBuf::from("out")]);
        session.release().await.unwrap();
    }
}

/// Heavy directories are left out by their names; files of those names are files like any other.
#[tokio::test(flavor = "multi_thread")]
async fn files_that_are_called_like_a_heavy_directory_stay_and_come_back() {
    let directory = TempDir::new().unwrap();
    let folder = directory.path().join("folder");
    fs::create_dir_all(folder.join("target/build")).unwrap();
    fs::write(folder.join("build"), "kept").unwrap();
    fs::write(folder.join("target/build/heavy"), "kept").unwrap();
    let (_runtime, session) = session(&directory).await;
    let synced = session.sync_in(&folder, WalkOptions::default()).await.unwrap();
    let script = "cat build; echo new > dist; mkdir -p node_modules/a; echo x > node_modules/a/b";
    assert_eq!(run(&session, script).await.1, "kept");
    let report = session.sync_out(synced).await.unwrap();
    session.release().await.unwrap();
    assert_eq!(report.added, [std::path::PathBuf::from("dist")], "{report:?}");
    assert!(report.deleted.is_empty(), "{report:?}");
    for (path, content) in [("build", "kept"), ("target/build/heavy", "kept"), ("dist", "new\n")] {
        assert_eq!(fs::read_to_string(folder.join(path)).unwrap(), content, "{path}");
    }
}

/// What package managers leave in a folder: one file under two names.
#[tokio::test(flavor = "multi_thread")]
async fn two_names_of_one_file_come_back_as_two_files() {
    let directory = TempDir::new().unwrap();
    let folder = directory.path().join("folder");
    fs::create_dir(&folder).unwrap();
    let (_runtime, session) = session(&directory).await;
    let synced = session.sync_in(&folder, WalkOptions::default()).await.unwrap();
    assert_eq!(code(&run(&session, "echo one > a; ln a b").await.0), Some(0));
    session.sync_out(synced).await.unwrap();
    session.release().await.unwrap();
    assert_eq!(fs::read_to_string(folder.join("b")).unwrap(), "one\n");
}

#[test]
fn the_example_does_the_main_job() {
    let directory = TempDir::new().unwrap();
    let folder = directory.path().join("folder");
    fs::create_dir(&folder).unwrap();
    let mut example = std::env::current_exe().unwrap();
    example.pop();
    example.pop();
    example.push("examples/main_job");
    let output = std::process::Command::new(example)
        .args([&directory.path().join("state"), &folder])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("Linux leasehold ") && text.contains("1 files added"), "{text}");
    assert_eq!(fs::read_to_string(folder.join("listing.txt")).unwrap(), "listing.txt\n");
}
