//! Runs `leasehold run` in a place of its own, and looks for what it left.

use super::Place;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Set in a process of tests that was started again as an ordinary user: where its copy of the binary is.
const ORDINARY: &str = "LEASEHOLD_TEST_ORDINARY";

/// A place with an empty project.
pub(crate) fn place() -> Place {
    let place = Place::new();
    std::fs::create_dir(place.path().join("project")).unwrap();
    place
}

/// The binary that is tested.
pub(crate) fn binary() -> PathBuf {
    std::env::var_os(ORDINARY).map_or_else(|| env!("CARGO_BIN_EXE_leasehold").into(), PathBuf::from)
}

/// The binary in this place, ready for more arguments.
pub(crate) fn leasehold<A: AsRef<std::ffi::OsStr>>(place: &Place, arguments: &[A]) -> Command {
    within(place, Command::new(binary()), arguments)
}

/// A command of this place; the first arguments are the program's own.
pub(crate) fn within<A: AsRef<std::ffi::OsStr>>(
    place: &Place,
    mut command: Command,
    arguments: &[A],
) -> Command {
    command.args(arguments).current_dir(place.path().join("project")).stdin(Stdio::null());
    command.env("XDG_CACHE_HOME", place.cache()).env("XDG_STATE_HOME", place.path().join("state"));
    command
}

/// Runs it; exit code, standard output and standard error.
pub(crate) fn ran<A: AsRef<std::ffi::OsStr>>(place: &Place, arguments: &[A]) -> (i32, String, String) {
    outcome(&mut leasehold(place, arguments))
}

pub(crate) fn outcome(command: &mut Command) -> (i32, String, String) {
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

/// Starts a command that says so and then waits, and gives it back once it waits.
pub(crate) fn waiting(place: &Place, mark: &str) -> Child {
    let script = "echo ready; while :; do sleep 1; done";
    let mut child = leasehold(place, &["run", "--no-sync", "--", "sh", "-c", script, mark])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    child
}

/// A text that no other test and no other run uses, to know a process by.
pub(crate) fn mark(test: &str) -> String {
    format!("{test}-{}-{:x}", std::process::id(), std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos())
}

/// Whether a process on this machine has this argument; one that ended and was not yet taken away has none.
pub(crate) fn alive(mark: &str) -> bool {
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| std::fs::read(entry.ok()?.path().join("cmdline")).ok())
        .any(|line| line.split(|byte| *byte == 0).any(|argument| argument == mark.as_bytes()))
}

/// Waits until something is so; the bound is only for a test that would otherwise hang.
pub(crate) fn until(what: &str, mut so: impl FnMut() -> bool) {
    let start = std::time::Instant::now();
    while !so() {
        assert!(start.elapsed().as_secs() < 60, "never: {what}");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

/// Nothing of any lease of this place is left: no process with the mark, no mount, control group, jail
/// directory or active lease, and nothing that is not finished.
pub(crate) fn nothing_left(place: &Place, mark: &str) {
    assert!(!alive(mark), "a process is left");
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    let state = place.path().join("state");
    assert!(!mounts.contains(state.join("leasehold/jails").to_str().unwrap()), "a mount is left");
    assert_eq!(groups(place), Vec::<PathBuf>::new(), "a control group is left");
    for directory in ["leasehold/jails", "leasehold/rescued"] {
        let left: Vec<_> = std::fs::read_dir(state.join(directory)).into_iter().flatten().flatten().collect();
        assert!(left.is_empty(), "left: {left:?}");
    }
    assert_eq!(scratch(&place.path().join("project")), Vec::<String>::new(), "unfinished files are left");
    // A lease that was not ended would be ended now, and told.
    let reconciled = ran(place, &["reconcile"]);
    assert_eq!(reconciled, (0, String::new(), String::new()), "a lease is left");
}

/// Control groups of jails of this place: they carry the file system and number of the jails' directory.
pub(crate) fn groups(place: &Place) -> Vec<PathBuf> {
    use std::os::unix::fs::MetadataExt as _;
    let Ok(jails) = std::fs::metadata(place.path().join("state/leasehold/jails")) else { return Vec::new() };
    let prefix = format!("leasehold-{:x}-{:x}-", jails.dev(), jails.ino());
    let mut found = Vec::new();
    let mut open = vec![(PathBuf::from("/sys/fs/cgroup"), 0)];
    while let Some((directory, depth)) = open.pop() {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            if entry.file_name().to_string_lossy().starts_with(&prefix) {
                found.push(entry.path());
            } else if depth < 5 {
                open.push((entry.path(), depth + 1));
            }
        }
    }
    found
}

/// Files of a transfer that was not finished, which are named after this program.
fn scratch(project: &Path) -> Vec<String> {
    let names = std::fs::read_dir(project).into_iter().flatten().flatten();
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(".leasehold")).collect()
}

pub(crate) fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata("/proc/self").unwrap().uid() == 0
}

/// Runs every test of this binary again as an ordinary user, when this one is root.
pub(crate) fn again_as_ordinary_user() {
    use std::os::unix::process::CommandExt as _;
    if !is_root() || std::env::var_os(ORDINARY).is_some() {
        return;
    }
    let place = tempfile::Builder::new().prefix("leasehold-ordinary-").tempdir().unwrap();
    std::os::unix::fs::chown(place.path(), Some(65534), Some(65534)).unwrap();
    // The binaries may lie where an ordinary user cannot look.
    let copy = |from: &Path, to: &str| {
        let to = place.path().join(to);
        std::fs::copy(from, &to).unwrap();
        to
    };
    let tests = copy(&std::env::current_exe().unwrap(), "tests");
    let binary = copy(&binary(), "leasehold");
    let output = Command::new(tests)
        .env(ORDINARY, binary)
        .env("TMPDIR", place.path())
        .env("HOME", place.path())
        .current_dir(place.path())
        .gid(65534)
        .uid(65534)
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "as an ordinary user: {}", String::from_utf8_lossy(&said));
}
