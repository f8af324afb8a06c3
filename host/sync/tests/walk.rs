//! What is listed, what is left out, and which fault is named.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod common;

use common::{everything, file, send};
use leasehold_sync::{SendError, Tree, WalkError, WalkOptions, outgoing};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};
use tokio::io::AsyncReadExt as _;

async fn names(folder: &Path, options: WalkOptions) -> Vec<String> {
    let (_, baseline) = send(folder, options).await;
    baseline.manifest.iter().map(|(path, _)| path.to_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn heavy_directories_reserved_names_and_git_are_left_out_at_any_level() {
    let folder = tempfile::tempdir().unwrap();
    for name in leasehold_sync::HEAVY {
        file(folder.path().join(name).join("x"), "x", 0o644);
        file(folder.path().join("a/b").join(name).join("x"), "x", 0o644);
    }
    file(folder.path().join(".git/config"), "x", 0o644);
    file(folder.path().join("a/.paperclip-upload.123"), "x", 0o644);
    file(folder.path().join("a/.leasehold-stage-1/x"), "x", 0o644);
    file(folder.path().join("c/build"), "a file of that name is no directory", 0o644);
    file(folder.path().join("builder/x"), "x", 0o644);
    symlink("../elsewhere", folder.path().join("c/node_modules")).unwrap();
    assert_eq!(
        names(folder.path(), WalkOptions::default()).await,
        ["a", "a/b", "builder", "builder/x", "c", "c/build", "c/node_modules"]
    );
    let all = names(folder.path(), everything()).await;
    assert!(all.contains(&".git/config".into()) && all.contains(&"a/b/dist/x".into()));
    assert!(!all.iter().any(|name| name.contains("paperclip") || name.contains("leasehold")));
}

#[tokio::test]
async fn ignore_files_are_followed_without_a_repository_and_the_nearest_decides() {
    let folder = tempfile::tempdir().unwrap();
    let at = |path: &str| folder.path().join(path);
    file(at(".gitignore"), "*.log\n/only-here\nsecret/\n\\#odd\n# comment\n[broken\n", 0o644);
    file(at("sub/.gitignore"), "!keep.log\n/local\n", 0o644);
    for path in
        ["a.log", "only-here", "secret/x", "#odd", "sub/keep.log", "sub/b.log", "sub/local", "sub/only-here"]
    {
        file(at(path), "x", 0o644);
    }
    file(at("other/local"), "x", 0o644);
    file(at("other/secret"), "a file", 0o644);
    assert_eq!(
        names(folder.path(), WalkOptions::default()).await,
        [
            ".gitignore",
            "other",
            "other/local",
            "other/secret",
            "sub",
            "sub/.gitignore",
            "sub/keep.log",
            "sub/only-here"
        ]
    );
}

#[tokio::test]
async fn ignore_files_above_the_folder_count_up_to_the_root_of_the_work_tree() {
    let outer = tempfile::tempdir().unwrap();
    file(outer.path().join(".gitignore"), "*.outside\n", 0o644);
    file(outer.path().join("repo/.gitignore"), "*.log\n/app/local\n", 0o644);
    for name in ["a.log", "local", "a.outside"] {
        file(outer.path().join("repo/app").join(name), "x", 0o644);
    }
    let app = outer.path().join("repo/app");
    let options = WalkOptions::default;
    assert_eq!(names(&app, options()).await, ["a.log", "a.outside", "local"]);
    fs::create_dir(outer.path().join("repo/.git")).unwrap();
    assert_eq!(names(&app, options()).await, ["a.outside"]);
    fs::create_dir(app.join(".git")).unwrap();
    assert_eq!(names(&app, options()).await, ["a.log", "a.outside", "local"]);
}

#[tokio::test]
async fn links_are_listed_and_never_followed() {
    let outside = tempfile::tempdir().unwrap();
    file(outside.path().join("x"), "x", 0o644);
    let folder = tempfile::tempdir().unwrap();
    symlink(outside.path(), folder.path().join("out")).unwrap();
    symlink(".", folder.path().join("loop")).unwrap();
    symlink(outside.path().join("x"), folder.path().join(".gitignore")).unwrap();
    assert_eq!(names(folder.path(), WalkOptions::default()).await, [".gitignore", "loop", "out"]);
}

#[test]
fn sockets_and_pipes_are_passed_over_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(folder.path().join("socket")).unwrap();
    assert!(Command::new("mkfifo").arg(folder.path().join("pipe")).status().unwrap().success());
    let tree = Tree::walk(folder.path(), everything()).unwrap();
    assert_eq!((tree.skipped(), tree.len()), (2, 0));
}

#[test]
fn one_entry_beyond_the_limit_is_refused_with_the_way_on() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a", "b", "c"] {
        file(folder.path().join(name), "x", 0o644);
    }
    let mut options = everything();
    options.max_entries = 3;
    assert_eq!(Tree::walk(folder.path(), options.clone()).unwrap().totals(), (3, 3));
    options.max_entries = 2;
    let error = Tree::walk(folder.path(), options).unwrap_err();
    assert!(matches!(error, WalkError::TooMany { limit: 2, .. }));
    assert_eq!(
        error.to_string(),
        format!(
            "{:?} holds more than 2 files and directories; name a smaller folder, keep some of it out with \
             .gitignore lines, or raise the limit",
            folder.path()
        )
    );
}

#[test]
fn a_folder_that_is_not_there_or_is_a_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    file(folder.path().join("f"), "x", 0o644);
    for name in ["missing", "f"] {
        let path = folder.path().join(name);
        let error = Tree::walk(&path, everything()).unwrap_err();
        assert!(matches!(&error, WalkError::Open { path: named, .. } if *named == path), "{error}");
    }
}

#[test]
fn a_tree_too_deep_to_come_back_is_refused_before_it_goes() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join(vec!["d"; 257].join("/"))).unwrap();
    let error = Tree::walk(folder.path(), everything()).unwrap_err();
    assert!(matches!(error, WalkError::TooDeep { limit: 256, .. }), "{error}");
}

/// Runs on a thread that may not read what its modes forbid, whoever the tests run as.
fn without_privilege<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let mut sets = capabilities(None).unwrap();
            sets.effective.remove(CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH);
            set_capabilities(None, sets).unwrap();
            work()
        });
        thread.join().unwrap()
    })
}

#[test]
fn a_file_or_directory_that_cannot_be_read_is_named() {
    let folder = tempfile::tempdir().unwrap();
    file(folder.path().join("d/secret"), "x", 0o000);
    let error = without_privilege(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let (mut stream, summary) = outgoing(Tree::walk(folder.path(), everything()).unwrap());
            let broken = stream.read_to_end(&mut Vec::new()).await.unwrap_err().to_string();
            let error = summary.finish().await.unwrap_err();
            // Whoever reads may be a sandbox, which must not learn a path of the host.
            assert_eq!(broken, "the host could not read all of it");
            error
        })
    });
    let secret = folder.path().join("d/secret");
    assert!(matches!(&error, SendError::Read { path, .. } if *path == secret), "{error}");

    let closed = folder.path().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, std::os::unix::fs::PermissionsExt::from_mode(0o000)).unwrap();
    let error = without_privilege(|| Tree::walk(folder.path(), everything()).unwrap_err());
    assert!(matches!(&error, WalkError::Read { path, .. } if *path == closed), "{error}");
    fs::set_permissions(&closed, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
}

/// Sends a file larger than all buffers, changes it when the first bytes are out, and reads on.
async fn changed_while_read(change: impl FnOnce(&Path)) {
    let folder = tempfile::tempdir().unwrap();
    let large = folder.path().join("large");
    file(&large, vec![7; 8 << 20], 0o644);
    let past = SystemTime::now() - Duration::from_secs(1000);
    fs::File::options().write(true).open(&large).unwrap().set_modified(past).unwrap();
    let (mut stream, summary) = outgoing(Tree::walk(folder.path(), everything()).unwrap());
    stream.read_exact(&mut [0; 1024]).await.unwrap();
    change(&large);
    stream.read_to_end(&mut Vec::new()).await.unwrap_err();
    let error = summary.finish().await.unwrap_err();
    assert!(matches!(&error, SendError::Changed { path } if *path == large), "{error}");
}

#[tokio::test]
async fn a_file_that_grows_shrinks_or_is_rewritten_while_it_is_read_is_named() {
    let open = |path: &Path| fs::File::options().append(true).open(path).unwrap();
    changed_while_read(|path| open(path).write_all(b"more").unwrap()).await;
    changed_while_read(|path| open(path).set_len(4 << 20).unwrap()).await;
    changed_while_read(|path| fs::write(path, vec![8; 8 << 20]).unwrap()).await;
}

#[tokio::test]
async fn what_is_gone_or_something_else_since_it_was_listed_is_named() {
    for replace in [None, Some("link"), Some("directory"), Some("pipe")] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("d/f");
        file(&path, "x", 0o644);
        let tree = Tree::walk(folder.path(), everything()).unwrap();
        fs::remove_file(&path).unwrap();
        match replace {
            Some("link") => symlink("/etc/passwd", &path).unwrap(),
            Some("directory") => fs::create_dir(&path).unwrap(),
            Some(_) => assert!(Command::new("mkfifo").arg(&path).status().unwrap().success()),
            None => {}
        }
        let (mut stream, summary) = outgoing(tree);
        stream.read_to_end(&mut Vec::new()).await.unwrap_err();
        let error = summary.finish().await.unwrap_err();
        assert!(
            matches!(&error, SendError::Changed { path: named } if *named == path),
            "{replace:?}: {error}"
        );
    }
}

#[tokio::test]
async fn a_stream_dropped_in_the_middle_says_so_and_ends_the_work() {
    let folder = tempfile::tempdir().unwrap();
    file(folder.path().join("large"), vec![7; 8 << 20], 0o644);
    let (mut stream, summary) = outgoing(Tree::walk(folder.path(), everything()).unwrap());
    stream.read_exact(&mut [0; 1024]).await.unwrap();
    drop(stream);
    assert!(matches!(summary.finish().await, Err(SendError::Dropped { .. })));
}

#[tokio::test]
async fn the_same_folder_makes_the_same_archive_and_an_empty_one_makes_two_blocks() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(send(folder.path(), everything()).await.0, [0; 1024]);
    for name in ["b", "a", "c/d", "c/a"] {
        file(folder.path().join(name), name, 0o644);
    }
    let once = send(folder.path(), everything()).await.0;
    assert_eq!(once, send(folder.path(), everything()).await.0);
}
