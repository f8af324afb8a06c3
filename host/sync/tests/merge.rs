//! What comes back, put into a folder that changed meanwhile.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod common;

use common::{everything, file, receive, send, snapshot};
use leasehold_sync::{Baseline, Conflict, MergeError, MergeReport, Received, WalkOptions, merge};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A folder on the host and its copy in a sandbox.
struct Trip {
    host: tempfile::TempDir,
    sandbox: tempfile::TempDir,
    baseline: Arc<Baseline>,
}

impl Trip {
    /// Fills the host's folder, sends it, and unpacks it in the sandbox with GNU tar.
    async fn out(options: WalkOptions, fill: impl FnOnce(&Path)) -> Self {
        let (host, sandbox) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fill(host.path());
        let (archive, baseline) = send(host.path(), options).await;
        let scratch = tempfile::tempdir().unwrap();
        fs::write(scratch.path().join("a.tar"), archive).unwrap();
        let mut tar = std::process::Command::new("tar");
        tar.args(["-xpf", "a.tar", "-C"]).arg(sandbox.path()).current_dir(&scratch);
        assert!(tar.status().unwrap().success());
        Self { host, sandbox, baseline }
    }

    fn host(&self, path: &str) -> PathBuf {
        self.host.path().join(path)
    }

    fn sandbox(&self, path: &str) -> PathBuf {
        self.sandbox.path().join(path)
    }

    async fn received(&self) -> Received {
        let (archive, _) = send(self.sandbox.path(), everything()).await;
        receive(&archive, self.host.path(), Some(self.baseline.clone())).await.unwrap()
    }

    async fn back(&self) -> MergeReport {
        merge(self.baseline.clone(), self.received().await, self.host.path()).await.unwrap()
    }

    fn text(&self, path: &str) -> String {
        fs::read_to_string(self.host(path)).unwrap()
    }
}

fn conflict(path: &str, aside: &str) -> Conflict {
    Conflict { path: path.into(), aside: Some(aside.into()) }
}

/// What can be at a path; every state of three sides is one of these.
const STATES: [&str; 7] = ["none", "one", "two", "one as a program", "directory", "link", "other link"];

fn put(path: &Path, state: &str) {
    match state {
        "one" | "two" => file(path, state, 0o644),
        "one as a program" => file(path, "one", 0o755),
        "directory" => fs::create_dir(path).unwrap(),
        "link" => symlink("target", path).unwrap(),
        "other link" => symlink("elsewhere", path).unwrap(),
        _ => {}
    }
}

fn take(path: &Path) {
    if fs::remove_file(path).is_err() {
        let _ = fs::remove_dir(path);
    }
}

#[tokio::test]
async fn every_combination_of_three_states_merges_by_the_rule() {
    let combinations = || {
        STATES.iter().flat_map(|sent| {
            STATES.iter().flat_map(move |back| STATES.iter().map(move |host| [*sent, *back, *host]))
        })
    };
    let name = |states: [&str; 3]| states.join("--").replace(' ', "_");
    let trip = Trip::out(everything(), |folder| {
        combinations().for_each(|states| put(&folder.join(name(states)), states[0]));
    });
    let trip = trip.await;
    for states in combinations() {
        for (path, state) in [(trip.sandbox(&name(states)), states[1]), (trip.host(&name(states)), states[2])]
        {
            take(&path);
            put(&path, state);
        }
    }
    let (mut expected, mut wanted) = (BTreeMap::new(), MergeReport::default());
    let model = tempfile::tempdir().unwrap();
    for states in combinations() {
        let [sent, back, host] = states;
        let path = PathBuf::from(name(states));
        let mut after = host;
        if sent == back || host == back {
        } else if host == sent {
            after = back;
            let list = match (sent, back) {
                ("none", _) => &mut wanted.added,
                (_, "none") => &mut wanted.deleted,
                _ => &mut wanted.changed,
            };
            list.push(path.clone());
        } else {
            let aside = (back != "none").then(|| PathBuf::from(name(states) + ".from-sandbox"));
            if let Some(aside) = &aside {
                put(&model.path().join(aside), back);
            }
            wanted.conflicts.push(Conflict { path: path.clone(), aside });
        }
        put(&model.path().join(&path), after);
        expected.insert(path, after);
    }
    assert_eq!(expected.len(), 343);
    let mut report = trip.back().await;
    report.conflicts.sort_by(|one, other| one.path.cmp(&other.path));
    report.deleted.sort();
    for list in [&mut wanted.added, &mut wanted.changed, &mut wanted.deleted] {
        list.sort();
    }
    wanted.conflicts.sort_by(|one, other| one.path.cmp(&other.path));
    assert_eq!(report, wanted);
    assert_eq!(snapshot(trip.host.path()), snapshot(model.path()));
}

#[tokio::test]
async fn what_the_sandbox_did_not_change_is_not_touched() {
    let trip = Trip::out(everything(), |folder| {
        file(folder.join("same"), "same", 0o644);
        file(folder.join("d/touched"), "touched", 0o644);
        file(folder.join("mode"), "mode", 0o644);
    });
    let trip = trip.await;
    let file = fs::File::options().write(true).open(trip.sandbox("d/touched")).unwrap();
    file.set_modified(std::time::UNIX_EPOCH).unwrap();
    fs::set_permissions(trip.sandbox("mode"), fs::Permissions::from_mode(0o700)).unwrap();
    let identity = |path: &str| {
        let metadata = fs::metadata(trip.host(path)).unwrap();
        (metadata.ino(), metadata.mtime(), metadata.mtime_nsec())
    };
    let paths = ["same", "d/touched", "mode", "d"];
    let before = paths.map(identity);
    let report = trip.back().await;
    assert_eq!(report.changed, [PathBuf::from("mode")]);
    assert_eq!(report.len(), 1);
    assert_eq!(paths.map(identity), before);
    assert_eq!(fs::metadata(trip.host("mode")).unwrap().mode() & 0o7777, 0o700);
}

#[tokio::test]
async fn a_merge_without_changes_writes_nothing_not_even_a_lock() {
    let trip = Trip::out(everything(), |folder| file(folder.join("a"), "a", 0o644)).await;
    let received = {
        let (archive, _) = send(trip.sandbox.path(), everything()).await;
        let elsewhere = tempfile::tempdir().unwrap();
        receive(&archive, elsewhere.path(), None).await.unwrap()
    };
    let changed = || fs::metadata(trip.host.path()).unwrap().ctime_nsec();
    let before = changed();
    assert!(merge(trip.baseline.clone(), received, trip.host.path()).await.unwrap().is_empty());
    assert_eq!(changed(), before);
}

#[tokio::test]
async fn deleted_directories_go_unless_the_host_put_something_in() {
    let trip = Trip::out(everything(), |folder| {
        file(folder.join("gone/deep/x"), "x", 0o644);
        file(folder.join("kept/deep/x"), "x", 0o644);
        file(folder.join("kept/edited"), "x", 0o644);
    });
    let trip = trip.await;
    for name in ["gone", "kept"] {
        fs::remove_dir_all(trip.sandbox(name)).unwrap();
    }
    file(trip.host("kept/deep/new"), "the host's", 0o644);
    file(trip.host("kept/edited"), "the host's", 0o644);
    let report = trip.back().await;
    assert_eq!(report.deleted, ["kept/deep/x", "gone/deep/x", "gone/deep", "gone"].map(PathBuf::from));
    assert_eq!(report.conflicts, [Conflict { path: "kept/edited".into(), aside: None }]);
    assert_eq!(trip.text("kept/deep/new"), "the host's");
    assert_eq!(trip.text("kept/edited"), "the host's");
}

#[tokio::test]
async fn a_directory_becomes_a_file_and_a_file_a_directory() {
    let trip = Trip::out(everything(), |folder| {
        file(folder.join("d/in/x"), "x", 0o644);
        file(folder.join("e/x"), "x", 0o644);
        file(folder.join("f"), "f", 0o644);
        file(folder.join("g"), "g", 0o644);
    });
    let trip = trip.await;
    for name in ["d", "e"] {
        fs::remove_dir_all(trip.sandbox(name)).unwrap();
        file(trip.sandbox(name), "now a file", 0o644);
    }
    for name in ["f", "g"] {
        fs::remove_file(trip.sandbox(name)).unwrap();
        file(trip.sandbox(name).join("in/x"), "now a directory", 0o644);
    }
    file(trip.host("e/new"), "the host's", 0o644);
    file(trip.host("g"), "the host's", 0o644);
    let report = trip.back().await;
    assert_eq!(report.conflicts, [conflict("e", "e.from-sandbox"), conflict("g", "g.from-sandbox")]);
    assert_eq!(report.changed, ["d", "f"].map(PathBuf::from));
    assert_eq!(report.added, ["f/in", "f/in/x"].map(PathBuf::from));
    assert_eq!(trip.text("d"), "now a file");
    assert_eq!(trip.text("f/in/x"), "now a directory");
    assert_eq!((trip.text("e/new"), trip.text("e.from-sandbox")), ("the host's".into(), "now a file".into()));
    assert_eq!(trip.text("g"), "the host's");
    assert_eq!(trip.text("g.from-sandbox/in/x"), "now a directory");
}

#[tokio::test]
async fn a_directory_the_host_made_a_link_is_not_gone_through() {
    let trip = Trip::out(everything(), |folder| {
        file(folder.join("d/changed"), "old", 0o644);
        file(folder.join("d/same"), "same", 0o644);
        file(folder.join("d/unwanted"), "old", 0o644);
    });
    let trip = trip.await;
    file(trip.sandbox("d/changed"), "new", 0o644);
    file(trip.sandbox("d/added"), "new", 0o644);
    fs::remove_file(trip.sandbox("d/unwanted")).unwrap();
    let outside = tempfile::tempdir().unwrap();
    fs::rename(trip.host("d"), outside.path().join("d")).unwrap();
    symlink(outside.path().join("d"), trip.host("d")).unwrap();
    let before = snapshot(outside.path());
    let report = trip.back().await;
    assert_eq!(snapshot(outside.path()), before);
    assert_eq!(report.conflicts, [conflict("d", "d.from-sandbox")]);
    assert_eq!(trip.text("d.from-sandbox/changed"), "new");
    assert!(!trip.host("d.from-sandbox/same").exists());
    assert_eq!(trip.text("d.from-sandbox/added"), "new");
    assert!(fs::symlink_metadata(trip.host("d")).unwrap().is_symlink());
}

#[tokio::test]
async fn a_directory_the_host_removed_is_made_again_for_what_is_new_in_it() {
    let trip = Trip::out(everything(), |folder| {
        fs::create_dir(folder.join("d")).unwrap();
        fs::set_permissions(folder.join("d"), fs::Permissions::from_mode(0o750)).unwrap();
    });
    let trip = trip.await;
    file(trip.sandbox("d/new"), "new", 0o644);
    fs::remove_dir(trip.host("d")).unwrap();
    assert_eq!(trip.back().await.added, [PathBuf::from("d/new")]);
    assert_eq!(fs::metadata(trip.host("d")).unwrap().mode() & 0o7777, 0o750);
}

#[tokio::test]
async fn modes_of_new_directories_come_last_so_that_closed_ones_can_be_filled() {
    let trip = Trip::out(everything(), |_| {}).await;
    file(trip.sandbox("d/in/x"), "x", 0o400);
    for (name, mode) in [("d/in", 0o555), ("d", 0o500)] {
        fs::set_permissions(trip.sandbox(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    trip.back().await;
    assert_eq!(snapshot(trip.host.path()), snapshot(trip.sandbox.path()));
    // Or nobody but root could tidy up.
    for path in ["d", "d/in"].into_iter().flat_map(|name| [trip.host(name), trip.sandbox(name)]) {
        fs::set_permissions(path, fs::Permissions::from_mode(0o700)).unwrap();
    }
}

#[tokio::test]
async fn what_was_left_out_on_the_way_there_does_not_come_back() {
    let trip = Trip::out(WalkOptions::default(), |folder| {
        file(folder.join(".gitignore"), "*.log\n", 0o644);
        file(folder.join("node_modules/x"), "the host's", 0o644);
        file(folder.join(".git/config"), "the host's", 0o644);
    });
    let trip = trip.await;
    for path in ["node_modules/x", "a/dist/x", ".git/hooks/pre-commit", "b.log", "wanted"] {
        file(trip.sandbox(path), "the sandbox's", 0o755);
    }
    let report = trip.back().await;
    assert_eq!(report.added, ["a", "wanted"].map(PathBuf::from));
    let left_out = [".git", "a/dist", "b.log", "node_modules"];
    assert_eq!(report.left_out, left_out.map(PathBuf::from));
    assert_eq!((report.conflicts.len(), report.deleted.len()), (0, 0));
    assert_eq!(trip.text("node_modules/x"), "the host's");
    assert!(!trip.host(".git/hooks").exists() && !trip.host("b.log").exists());
}

#[tokio::test]
async fn names_of_transfers_under_way_are_never_taken_from_an_archive() {
    let trip = Trip::out(everything(), |_| {}).await;
    let archive = common::Raw::default();
    let archive = archive.file(".leasehold-merge.lock", "x").file("d/.paperclip-upload.1/x", "x").end();
    let received = receive(&archive, trip.host.path(), None).await.unwrap();
    let report = merge(trip.baseline.clone(), received, trip.host.path()).await.unwrap();
    assert_eq!(report.added, [PathBuf::from("d")]);
    assert_eq!(report.left_out, [".leasehold-merge.lock", "d/.paperclip-upload.1"].map(PathBuf::from));
    assert_eq!(snapshot(trip.host.path()).len(), 1);
}

#[tokio::test]
async fn a_name_beside_that_is_taken_gets_a_number_and_a_second_run_adds_nothing() {
    let trip = Trip::out(everything(), |folder| file(folder.join("a"), "sent", 0o644)).await;
    file(trip.sandbox("a"), "the sandbox's", 0o644);
    file(trip.host("a"), "the host's", 0o644);
    file(trip.host("a.from-sandbox"), "of an earlier run", 0o644);
    for _ in 0..2 {
        assert_eq!(trip.back().await.conflicts, [conflict("a", "a.from-sandbox.2")]);
    }
    assert_eq!(trip.text("a.from-sandbox.2"), "the sandbox's");
    assert_eq!(fs::read_dir(trip.host.path()).unwrap().count(), 3);
}

#[tokio::test]
async fn a_second_run_after_a_whole_one_finds_everything_merged() {
    let trip = Trip::out(everything(), |folder| {
        file(folder.join("changed"), "old", 0o644);
        file(folder.join("deleted"), "old", 0o644);
    });
    let trip = trip.await;
    file(trip.sandbox("changed"), "new", 0o644);
    file(trip.sandbox("d/added"), "new", 0o644);
    fs::remove_file(trip.sandbox("deleted")).unwrap();
    assert_eq!(trip.back().await.len(), 4);
    let after = snapshot(trip.host.path());
    assert!(trip.back().await.is_empty());
    assert_eq!(snapshot(trip.host.path()), after);
}

#[tokio::test]
async fn merges_of_one_folder_wait_for_each_other_and_leave_no_lock() {
    let trip = Trip::out(everything(), |_| {}).await;
    let mut merges = Vec::new();
    for name in ["a", "b", "c", "d"] {
        file(trip.sandbox(name), name, 0o644);
        let (received, folder) = (trip.received().await, trip.host.path().to_owned());
        let baseline = trip.baseline.clone();
        merges.push(tokio::spawn(async move { merge(baseline, received, &folder).await }));
    }
    let mut added = 0;
    for merge in merges {
        added += merge.await.unwrap().unwrap().added.len();
    }
    assert_eq!(added, 4);
    assert_eq!(fs::read_dir(trip.host.path()).unwrap().count(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_merge_that_never_ends_is_waited_for_half_a_minute() {
    let trip = Trip::out(everything(), |_| {}).await;
    file(trip.sandbox("a"), "a", 0o644);
    let received = trip.received().await;
    let lock = fs::File::create(trip.host(".leasehold-merge.lock")).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let start = tokio::time::Instant::now();
    let error = merge(trip.baseline.clone(), received, trip.host.path()).await.unwrap_err();
    assert!(matches!(error, MergeError::Busy { .. }), "{error}");
    assert_eq!(start.elapsed().as_secs(), 30);
    assert_eq!(fs::read_dir(trip.host.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn a_lock_left_by_a_dead_process_locks_nobody_out() {
    let trip = Trip::out(everything(), |_| {}).await;
    file(trip.sandbox("a"), "a", 0o644);
    file(trip.host(".leasehold-merge.lock"), "", 0o600);
    assert_eq!(trip.back().await.added, [PathBuf::from("a")]);
    assert!(!trip.host(".leasehold-merge.lock").exists());
}

#[tokio::test]
async fn a_path_that_cannot_be_merged_stops_the_merge_with_what_was_done() {
    let trip = Trip::out(everything(), |folder| file(folder.join("b"), "old", 0o644)).await;
    file(trip.sandbox("a"), "new", 0o644);
    fs::remove_file(trip.sandbox("b")).unwrap();
    let received = trip.received().await;
    // Staged content that somebody took away.
    file(trip.sandbox("z"), "new", 0o644);
    drop(received);
    let received = trip.received().await;
    fs::remove_file(received.path().join("z")).unwrap();
    let error = merge(trip.baseline.clone(), received, trip.host.path()).await.unwrap_err();
    let MergeError::Stopped { path, report, .. } = &error else { panic!("{error}") };
    assert_eq!(*path, trip.host("z"));
    assert_eq!(report.added, [PathBuf::from("a")]);
    assert_eq!((trip.text("a"), trip.text("b")), ("new".into(), "old".into()));
    assert!(error.to_string().ends_with("1 changes are in place; run again for the rest"), "{error}");
    assert_eq!(fs::read_dir(trip.host.path()).unwrap().count(), 2);
    assert_eq!(trip.back().await.added, [PathBuf::from("z")]);
}
