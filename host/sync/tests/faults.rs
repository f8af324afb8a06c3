//! Disks that are full or read-only, and processes that are killed: the old target whole or the new one, no scratch
//! after the next start, and a message that says what happened to which path.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a test that cannot go on has failed"
)]

mod common;

use common::{Raw, file, send, snapshot};
use leasehold_sync::{
    FileSink, Limits, Progress, ReceiveError, Receiving, Scratch, TreeSink, WalkOptions, incoming, merge,
};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A file system of its own, of 64 KiB, which is small for what is put there. None where it cannot be mounted.
struct Small(tempfile::TempDir);

impl Small {
    fn mounted() -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"])
            .arg(directory.path())
            .output();
        if mount.is_ok_and(|output| output.status.success()) {
            return Some(Small(directory));
        }
        eprintln!("skipped: this user cannot mount a file system");
        None
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn read_only(&self, yes: bool) {
        let option = if yes { "remount,ro" } else { "remount,rw" };
        assert!(Command::new("mount").args(["-o", option]).arg(self.path()).status().unwrap().success());
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.path()).status();
    }
}

async fn into_file(folder: &Path, bytes: &[u8]) -> Result<(), String> {
    let (mut sink, arriving) = FileSink::new(folder, Path::new("f"), None, 1 << 30, Progress::default());
    let mut inlet = sink.bare().map_err(|error| error.to_string())?;
    for piece in bytes.chunks(1000) {
        inlet.ready().await;
        if inlet.give(piece.to_vec().into()).is_err() {
            break;
        }
    }
    let _ = sink.finish().await;
    let received = arriving.finish().await.map_err(|error| error.to_string())?;
    received.place().map(drop).map_err(|error| error.to_string())
}

#[tokio::test]
async fn a_full_disk_leaves_what_was_there_and_says_which_path_did_not_fit() {
    let Some(small) = Small::mounted() else { return };
    file(small.path().join("f"), "old", 0o644);
    file(small.path().join("d/f"), "old", 0o644);
    let before = snapshot(small.path());
    let big = "x".repeat(200_000);
    let error = into_file(small.path(), big.as_bytes()).await.unwrap_err();
    assert!(error.contains("No space left") && error.contains("/f\""), "{error}");
    assert_eq!(snapshot(small.path()), before);

    // In the middle of a tree, whether the content, a directory or a link does not fit.
    let mut many = Raw::default();
    for number in 0..200 {
        many = many.directory(format!("d{number}")).file(format!("d{number}/f"), "x");
    }
    for archive in [Raw::default().file("fits", "x").file("does-not", &big), many] {
        let error =
            incoming(archive.end().as_slice(), small.path(), Limits::default(), None).await.unwrap_err();
        assert!(
            matches!(&error, ReceiveError::Write { path, .. } if !path.as_os_str().is_empty()),
            "{error}"
        );
        assert!(error.to_string().contains("No space left"), "{error}");
        assert_eq!(snapshot(small.path()), before);
    }
}

#[tokio::test]
async fn a_merge_into_a_full_disk_stops_with_every_file_whole() {
    let (Some(small), sandbox) = (Small::mounted(), tempfile::tempdir().unwrap()) else { return };
    // Staged elsewhere, so that putting in place is what fails.
    let beside = tempfile::tempdir().unwrap();
    file(small.path().join("a"), "old a", 0o644);
    file(small.path().join("b"), "old b", 0o644);
    let (_, baseline) = send(small.path(), WalkOptions::everything()).await;
    file(sandbox.path().join("a"), "new a", 0o644);
    file(sandbox.path().join("b"), "x".repeat(200_000), 0o644);
    let (archive, _) = send(sandbox.path(), WalkOptions::everything()).await;
    let received = incoming(archive.as_slice(), beside.path(), Limits::default(), None).await.unwrap();
    let error = merge(baseline, received, small.path()).await.unwrap_err().to_string();
    assert!(
        error.contains("/b\"") && error.contains("No space left") && error.contains("1 changes are in place"),
        "{error}"
    );
    assert_eq!(fs::read_to_string(small.path().join("a")).unwrap(), "new a");
    assert_eq!(fs::read_to_string(small.path().join("b")).unwrap(), "old b");
    assert_eq!(fs::read_dir(small.path()).unwrap().count(), 2);
}

#[tokio::test]
async fn a_target_made_read_only_is_as_it_was_whenever_that_happens() {
    let Some(small) = Small::mounted() else { return };
    file(small.path().join("f"), "old", 0o644);
    small.read_only(true);
    let error = into_file(small.path(), b"new").await.unwrap_err();
    assert!(error.contains("Read-only file system"), "{error}");
    let archive = Raw::default().file("g", "x").end();
    let error = incoming(archive.as_slice(), small.path(), Limits::default(), None).await.unwrap_err();
    assert!(matches!(error, ReceiveError::Staging { .. }), "{error}");
    small.read_only(false);
    // Between arriving and being put in place.
    let received = incoming(archive.as_slice(), small.path(), Limits::default(), None).await.unwrap();
    small.read_only(true);
    let error = received.place(Path::new("tree")).unwrap_err().to_string();
    assert!(error.contains("what was there is as it was"), "{error}");
    small.read_only(false);
    assert_eq!(fs::read_to_string(small.path().join("f")).unwrap(), "old");
    // What could not be removed then is left to the sweep.
    leasehold_sync::sweep(small.path()).unwrap();
    assert_eq!(fs::read_dir(small.path()).unwrap().count(), 1);
}

/// Where a child of this test program works, and how far it goes before it waits to be killed.
const CHILD: &str = "LEASEHOLD_SYNC_KILLED_IN";

/// Not a test of its own: what the next one kills.
#[tokio::test]
async fn child_that_is_killed() {
    let Ok(folder) = std::env::var(CHILD) else { return };
    let folder = PathBuf::from(folder);
    let _noted = Scratch::new(folder.join("scratch")).note(&folder.join("target-parent")).unwrap();
    let (mut sink, _arriving) = TreeSink::new(&folder.join("target-parent"), Receiving::default());
    let mut inlet = sink.tar().unwrap();
    let archive = Raw::default().directory("d").file("d/f", "half of it").0;
    inlet.ready().await;
    inlet.give(archive.into()).unwrap();
    let (mut file, _file_arriving) =
        FileSink::new(&folder.join("target-parent"), Path::new("f"), None, 100, Progress::default());
    let mut bytes = file.bare().unwrap();
    bytes.ready().await;
    bytes.give("half".into()).unwrap();
    // Both are on the disk before the parent is told.
    let staged = || fs::read_dir(folder.join("target-parent")).unwrap().count();
    while staged() < 4 {
        tokio::task::yield_now().await;
    }
    println!("staged");
    std::future::pending::<()>().await;
}

#[test]
fn a_host_killed_in_the_middle_leaves_the_old_target_and_the_next_start_finds_what_it_staged() {
    let folder = tempfile::tempdir().unwrap();
    file(folder.path().join("target-parent/target/old"), "old", 0o644);
    file(folder.path().join("target-parent/f"), "old", 0o644);
    let before = snapshot(&folder.path().join("target-parent"));
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_that_is_killed", "--nocapture"])
        .env(CHILD, folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line.contains("staged")), "the child ended early");
    assert_eq!(Scratch::new(folder.path().join("scratch")).sweep().unwrap(), 0, "it lives");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_ne!(snapshot(&folder.path().join("target-parent")), before, "nothing had been staged");
    assert_eq!(Scratch::new(folder.path().join("scratch")).sweep().unwrap(), 2);
    assert_eq!(snapshot(&folder.path().join("target-parent")), before);
    assert_eq!(fs::read_dir(folder.path().join("scratch")).unwrap().count(), 0);
}
