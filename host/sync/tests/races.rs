//! Somebody swaps directories for links while the work goes on, and somebody gives up in the middle.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod common;

use common::{Raw, everything, file, receive, send, snapshot};
use leasehold_sync::{Limits, ReceiveError, incoming, merge};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::fs;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tokio::io::AsyncWriteExt as _;

fn staging_in(beside: &Path) -> Option<PathBuf> {
    let mut entries = fs::read_dir(beside).ok()?.filter_map(Result::ok);
    entries
        .find(|entry| entry.file_name().to_string_lossy().starts_with(".leasehold-stage-"))
        .map(|e| e.path())
}

/// Tells the other thread to end, also when this one failed.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Exchanges a directory with a link and back, each in one step, until told to end.
fn swap(directory: impl Fn() -> Option<PathBuf>, outside: &Path, swaps: &AtomicUsize, ended: &AtomicBool) {
    while !ended.load(Ordering::Relaxed) {
        let Some(directory) = directory() else { continue };
        let other = directory.with_extension("other");
        let _ = symlink(outside, &other);
        if renameat_with(CWD, &directory, CWD, &other, RenameFlags::EXCHANGE).is_ok() {
            swaps.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[tokio::test]
async fn a_directory_swapped_for_a_link_in_the_middle_of_an_archive_leads_nowhere() {
    let (beside, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let first = Raw::default().directory("d").file("d/a", "x").file("e/a", "x");
    let whole = first.clone().file("d/b", "escaped").link("d/l", "b").end();
    let (mut to, from) = tokio::io::duplex(64);
    let receiving = tokio::spawn({
        let beside = beside.path().to_owned();
        async move { incoming(from, &beside, Limits::default(), None).await }
    });
    to.write_all(&whole[..first.0.len()]).await.unwrap();
    let staging = loop {
        match staging_in(beside.path()) {
            Some(staging) if staging.join("e/a").exists() => break staging,
            _ => tokio::task::yield_now().await,
        }
    };
    fs::rename(staging.join("d"), staging.join("kept")).unwrap();
    symlink(outside.path(), staging.join("d")).unwrap();
    let _ = to.write_all(&whole[first.0.len()..]).await;
    drop(to);
    let error = receiving.await.unwrap().unwrap_err();
    assert!(matches!(&error, ReceiveError::Write { path, .. } if path == Path::new("d/b")), "{error}");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    assert_eq!(fs::read_dir(beside.path()).unwrap().count(), 0);
}

#[test]
fn a_thread_that_swaps_directories_for_links_gets_nothing_written_outside() {
    let (beside, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut archive = Raw::default();
    for number in 0..40 {
        // Away and back, so that the directory is opened each time.
        archive = archive.file(format!("d/in/{number}"), "escaped").file(format!("e/{number}"), "x");
    }
    let archive = archive.link("d/in/link", "0").end();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (ended, swaps) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            swap(|| Some(staging_in(beside.path())?.join("d/in")), outside.path(), &swaps, &ended);
        });
        let _end = End(&ended);
        let mut rounds = 0;
        while rounds < 60 || swaps.load(Ordering::Relaxed) == 0 {
            rounds += 1;
            let _ = runtime.block_on(receive(&archive, beside.path(), None));
            assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
        }
    });
}

#[test]
fn a_thread_that_swaps_directories_for_links_gets_nothing_merged_outside() {
    let (host, sandbox, outside) =
        (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    // Outside lies exactly what was sent, so that a merge that went there would find it unchanged.
    for folder in [host.path().join("d/in"), outside.path().to_owned()] {
        for number in 0..20 {
            file(folder.join(format!("changed{number}")), "sent", 0o644);
            file(folder.join(format!("deleted{number}")), "sent", 0o644);
        }
    }
    for number in 0..20 {
        file(sandbox.path().join(format!("d/in/changed{number}")), "escaped", 0o644);
        file(sandbox.path().join(format!("d/in/added{number}")), "escaped", 0o644);
    }
    let before = snapshot(outside.path());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (baseline, archive) = runtime.block_on(async {
        let sent = send(host.path(), everything()).await.1;
        (sent, send(sandbox.path(), everything()).await.0)
    });
    let (ended, swaps) = (AtomicBool::new(false), AtomicUsize::new(0));
    // The directory itself, wherever it is at the moment.
    let handle = fs::File::open(host.path().join("d/in")).unwrap();
    let inside = PathBuf::from(format!("/proc/self/fd/{}", handle.as_raw_fd()));
    std::thread::scope(|scope| {
        scope.spawn(|| swap(|| Some(host.path().join("d/in")), outside.path(), &swaps, &ended));
        let _end = End(&ended);
        let mut rounds = 0;
        while rounds < 40 || swaps.load(Ordering::Relaxed) == 0 {
            rounds += 1;
            let received = runtime.block_on(receive(&archive, host.path(), Some(baseline.clone()))).unwrap();
            // The swapper may make it stop; it may never make it write through the link.
            let _ = runtime.block_on(merge(baseline.clone(), received, host.path()));
            assert_eq!(snapshot(outside.path()), before);
            for number in 0..20 {
                file(inside.join(format!("changed{number}")), "sent", 0o644);
                file(inside.join(format!("deleted{number}")), "sent", 0o644);
                let _ = fs::remove_file(inside.join(format!("added{number}")));
            }
        }
    });
}

#[test]
fn a_receiver_dropped_in_the_middle_leaves_nothing() {
    let beside = tempfile::tempdir().unwrap();
    let archive = Raw::default().file("a", "x").file("b", "x").end();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let (mut to, from) = tokio::io::duplex(4096);
        let receiving = incoming(from, beside.path(), Limits::default(), None);
        let mut receiving = std::pin::pin!(receiving);
        to.write_all(&archive[..1024]).await.unwrap();
        loop {
            tokio::select! {
                biased;
                _ = &mut receiving => panic!("it cannot have ended"),
                () = tokio::task::yield_now() => {}
            }
            if staging_in(beside.path()).is_some_and(|staging| staging.join("a").exists()) {
                break;
            }
        }
    });
    // The end of the runtime waits for its threads.
    drop(runtime);
    assert_eq!(fs::read_dir(beside.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_refusal_is_heard_although_the_stream_never_goes_on() {
    let beside = tempfile::tempdir().unwrap();
    let (mut to, from) = tokio::io::duplex(64 << 10);
    to.write_all(&Raw::default().file("/a", "x").0).await.unwrap();
    let refused = common::rule(incoming(from, beside.path(), Limits::default(), None).await);
    assert_eq!(refused, leasehold_sync::Rule::Absolute);
    drop(to);
}

#[tokio::test]
async fn a_stream_that_fails_is_told_apart_from_a_bad_archive() {
    struct Broken;
    impl tokio::io::AsyncRead for Broken {
        fn poll_read(
            self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
            _: &mut tokio::io::ReadBuf<'_>,
        ) -> std::task::Poll<std::io::Result<()>> {
            std::task::Poll::Ready(Err(std::io::Error::other("the wire is cut")))
        }
    }
    let beside = tempfile::tempdir().unwrap();
    let error = incoming(Broken, beside.path(), Limits::default(), None).await.unwrap_err();
    assert_eq!(error.to_string(), "the archive could not be read to its end: the wire is cut");
    let missing = beside.path().join("missing");
    let error = incoming(Broken, &missing, Limits::default(), None).await.unwrap_err();
    assert!(matches!(&error, ReceiveError::Staging { path, .. } if *path == missing), "{error}");
}
