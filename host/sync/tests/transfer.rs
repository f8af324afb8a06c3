//! Files and trees in all their forms, from a source to a sink and into place.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod common;

use common::{everything, file, snapshot};
use leasehold_sync::{
    Excludes, FileSink, FileSource, Moved, Outlet, Progress, ReceiveError, Receiving, Rule, SendError,
    SinkEntry, SinkError, SourceKind, Tree, TreeSink, TreeSource, WalkError, sweep,
};
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use tokio::io::AsyncReadExt as _;

async fn read(mut outlet: Outlet) -> Vec<u8> {
    let mut bytes = Vec::new();
    outlet.read_to_end(&mut bytes).await.unwrap();
    bytes
}

async fn write(mut inlet: leasehold_sync::Inlet, bytes: &[u8]) {
    for piece in bytes.chunks(1000) {
        inlet.ready().await;
        inlet.give(piece.to_vec().into()).unwrap();
    }
}

fn odd_tree(folder: &Path) {
    file(folder.join("plain"), "content", 0o644);
    file(folder.join("bin/run"), "#!/bin/sh\n", 0o755);
    file(folder.join("secret"), "password", 0o600);
    file(folder.join("nothing"), "", 0o640);
    file(folder.join("large"), vec![7; 700_000], 0o644);
    file(folder.join("odd \"'\n$(x) name"), "odd", 0o644);
    fs::create_dir(folder.join("empty")).unwrap();
    fs::set_permissions(folder.join("empty"), fs::Permissions::from_mode(0o711)).unwrap();
    symlink("plain", folder.join("link")).unwrap();
    symlink("bin", folder.join("link-to-directory")).unwrap();
    fs::hard_link(folder.join("plain"), folder.join("second-name")).unwrap();
}

fn source(folder: &Path) -> (TreeSource, leasehold_sync::Summary) {
    TreeSource::new(Tree::walk(folder, everything()).unwrap(), Progress::default())
}

/// Moves a tree entry by entry from a source to a sink.
async fn by_entries(from: &mut TreeSource, to: &mut TreeSink) {
    while let Some((entry, content)) = from.next().await.unwrap() {
        let inlet = to.put(SinkEntry { path: entry.path, kind: entry.kind, mode: entry.mode }).await.unwrap();
        assert_eq!(inlet.is_some(), content.is_some());
        if let (Some(inlet), Some(content)) = (inlet, content) {
            write(inlet, &read(content).await).await;
        }
    }
}

#[tokio::test]
async fn a_tree_is_the_same_as_an_archive_and_entry_by_entry_and_replaces_what_was_there() {
    let (host, parent) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    odd_tree(host.path());
    for entries in [false, true] {
        file(parent.path().join("target/old"), "old", 0o644);
        let (mut from, summary) = source(host.path());
        let progress = Progress::default();
        let receiving = Receiving { progress: progress.clone(), ..Receiving::default() };
        let (mut to, arriving) = TreeSink::new(parent.path(), receiving);
        if entries {
            by_entries(&mut from, &mut to).await;
        } else {
            write(to.tar().unwrap(), &read(from.tar().unwrap()).await).await;
        }
        to.finish().await.unwrap();
        let sent = summary.finish().await.unwrap();
        assert!(parent.path().join("target/old").exists(), "placed before it was told to");
        let moved = arriving.finish().await.unwrap().place(Path::new("target")).unwrap();
        assert_eq!((moved.files, moved.bytes), sent.manifest.totals());
        assert_eq!(progress.moved(), moved);
        assert_eq!(snapshot(&parent.path().join("target")), snapshot(host.path()), "entries: {entries}");
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 1, "something is left beside");
    }
}

#[tokio::test]
async fn links_are_followed_when_asked_wherever_they_lead_and_not_for_ever() {
    let (host, outside, beside) =
        (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    file(host.path().join("a/f"), "content", 0o640);
    file(outside.path().join("d/g"), "outside", 0o600);
    symlink("a/f", host.path().join("link")).unwrap();
    symlink(outside.path().join("d"), host.path().join("out")).unwrap();
    let mut options = everything();
    options.follow_symlinks = true;
    let walk = || Tree::walk(host.path(), options.clone());
    let (mut from, summary) = TreeSource::new(walk().unwrap(), Progress::default());
    let archive = read(from.tar().unwrap()).await;
    summary.finish().await.unwrap();
    let received = common::receive(&archive, beside.path(), None).await.unwrap();
    let contents = common::contents(&received.path());
    assert_eq!(contents[Path::new("link")], contents[Path::new("a/f")]);
    assert!(contents[Path::new("out/g")].starts_with("file 600"));

    symlink("..", host.path().join("a/loop")).unwrap();
    assert!(matches!(walk().unwrap_err(), WalkError::Loop { path } if path == host.path().join("a/loop")));
    fs::remove_file(host.path().join("a/loop")).unwrap();
    symlink("gone", host.path().join("dangling")).unwrap();
    assert!(
        matches!(walk().unwrap_err(), WalkError::Read { path, .. } if path == host.path().join("dangling"))
    );
}

#[test]
fn excluded_paths_are_not_even_opened() {
    let host = tempfile::tempdir().unwrap();
    for path in ["keep.txt", "skip.log", "sub/data.bin", "sub/skip.log", "dist/x", "a/node_modules/y"] {
        file(host.path().join(path), "", 0o644);
    }
    let mut options = everything();
    options.exclude = Excludes::new(["*.log", "dist/*", "node_modules"]);
    let tree = Tree::walk(host.path(), options).unwrap();
    assert_eq!((tree.len(), tree.totals().0), (5, 2));
}

#[tokio::test]
async fn what_the_sandbox_should_have_left_out_is_passed_over() {
    let beside = tempfile::tempdir().unwrap();
    let archive =
        common::Raw::default().file("a", "1").file("b.log", "2").directory("d").file("d/c.log", "3").end();
    let receiving = Receiving { exclude: Excludes::new(["*.log"]), ..Receiving::default() };
    let (mut sink, arriving) = TreeSink::new(beside.path(), receiving);
    write(sink.tar().unwrap(), &archive).await;
    sink.finish().await.unwrap();
    assert_eq!(arriving.finish().await.unwrap().manifest().totals(), (1, 1));
}

async fn one_file(folder: &Path, path: &str, mode: Option<u32>) -> Result<(Vec<u8>, u32), SendError> {
    let (mut from, summary) = FileSource::open(folder, Path::new(path), mode, false, Progress::default())?;
    let bytes = read(from.bare().unwrap()).await;
    assert!(from.bare().is_none());
    let sent = summary.finish().await?;
    assert_eq!((sent.bytes, sent.blake3), (bytes.len() as u64, blake3::hash(&bytes)));
    Ok((bytes, sent.mode))
}

#[tokio::test]
async fn a_file_is_offered_as_bare_bytes_or_as_the_only_entry() {
    let folder = tempfile::tempdir().unwrap();
    file(folder.path().join("d/f"), "content", 0o640);
    symlink("d", folder.path().join("l")).unwrap();
    symlink("d/f", folder.path().join("lf")).unwrap();
    assert_eq!(one_file(folder.path(), "d/f", None).await.unwrap(), (b"content".to_vec(), 0o640));
    assert_eq!(one_file(folder.path(), "d/f", Some(0o600)).await.unwrap().1, 0o600);
    for path in ["l/f", "lf", "d", "missing", "../x", "d/missing/f"] {
        assert!(one_file(folder.path(), path, None).await.is_err(), "{path}");
    }
    let open = |follow| FileSource::open(folder.path(), Path::new("lf"), None, follow, Progress::default());
    let (mut from, _summary) = open(true).unwrap();
    let (entry, content) = from.next().await.unwrap().unwrap();
    assert_eq!((entry.path, entry.kind, entry.mode), (PathBuf::new(), SourceKind::File(7), 0o640));
    assert_eq!(read(content.unwrap()).await, b"content");
    assert_eq!(from.next().await.unwrap().map(drop), None);
    assert_eq!(from.next().await.unwrap().map(drop), None);
    // A source that nobody reads was not sent.
    let (from, summary) = open(true).unwrap();
    drop(from);
    assert!(matches!(summary.finish().await, Err(SendError::Dropped { .. })));
}

#[tokio::test]
async fn a_file_replaces_its_target_as_a_whole_with_its_mode_before_any_byte() {
    let folder = tempfile::tempdir().unwrap();
    let sink = |path: &str, mode, most| {
        FileSink::new(folder.path(), Path::new(path), mode, most, Progress::default())
    };
    file(folder.path().join("d/f"), "old", 0o644);
    let (mut to, arriving) = sink("d/f", Some(0o600), 100);
    let mut inlet = to.bare().unwrap();
    inlet.ready().await;
    // The staged file is there with its mode while nothing was written.
    let staged = loop {
        let names = fs::read_dir(folder.path().join("d")).unwrap().map(|entry| entry.unwrap().path());
        let staged = names.into_iter().find(|path| !path.ends_with("f"));
        match staged.and_then(|path| path.metadata().ok()) {
            Some(metadata) if metadata.mode() & 0o777 == 0o600 => break metadata,
            _ => tokio::task::yield_now().await,
        }
    };
    assert_eq!(staged.len(), 0);
    inlet.give("new content".into()).unwrap();
    to.finish().await.unwrap();
    assert_eq!(fs::read(folder.path().join("d/f")).unwrap(), b"old");
    assert_eq!(arriving.finish().await.unwrap().place().unwrap(), Moved { files: 1, bytes: 11 });
    assert_eq!(fs::read(folder.path().join("d/f")).unwrap(), b"new content");
    assert_eq!(fs::metadata(folder.path().join("d/f")).unwrap().mode() & 0o7777, 0o600);

    // Too large, not finished, onto a directory: the old file is whole and nothing is left beside it.
    let (mut to, arriving) = sink("d/f", None, 3);
    write(to.bare().unwrap(), b"four").await;
    assert!(matches!(to.finish().await, Err(SinkError::Refused(_))));
    assert!(matches!(
        arriving.finish().await,
        Err(ReceiveError::Refused { rule: Rule::TooManyBytes(3), .. })
    ));
    let (mut to, arriving) = sink("d/f", None, 100);
    write(to.bare().unwrap(), b"half").await;
    drop(to);
    assert!(matches!(arriving.finish().await, Err(ReceiveError::Cancelled)));
    let (mut to, arriving) = sink("d", None, 100);
    write(to.bare().unwrap(), b"x").await;
    to.finish().await.unwrap();
    arriving.finish().await.unwrap().place().unwrap_err();
    assert_eq!(fs::read(folder.path().join("d/f")).unwrap(), b"new content");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    assert_eq!(fs::read_dir(folder.path().join("d")).unwrap().count(), 1);
    // Directories on the way are made.
    let (mut to, arriving) = sink("new/deep/f", None, 100);
    write(to.bare().unwrap(), b"x").await;
    to.finish().await.unwrap();
    arriving.finish().await.unwrap().place().unwrap();
    assert_eq!(fs::read(folder.path().join("new/deep/f")).unwrap(), b"x");
}

fn entry(path: &str, kind: SourceKind) -> SinkEntry {
    SinkEntry { path: path.into(), kind, mode: 0o644 }
}

#[tokio::test]
async fn an_entry_keeps_to_the_size_it_announced_and_to_every_rule() {
    let beside = tempfile::tempdir().unwrap();
    for (path, announced, bytes, rule) in [
        ("a", 5, &b"four"[..], Rule::Size(5)),
        ("a", 3, b"four", Rule::Size(3)),
        ("a", 0, b"four", Rule::Size(0)),
        ("../a", 1, b"1", Rule::StepsOut),
        ("/a", 1, b"1", Rule::Absolute),
        ("", 1, b"1", Rule::NotPlain),
    ] {
        let (mut sink, arriving) = TreeSink::new(beside.path(), Receiving::default());
        let mut inlet = sink.put(entry(path, SourceKind::File(announced))).await.unwrap().unwrap();
        inlet.ready().await;
        // A thread that refused before takes nothing.
        let _ = inlet.give(bytes.to_vec().into());
        drop(inlet);
        let said = sink.finish().await.unwrap_err();
        let ReceiveError::Refused { rule: broken, .. } = arriving.finish().await.unwrap_err() else {
            panic!("{path}")
        };
        assert_eq!(broken, rule);
        assert!(said.to_string().contains(&rule.to_string()), "{said}");
    }
    // The next entry hears of what was wrong with the one before.
    let (mut sink, _arriving) = TreeSink::new(beside.path(), Receiving::default());
    sink.put(entry("l", SourceKind::Link("/etc".into()))).await.unwrap();
    let mut said = Ok(None);
    for number in 0..4 {
        said = sink.put(entry(&number.to_string(), SourceKind::Directory)).await;
        if said.is_err() {
            break;
        }
    }
    assert!(matches!(&said, Err(SinkError::Refused(text)) if text.contains("leads out")), "{said:?}");
    assert_eq!(fs::read_dir(beside.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_sink_that_is_not_finished_or_used_in_two_ways_puts_nothing_anywhere() {
    let beside = tempfile::tempdir().unwrap();
    let archive = common::Raw::default().file("a", "1").end();
    let (mut sink, arriving) = TreeSink::new(beside.path(), Receiving::default());
    write(sink.tar().unwrap(), &archive).await;
    assert_eq!(sink.tar().map(drop), Err(SinkError::Used));
    drop(sink);
    assert!(matches!(arriving.finish().await, Err(ReceiveError::Cancelled)));
    let (sink, arriving) = TreeSink::new(beside.path(), Receiving::default());
    drop(sink);
    assert!(matches!(arriving.finish().await, Err(ReceiveError::Cancelled)));
    let (mut sink, _) = TreeSink::new(beside.path(), Receiving::default());
    sink.put(entry("a", SourceKind::Directory)).await.unwrap();
    assert_eq!(sink.tar().map(drop), Err(SinkError::Used));
    drop(sink);
    let (mut sink, _) = TreeSink::new(beside.path(), Receiving::default());
    assert!(matches!(sink.finish().await, Err(SinkError::Refused(_))));
}

#[tokio::test]
async fn a_sweep_takes_what_nobody_uses_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let left = [".leasehold-stage-1", ".leasehold-old-2"];
    for name in left {
        file(folder.path().join(name).join("d/f"), "", 0o400);
        fs::set_permissions(folder.path().join(name).join("d"), fs::Permissions::from_mode(0o500)).unwrap();
    }
    file(folder.path().join(".leasehold-place-3"), "", 0o600);
    symlink("/etc", folder.path().join(".leasehold-place-4")).unwrap();
    for name in [".leasehold", "leasehold-stage-1", ".leasehold-merge.lock"] {
        file(folder.path().join(name), "", 0o644);
    }
    // One that is in use.
    let (mut sink, _arriving) = TreeSink::new(folder.path(), Receiving::default());
    sink.put(entry("a", SourceKind::Directory)).await.unwrap();
    sink.put(entry("b", SourceKind::Directory)).await.unwrap();
    assert_eq!(sweep(folder.path()).unwrap(), 4);
    assert_eq!(sweep(folder.path()).unwrap(), 0);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4);
    assert_eq!(sweep(&folder.path().join("gone")).unwrap(), 0);
    drop(sink);
}

#[tokio::test]
async fn tens_of_thousands_of_entries_pass() {
    let (host, beside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for directory in 0..30 {
        let path = host.path().join(directory.to_string());
        fs::create_dir(&path).unwrap();
        for number in 0..999 {
            fs::File::create(path.join(number.to_string())).unwrap();
        }
    }
    let tree = Tree::walk(host.path(), everything()).unwrap();
    assert_eq!(tree.len(), 30_000);
    let (mut from, summary) = TreeSource::new(tree, Progress::default());
    let (mut to, arriving) = TreeSink::new(beside.path(), Receiving::default());
    let (mut outlet, mut inlet) = (from.tar().unwrap(), to.tar().unwrap());
    loop {
        outlet.ready().await;
        let Some(chunk) = outlet.pull(usize::MAX).unwrap() else { break };
        inlet.ready().await;
        inlet.give(chunk).unwrap();
    }
    to.finish().await.unwrap();
    let received = arriving.finish().await.unwrap();
    assert_eq!(received.manifest().len(), 30_000);
    assert_eq!(received.manifest().totals(), summary.finish().await.unwrap().manifest.totals());
}
