//! Out and in again, compared by a walker that knows nothing of the crate.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod common;

use common::{contents, everything, file, receive, send, snapshot};
use leasehold_sync::Timestamp;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, UNIX_EPOCH};

/// Sends a folder, takes it apart again, and compares disk with disk and manifest with manifest.
async fn same_after_the_trip(folder: &Path) {
    let (archive, baseline) = send(folder, everything()).await;
    let beside = tempfile::tempdir().unwrap();
    let received = receive(&archive, beside.path(), Some(baseline.clone())).await.unwrap();
    assert_eq!(contents(&received.path()), contents(folder));
    assert_eq!(*received.manifest(), baseline.manifest);
    drop(received);
    assert_eq!(fs::read_dir(beside.path()).unwrap().count(), 0);
}

fn odd_tree(folder: &Path) {
    file(folder.join("plain"), "content", 0o644);
    file(folder.join("secret"), "s", 0o600);
    file(folder.join("run.sh"), "#!/bin/sh\n", 0o755);
    file(folder.join("read-only"), "r", 0o444);
    file(folder.join("empty"), "", 0o644);
    file(folder.join("new\nline"), "n", 0o644);
    file(folder.join("quo\"te's $(x) `y` *"), "q", 0o644);
    file(folder.join("-rf"), "dash", 0o644);
    file(folder.join("back\\slash"), "b", 0o644);
    file(folder.join("trailing. "), "t", 0o644);
    file(folder.join("ünïcödé"), "u", 0o644);
    file(folder.join(OsStr::from_bytes(b"not utf-8 \xff\xfe")), "8", 0o644);
    let long = folder.join(OsStr::from_bytes(&[0xff; 200])).join("x".repeat(255));
    file(long, "long", 0o644);
    file(folder.join("p/".to_owned() + &"q".repeat(100)), "one more than a field", 0o644);
    file(folder.join("r".repeat(100)), "just a field", 0o644);
    fs::create_dir_all(folder.join("empty directory/inside")).unwrap();
    fs::create_dir(folder.join("d".repeat(100))).unwrap();
    fs::create_dir(folder.join("private")).unwrap();
    fs::set_permissions(folder.join("private"), fs::Permissions::from_mode(0o700)).unwrap();
    symlink("plain", folder.join("link")).unwrap();
    symlink("../plain", folder.join("p/up")).unwrap();
    symlink("nowhere\n/./x//", folder.join("dangling")).unwrap();
    symlink("t".repeat(300), folder.join("long link")).unwrap();
}

#[tokio::test]
async fn odd_names_modes_links_and_empty_directories_survive() {
    let folder = tempfile::tempdir().unwrap();
    odd_tree(folder.path());
    same_after_the_trip(folder.path()).await;
}

#[tokio::test]
async fn a_path_of_four_thousand_bytes_survives() {
    let folder = tempfile::tempdir().unwrap();
    let path = vec!["n".repeat(199); 20].join("/");
    file(folder.path().join(&path[..3980]), "far", 0o644);
    same_after_the_trip(folder.path()).await;
}

#[tokio::test]
async fn a_path_of_the_full_length_survives_and_one_byte_more_is_named() {
    let folder = tempfile::tempdir().unwrap();
    // By relative steps: the whole path of it is longer than a system call takes.
    let script = |last: usize| {
        let steps = format!("d={}; for i in $(seq 20); do mkdir -p $d; cd $d; done", "n".repeat(199));
        let name = "l".repeat(last);
        let command = format!("{steps}; touch {name}");
        assert!(Command::new("sh").args(["-c", &command]).current_dir(&folder).status().unwrap().success());
    };
    script(96);
    let (archive, baseline) = send(folder.path(), everything()).await;
    let longest = baseline.manifest.iter().map(|(path, _)| path.as_os_str().len()).max();
    assert_eq!(longest, Some(4096));
    let beside = tempfile::tempdir().unwrap();
    let received = receive(&archive, beside.path(), None).await.unwrap();
    assert_eq!(*received.manifest(), baseline.manifest);
    drop(received);
    assert_eq!(fs::read_dir(beside.path()).unwrap().count(), 0);
    script(97);
    let error = leasehold_sync::Tree::walk(folder.path(), everything()).unwrap_err().to_string();
    assert!(error.ends_with("has more than 4096 bytes; rename it or keep it out with a .gitignore line"));
}

#[tokio::test]
async fn a_large_sparse_file_survives_and_stays_sparse() {
    use std::os::unix::fs::{FileExt as _, MetadataExt as _};
    let folder = tempfile::tempdir().unwrap();
    let sparse = fs::File::create(folder.path().join("sparse")).unwrap();
    sparse.set_len(96 << 20).unwrap();
    sparse.write_all_at(b"needle", 50 << 20).unwrap();
    let (archive, baseline) = send(folder.path(), everything()).await;
    let beside = tempfile::tempdir().unwrap();
    let received = receive(&archive, beside.path(), None).await.unwrap();
    assert_eq!(*received.manifest(), baseline.manifest);
    assert_eq!(contents(&received.path()), contents(folder.path()));
    let blocks = fs::metadata(received.path().join("sparse")).unwrap().blocks();
    assert!(blocks * 512 < 8 << 20, "{blocks} blocks");
}

#[tokio::test]
async fn special_bits_are_left_behind_and_times_are_kept_to_the_nanosecond() {
    let folder = tempfile::tempdir().unwrap();
    file(folder.path().join("suid"), "x", 0o6755);
    let times = [UNIX_EPOCH + Duration::new((1 << 33) + 1, 7), UNIX_EPOCH - Duration::from_millis(1500)];
    for (name, time) in ["late", "early"].iter().zip(times) {
        file(folder.path().join(name), "x", 0o644);
        fs::File::options().write(true).open(folder.path().join(name)).unwrap().set_modified(time).unwrap();
    }
    let (archive, baseline) = send(folder.path(), everything()).await;
    let beside = tempfile::tempdir().unwrap();
    let received = receive(&archive, beside.path(), None).await.unwrap();
    assert_eq!(received.manifest().get(Path::new("suid")).unwrap().mode, 0o755);
    let early = received.manifest().get(Path::new("early")).unwrap().mtime;
    assert_eq!(early, Timestamp { seconds: -2, nanoseconds: 500_000_000 });
    assert_eq!(*received.manifest(), baseline.manifest);
    let modified =
        |at: &Path| ["late", "early"].map(|name| fs::metadata(at.join(name)).unwrap().modified().unwrap());
    assert_eq!(modified(&received.path()), modified(folder.path()));
    let mode = fs::metadata(received.path().join("suid")).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o755);
}

#[tokio::test]
async fn a_set_user_id_bit_in_an_archive_is_not_set() {
    let mut archive = common::Raw::default().file("a", "x").end();
    archive[100..108].copy_from_slice(b"0006777\0");
    archive[148..156].copy_from_slice(b"        ");
    let sum: u32 = archive[..512].iter().map(|byte| u32::from(*byte)).sum();
    archive[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let beside = tempfile::tempdir().unwrap();
    let received = receive(&archive, beside.path(), None).await.unwrap();
    assert!(snapshot(&received.path())[Path::new("a")].starts_with("file 777 "));
}

#[tokio::test]
async fn gnu_tar_reads_what_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    odd_tree(folder.path());
    let (archive, _) = send(folder.path(), everything()).await;
    let scratch = tempfile::tempdir().unwrap();
    fs::write(scratch.path().join("a.tar"), archive).unwrap();
    fs::create_dir(scratch.path().join("out")).unwrap();
    let tar =
        Command::new("tar").args(["-xpf", "a.tar", "-C", "out"]).current_dir(&scratch).output().unwrap();
    assert!(tar.status.success() && tar.stderr.is_empty(), "{}", String::from_utf8_lossy(&tar.stderr));
    assert_eq!(snapshot(&scratch.path().join("out")), snapshot(folder.path()));
}

#[tokio::test]
async fn what_gnu_tar_sends_in_any_format_is_received() {
    let folder = tempfile::tempdir().unwrap();
    odd_tree(folder.path());
    for format in ["pax", "gnu"] {
        let tar = Command::new("tar")
            .args(["-c", "--format", format, "--hard-dereference", "-C"])
            .args([folder.path(), Path::new(".")])
            .stdout(Stdio::piped())
            .output()
            .unwrap();
        let beside = tempfile::tempdir().unwrap();
        let received = receive(&tar.stdout, beside.path(), None).await.unwrap();
        assert_eq!(contents(&received.path()), contents(folder.path()), "{format}");
    }
}

#[tokio::test]
async fn directories_without_entries_are_implied_and_may_be_named_later() {
    let archive = common::Raw::default().file("a/b/c", "x").directory("a/b").end();
    let beside = tempfile::tempdir().unwrap();
    let received = receive(&archive, beside.path(), None).await.unwrap();
    let mode = |path: &str| received.manifest().get(Path::new(path)).unwrap().mode;
    assert_eq!((mode("a"), mode("a/b")), (0o755, 0o644));
}

/// A thing at a path: none is a directory, otherwise a file and its mode.
type Thing = Option<(Vec<u8>, u32)>;

fn trees() -> impl Strategy<Value = BTreeMap<Vec<Vec<u8>>, Thing>> {
    let byte = prop_oneof![any::<u8>(), Just(b'a'), Just(b'\n'), Just(b'"')];
    let byte = byte.prop_filter("neither slash nor zero", |byte| !matches!(byte, b'/' | 0));
    let name = prop::collection::vec(byte, 1..130).prop_filter("a real name", |name| {
        !matches!(name.as_slice(), b"." | b"..") && !name.starts_with(b".leasehold-")
    });
    let mode = prop_oneof![Just(0o600), Just(0o644), Just(0o755), Just(0o400), 0o400_u32..0o1000];
    let content = prop::collection::vec(any::<u8>(), 0..2000);
    let thing = prop::option::of((content, mode));
    prop::collection::btree_map(prop::collection::vec(name, 1..5), thing, 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(96) })]

    #[test]
    fn any_tree_comes_back_as_it_was(tree in trees()) {
        let folder = tempfile::tempdir().unwrap();
        for (names, thing) in tree {
            let path: PathBuf = names.iter().map(|name| OsStr::from_bytes(name)).collect();
            let path = folder.path().join(path);
            // A path through a file of another is not part of the tree.
            let _ = match thing {
                None => fs::create_dir_all(&path),
                Some((content, mode)) => fs::create_dir_all(path.parent().unwrap())
                    .and_then(|()| fs::write(&path, content))
                    .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(mode))),
            };
        }
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(same_after_the_trip(folder.path()));
    }
}
