//! What every test of jails needs.

#![allow(dead_code, reason = "each test file uses a part")]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "only tests use this")]

use leasehold_authority::jail::{Bounds, Command, Exit, Isolation, JailError, Jails};
use std::path::Path;
use tempfile::TempDir;

/// Set in a test process that was started again as an ordinary user.
pub(crate) const ORDINARY: &str = "LEASEHOLD_TEST_ORDINARY";

/// A state directory of its own, readable for nobody else.
pub(crate) fn state() -> TempDir {
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    tempfile::Builder::new().prefix("leasehold-jail-").permissions(private).tempdir().unwrap()
}

pub(crate) fn jails(state: &TempDir) -> Jails {
    Jails::open(state.path()).unwrap()
}

/// A jail called `one` with nothing bounded.
pub(crate) async fn one(state: &TempDir) -> Jails {
    let jails = jails(state);
    jails.create("one", Bounds::default(), &Isolation::default()).await.unwrap();
    jails
}

pub(crate) struct Ran {
    pub(crate) exit: Exit,
    pub(crate) output: String,
    pub(crate) error: String,
}

pub(crate) async fn run(jails: &Jails, command: Command) -> Result<Ran, JailError> {
    run_with(jails, command, b"").await
}

pub(crate) async fn run_with(jails: &Jails, command: Command, input: &[u8]) -> Result<Ran, JailError> {
    let (mut output, mut error) = (Vec::new(), Vec::new());
    let exit = jails.run("one", &command, input, &mut output, &mut error).await?;
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    Ok(Ran { exit, output: text(&output), error: text(&error) })
}

pub(crate) fn sh(script: &str) -> Command {
    Command::new(["sh", "-c", script])
}

/// Runs a script in the jail `one` and returns what it wrote; it must end well.
pub(crate) async fn said(jails: &Jails, script: &str) -> String {
    let ran = run(jails, sh(script)).await.unwrap();
    assert_eq!(ran.exit, Exit::Exited(0), "{script}: {}{}", ran.output, ran.error);
    ran.output
}

/// Whether a process with this text in its arguments runs anywhere on the machine. One that ended and was
/// not yet taken away by whoever adopted it does not count.
pub(crate) fn runs(marker: &str) -> bool {
    std::fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let read = |file: &str| std::fs::read(entry.path().join(file)).unwrap_or_default();
        let arguments = read("cmdline");
        let own = entry.file_name().to_str() == Some(&std::process::id().to_string());
        !own && arguments.windows(marker.len()).any(|part| part == marker.as_bytes())
    })
}

/// Waits until something is so. The bound is only for a test that would otherwise hang.
pub(crate) fn until(what: &str, mut so: impl FnMut() -> bool) {
    let start = std::time::Instant::now();
    while !so() {
        assert!(start.elapsed().as_secs() < 60, "never: {what}");
        std::thread::yield_now();
    }
}

/// A text no other test and no other run uses.
pub(crate) fn marker(test: &str) -> String {
    format!("{test}-{}-{:x}", std::process::id(), std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos())
}

/// Runs every test of this binary again as an ordinary user, when this one is root.
pub(crate) fn again_as_ordinary_user() {
    use std::os::unix::process::CommandExt as _;
    if !is_root() || std::env::var_os(ORDINARY).is_some() {
        eprintln!("this already is an ordinary user, or the second run");
        return;
    }
    let place = tempfile::Builder::new().prefix("leasehold-ordinary-").tempdir().unwrap();
    std::os::unix::fs::chown(place.path(), Some(65534), Some(65534)).unwrap();
    // The binary may lie where an ordinary user cannot look; so may the helper beside it.
    let copy = |from: &Path, to: &str| {
        let to = place.path().join(to);
        std::fs::copy(from, &to).unwrap();
        to
    };
    let binary = copy(&std::env::current_exe().unwrap(), "tests");
    copy(&helper(), "hold");
    let status = std::process::Command::new(binary)
        .env(ORDINARY, place.path().join("hold"))
        .env("TMPDIR", place.path())
        .env("HOME", place.path())
        .current_dir(place.path())
        .gid(65534)
        .uid(65534)
        .status()
        .unwrap();
    assert!(status.success(), "as an ordinary user: {status}");
}

pub(crate) fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata("/proc/self").unwrap().uid() == 0
}

/// The example `hold`: a host that makes a jail and waits.
pub(crate) fn helper() -> std::path::PathBuf {
    if let Some(copy) = std::env::var_os(ORDINARY) {
        return copy.into();
    }
    let mut path = std::env::current_exe().unwrap();
    path.pop();
    path.pop();
    path.join("examples").join("hold")
}
