//! From the first start to the last trace: stop, destroy, owners that die, many jails.

#![allow(clippy::unwrap_used, clippy::panic, reason = "only tests use the helpers")]

mod common;

use common::{helper, marker, one, run, runs, said, sh, state, until};
use leasehold_authority::jail::{Bounds, Command, Exit, Isolation, JailError, Jails, Standing};
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Stdio};

#[test]
fn all_of_this_holds_for_an_ordinary_user() {
    common::again_as_ordinary_user();
}

/// A host that has made the jail and started something in it.
fn host(state: &Path, name: &str, mark: &str) -> Child {
    let mut child = std::process::Command::new(helper())
        .args([state.to_str().unwrap(), name, mark])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "held\n");
    until("the command of the other host runs", || runs(mark));
    child
}

fn end_by_force(mut host: Child) {
    host.kill().unwrap();
    host.wait().unwrap();
}

/// Control groups of jails in this state directory.
fn groups(name: &str) -> Vec<std::path::PathBuf> {
    fn walk(directory: &Path, name: &str, depth: usize, found: &mut Vec<std::path::PathBuf>) {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if entry.file_name().to_string_lossy().ends_with(name) {
                    found.push(entry.path());
                } else if depth < 5 {
                    walk(&entry.path(), name, depth + 1, found);
                }
            }
        }
    }
    let mut found = Vec::new();
    walk(Path::new("/sys/fs/cgroup"), name, 0, &mut found);
    found
}

fn mounts(state: &Path) -> usize {
    let text = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    text.lines().filter(|line| line.contains(state.to_str().unwrap())).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn creating_again_finds_the_running_jail() {
    let state = state();
    let jails = one(&state).await;
    said(&jails, "echo here > /dev/shm/here").await;
    jails.create("one", Bounds::default(), &Isolation::default()).await.unwrap();
    assert_eq!(said(&jails, "cat /dev/shm/here").await, "here\n");
    assert_eq!(jails.list().await.unwrap(), [("one".to_owned(), Standing::Running)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn creating_at_once_from_many_sides_makes_one_jail() {
    let state = state();
    let jails = std::sync::Arc::new(Jails::open(state.path()).unwrap());
    let all: Vec<_> = (0..20)
        .map(|_| {
            let jails = std::sync::Arc::clone(&jails);
            tokio::spawn(async move { jails.create("one", Bounds::default(), &Isolation::default()).await })
        })
        .collect();
    for each in all {
        each.await.unwrap().unwrap();
    }
    assert_eq!(jails.list().await.unwrap().len(), 1);
    said(&jails, "true").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_ends_every_process_and_keeps_the_files() {
    let state = state();
    let jails = one(&state).await;
    let mark = marker("stop");
    let script = "echo w > /workspace/f; echo h > /home/f; echo t > /tmp/f; trap '' TERM; setsid sh -c 'while :; do sleep 9; done' \"$0\" > /dev/null 2>&1 &";
    run(&jails, Command::new(["sh", "-c", script, &mark])).await.unwrap();
    until("the background process runs", || runs(&mark));
    jails.stop("one").await.unwrap();
    assert!(!runs(&mark));
    assert_eq!(jails.find("one").await.unwrap(), Some(Standing::Stopped));
    assert!(matches!(run(&jails, Command::new(["true"])).await, Err(JailError::Stopped { .. })));
    jails.stop("one").await.unwrap();
    jails.create("one", Bounds::default(), &Isolation::default()).await.unwrap();
    assert_eq!(said(&jails, "cat /workspace/f /home/f /tmp/f; echo more >> /workspace/f").await, "w\nh\nt\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_in_the_middle_of_a_command_is_told_to_who_waits_for_it() {
    let state = state();
    let jails = one(&state).await;
    let command = sh("echo up; sleep 100000");
    let (output, mut up) = tokio::io::duplex(64);
    let running = jails.run("one", &command, tokio::io::empty(), output, tokio::io::sink());
    let stopping = async {
        tokio::io::AsyncReadExt::read_exact(&mut up, &mut [0; 3]).await.unwrap();
        jails.stop("one").await.unwrap();
    };
    let (result, ()) = tokio::join!(running, stopping);
    assert!(matches!(result, Err(JailError::Ended { .. })), "{result:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn destroying_leaves_no_process_mount_group_or_file() {
    let state = state();
    let jails = Jails::open(state.path()).unwrap();
    let mark = marker("destroy");
    let name = format!("j-{mark}");
    let bounds = Bounds { memory_bytes: Some(1 << 28), processes: Some(100), ..Bounds::default() };
    jails.create(&name, bounds, &Isolation::default()).await.unwrap();
    let script = "umask 777; mkdir -p a/b/c; echo x > a/f 2>/dev/null; mkfifo p; ln -s /etc l; chmod 000 a; setsid sh -c 'while :; do sleep 9; done' \"$0\" > /dev/null 2>&1 &";
    let command = Command::new(["sh", "-c", script, &mark]);
    jails.run(&name, &command, tokio::io::empty(), tokio::io::sink(), tokio::io::sink()).await.unwrap();
    until("the background process runs", || runs(&mark));
    assert_eq!(mounts(state.path()), 0, "a mount of the jail is seen by the host");
    assert!(jails.destroy(&name).await.unwrap());
    assert!(!runs(&mark));
    assert_eq!(groups(&name), Vec::<std::path::PathBuf>::new());
    assert_eq!(std::fs::read_dir(state.path()).unwrap().count(), 0);
    assert!(!jails.destroy(&name).await.unwrap());
    assert_eq!(jails.find(&name).await.unwrap(), None);
    assert!(matches!(jails.stop(&name).await, Err(JailError::Missing { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_jails_come_and_go_and_leave_nothing() {
    let state = state();
    let jails = Jails::open(state.path()).unwrap();
    let handles = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let bounds = Bounds { processes: Some(100), ..Bounds::default() };
    let mark = marker("cycles");
    let mut before = 0;
    for round in 0..200 {
        let name = format!("c{round}-{mark}");
        jails.create(&name, bounds, &Isolation::default()).await.unwrap();
        let command = Command::new(["sh", "-c", "sleep 100000 & exit 5", &mark]);
        let exit = jails.run(&name, &command, tokio::io::empty(), tokio::io::sink(), tokio::io::sink()).await;
        assert_eq!(exit.unwrap(), Exit::Exited(5));
        assert!(jails.destroy(&name).await.unwrap());
        if round == 20 {
            before = handles();
        }
    }
    assert!(!runs(&mark));
    assert_eq!(groups(&mark), Vec::<std::path::PathBuf>::new());
    assert_eq!(std::fs::read_dir(state.path()).unwrap().count(), 0);
    // Other tests of this process open some at the same time; a leak would be hundreds.
    assert!(handles() < before + 100, "{before} handles became {}", handles());
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_a_jail_survives_its_value() {
    let state = state();
    let mark = marker("value");
    let jails = one(&state).await;
    run(
        &jails,
        Command::new(["sh", "-c", "sh -c 'while :; do sleep 9; done' \"$0\" > /dev/null 2>&1 &", &mark]),
    )
    .await
    .unwrap();
    drop(jails);
    assert!(!runs(&mark));
    assert_eq!(common::jails(&state).find("one").await.unwrap(), Some(Standing::Stopped));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_a_jail_survives_its_host_ended_by_force() {
    let state = state();
    for round in 0..5 {
        let mark = marker("killed");
        end_by_force(host(state.path(), "one", &mark));
        // The jail ends by its own doing, without anybody looking after it.
        until("nothing of the jail runs any more", || !runs(&mark));
        assert_eq!(mounts(state.path()), 0, "round {round}");
    }
    let jails = common::jails(&state);
    assert_eq!(jails.reap().await.unwrap(), ["one"]);
    assert_eq!(jails.reap().await.unwrap(), Vec::<String>::new());
    assert_eq!(jails.find("one").await.unwrap(), Some(Standing::Stopped));
    jails.create("one", Bounds::default(), &Isolation::default()).await.unwrap();
    said(&jails, "true").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_dead_host_left_can_be_reaped_started_stopped_and_destroyed_at_once() {
    for what in ["reap", "create", "stop", "destroy"] {
        let state = state();
        let mark = marker(what);
        let name = format!("left-{mark}");
        end_by_force(host(state.path(), &name, &mark));
        let jails = common::jails(&state);
        match what {
            "reap" => assert_eq!(jails.reap().await.unwrap(), [name.as_str()]),
            "create" => {
                jails.create(&name, Bounds::default(), &Isolation::default()).await.unwrap();
            }
            "stop" => jails.stop(&name).await.unwrap(),
            _ => assert!(jails.destroy(&name).await.unwrap()),
        }
        // Not "soon": when the call is over, all of it is gone.
        assert!(!runs(&mark), "{what}");
        jails.destroy(&name).await.unwrap();
        assert_eq!(groups(&name), Vec::<std::path::PathBuf>::new());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_jail_of_a_live_host_is_left_alone() {
    let state = state();
    let mark = marker("live");
    let other = host(state.path(), "one", &mark);
    let jails = common::jails(&state);
    assert_eq!(jails.find("one").await.unwrap(), Some(Standing::Running));
    assert_eq!(jails.reap().await.unwrap(), Vec::<String>::new());
    let busy = |error| {
        assert!(matches!(error, JailError::Busy { owner, .. } if owner == other.id() as i32), "{error}")
    };
    busy(jails.create("one", Bounds::default(), &Isolation::default()).await.err().unwrap());
    busy(jails.stop("one").await.unwrap_err());
    busy(jails.destroy("one").await.unwrap_err());
    busy(run(&jails, Command::new(["true"])).await.err().unwrap());
    assert!(runs(&mark));
    // Another jail of the same directory is nobody's business.
    jails.create("two", Bounds::default(), &Isolation::default()).await.unwrap();
    end_by_force(other);
    assert!(jails.destroy("one").await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_half_deleted_jail_is_finished_by_the_next_reaping() {
    let state = state();
    let gone = state.path().join(".gone.0123456789abcdef");
    std::fs::create_dir_all(gone.join("files/workspace/a/b")).unwrap();
    std::fs::write(gone.join("files/workspace/a/b/c"), "x").unwrap();
    let jails = common::jails(&state);
    jails.reap().await.unwrap();
    assert!(!gone.exists());
}

/// In a user namespace of one user, as `unshare -r` and rootless containers have it, the first user is called
/// root and may not act as any other.
#[test]
fn a_root_that_is_none_outside_makes_jails_as_the_ordinary_user_it_is() {
    let state = state();
    let mark = marker("rootless");
    let mut host = std::process::Command::new("unshare")
        .args(["-r", "--"])
        .arg(helper())
        .args([state.path().to_str().unwrap(), "one", &mark])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(host.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "held\n");
    host.kill().unwrap();
    host.wait().unwrap();
    until("nothing of the jail runs any more", || !runs(&mark));
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_could_be_paths_are_refused() {
    let state = state();
    let jails = common::jails(&state);
    let long = "x".repeat(201);
    for name in ["", ".", "..", "a/b", "../x", "a b", "a\nb", ".gone.x", "ü", &long] {
        let error = jails.create(name, Bounds::default(), &Isolation::default()).await.err().unwrap();
        assert!(matches!(error, JailError::Name { .. }), "{name}: {error}");
        assert!(matches!(jails.destroy(name).await, Err(JailError::Name { .. })));
    }
    let longest = "x".repeat(200);
    jails.create(&longest, Bounds::default(), &Isolation::default()).await.unwrap();
    assert!(jails.destroy(&longest).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_directory_of_others_is_refused() {
    let state = state();
    let open = state.path().join("open");
    std::fs::create_dir(&open).unwrap();
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o750)).unwrap();
    assert!(matches!(Jails::open(&open), Err(JailError::UnsafeRoot { .. })));
    let link = state.path().join("link");
    std::os::unix::fs::symlink(state.path(), &link).unwrap();
    assert!(matches!(Jails::open(&link), Err(JailError::UnsafeRoot { .. })));
    if common::is_root() {
        let strange = state.path().join("strange");
        std::fs::create_dir(&strange).unwrap();
        std::fs::set_permissions(&strange, std::fs::Permissions::from_mode(0o700)).unwrap();
        std::os::unix::fs::chown(&strange, Some(12345), None).unwrap();
        assert!(matches!(Jails::open(&strange), Err(JailError::UnsafeRoot { .. })));
        assert!(matches!(
            Jails::open(Path::new("/usr/lib/leasehold-test")),
            Err(JailError::UnsafeRoot { .. })
        ));
    }
}
