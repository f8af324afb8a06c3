//! Real container engines, started for tests and benchmarks and ended with them.
//!
//! Each has a directory of its own for everything it keeps, and listens on a socket there. Its packages are
//! Debian's, and are installed where they are missing and this is allowed. Where an engine cannot be had the
//! caller is told why; with [`REQUIRED`] set that is a failure.

mod client;
mod image;
mod packages;
mod provider;

pub use client::{Answer, call};
pub use image::IMAGE;
pub use provider::Docker;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Set where an engine has to be there: a test that would be skipped fails instead.
pub const REQUIRED: &str = "LEASEHOLD_ENGINES_REQUIRED";

/// How long an engine may take to answer. Hit: it is taken for one that does not run here.
const READY: Duration = Duration::from_secs(60);

/// Files and processes that containers may have: machines differ in what they let an engine raise.
const FILES: &str = "nofile=8192:8192";
const PROCESSES: &str = "nproc=8192:8192";

/// Seconds for which Podman keeps two processes of every command that has ended; five minutes unless one says so.
const KEPT: u32 = 5;

/// Which engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Podman with crun, behind its own service.
    Podman,
    /// dockerd with containerd and runc.
    Docker,
}

/// An engine that runs. Dropping it ends it, and removes all it kept.
#[derive(Debug)]
pub struct Engine {
    kind: Kind,
    place: TempDir,
    service: Mutex<Option<Child>>,
}

impl Engine {
    /// The engine that tests of one process share; it ends with the last of them.
    ///
    /// # Errors
    /// Why it cannot be had here.
    pub fn shared(kind: Kind) -> Result<Arc<Engine>, String> {
        static PODMAN: Mutex<Weak<Engine>> = Mutex::new(Weak::new());
        static DOCKER: Mutex<Weak<Engine>> = Mutex::new(Weak::new());
        let known = match kind {
            Kind::Podman => &PODMAN,
            Kind::Docker => &DOCKER,
        };
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(engine) = known.upgrade() {
            return Ok(engine);
        }
        let engine = Arc::new(Engine::start(kind)?);
        *known = Arc::downgrade(&engine);
        Ok(engine)
    }

    /// An engine of the caller's own, with the image [`IMAGE`].
    ///
    /// # Errors
    /// Why it cannot be had here.
    pub fn start(kind: Kind) -> Result<Engine, String> {
        Engine::start_on(kind, None)
    }

    /// The same with a disk of so many MiB, in memory.
    ///
    /// # Errors
    /// Why it cannot be had here.
    pub fn start_small(kind: Kind, mebibytes: u32) -> Result<Engine, String> {
        Engine::start_on(kind, Some(mebibytes))
    }

    fn start_on(kind: Kind, disk: Option<u32>) -> Result<Engine, String> {
        packages::ready(kind)?;
        // Short: the path of a socket has room for a hundred bytes.
        let place = tempfile::Builder::new().prefix("lh-engine-").tempdir().map_err(|e| e.to_string())?;
        let engine = Engine { kind, place, service: Mutex::new(None) };
        if let Some(mebibytes) = disk {
            let root = engine.place.path().join("root");
            std::fs::create_dir(&root).map_err(|error| error.to_string())?;
            let mut mount = Command::new("mount");
            mount.args(["-t", "tmpfs", "-o", &format!("size={mebibytes}m"), "tmpfs"]).arg(&root);
            let mounted = mount.status().map_err(|error| error.to_string())?;
            if !mounted.success() {
                return Err("a disk in memory cannot be mounted here".into());
            }
        }
        engine.begin()?;
        image::import(&engine)?;
        Ok(engine)
    }

    /// Which engine it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Where it listens.
    pub fn socket(&self) -> PathBuf {
        self.place.path().join("engine.sock")
    }

    /// Asks it something over its own interface.
    pub fn ask(&self, method: &str, path: &str, body: Option<&serde_json::Value>) -> Answer {
        let body = body.map(|body| body.to_string().into_bytes());
        call(&self.socket(), method, path, "application/json", body.as_deref().unwrap_or_default())
            .unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    /// Ids of the containers it has, in whatever state, that carry the label of an environment.
    pub fn containers(&self, environment: &str) -> Vec<String> {
        let filters = format!("%7B%22label%22%3A%5B%22leasehold.environment%3D{environment}%22%5D%7D");
        let answer = self.ask("GET", &format!("/v1.41/containers/json?all=true&filters={filters}"), None);
        assert_eq!(answer.status, 200, "{}", answer.text());
        let listed: Vec<serde_json::Value> = serde_json::from_slice(&answer.body).expect("a list");
        listed.iter().filter_map(|one| Some(one["Id"].as_str()?.to_owned())).collect()
    }

    /// Kills it as a crash would: without a word, and its containers go on.
    pub fn crash(&self) {
        let mut service = self.service.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mut child) = service.take() {
            // The child is a shell's successor or the engine itself; both are killed by their own id.
            child.kill().expect("it runs");
            child.wait().expect("it ran");
        }
    }

    /// Starts it again after a crash.
    pub fn begin_again(&self) {
        self.begin().unwrap_or_else(|why| panic!("the engine does not start again: {why}"));
    }

    /// Ends the processes that still watch what has ended. They name this engine's own directory, and what they
    /// have started meanwhile does too.
    fn end_what_watches(&self) {
        let place = self.place.path().as_os_str().as_encoded_bytes();
        let watches = |entry: &std::fs::DirEntry| {
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            line.windows(place.len()).any(|part| part == place)
        };
        for _ in 0..5 {
            let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
            let found: Vec<_> = all.filter(|entry| watches(entry)).map(|entry| entry.file_name()).collect();
            if found.is_empty() {
                return;
            }
            let _ = Command::new("kill").arg("-KILL").args(found).stderr(Stdio::null()).status();
        }
    }

    fn begin(&self) -> Result<(), String> {
        let log = File::create(self.place.path().join("log")).map_err(|error| error.to_string())?;
        let _ = std::fs::remove_file(self.socket());
        let mut command = match self.kind {
            Kind::Podman => podman(self.place.path(), &self.socket())?,
            Kind::Docker => docker(self.place.path(), &self.socket()),
        };
        let again = log.try_clone().map_err(|error| error.to_string())?;
        command.current_dir(self.place.path()).stdin(Stdio::null()).stdout(log).stderr(again);
        let mut child = command.spawn().map_err(|error| format!("{command:?}: {error}"))?;
        let began = Instant::now();
        loop {
            if call(&self.socket(), "GET", "/_ping", "", &[]).is_ok_and(|answer| answer.status == 200) {
                *self.service.lock().unwrap_or_else(PoisonError::into_inner) = Some(child);
                return Ok(());
            }
            let ended = child.try_wait().map_err(|error| error.to_string())?;
            if ended.is_some() || began.elapsed() > READY {
                let _ = child.kill();
                let _ = child.wait();
                let said = std::fs::read_to_string(self.place.path().join("log")).unwrap_or_default();
                let tail: Vec<_> = said.lines().rev().take(5).collect();
                return Err(format!("{:?} does not start: {}", self.kind, tail.join(" | ")));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // Containers first: they outlive their engine.
        if let Ok(answer) = call(&self.socket(), "GET", "/v1.41/containers/json?all=true", "", &[]) {
            let listed: Vec<serde_json::Value> = serde_json::from_slice(&answer.body).unwrap_or_default();
            for id in listed.iter().filter_map(|one| one["Id"].as_str()) {
                let _ = call(
                    &self.socket(),
                    "DELETE",
                    &format!("/v1.41/containers/{id}?force=true&v=true"),
                    "",
                    &[],
                );
            }
        }
        if let Some(mut child) = self.service.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // Asked to end, dockerd ends containerd as well.
            let _ = Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
            let began = Instant::now();
            while child.try_wait().is_ok_and(|ended| ended.is_none()) && began.elapsed() < READY {
                std::thread::sleep(Duration::from_millis(10));
            }
            let _ = child.kill();
            let _ = child.wait();
        }
        self.end_what_watches();
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        for mount in mounts.lines().rev().filter_map(|line| line.split(' ').nth(1)) {
            if Path::new(mount).starts_with(self.place.path()) {
                let _ = Command::new("umount").args(["-l", mount]).status();
            }
        }
    }
}

fn docker(place: &Path, socket: &Path) -> Command {
    // What a killed one has left makes the next wait for a containerd that is not there.
    let pid = place.join("exec/containerd/containerd.pid");
    if let Ok(text) = std::fs::read_to_string(&pid) {
        let began = Instant::now();
        while Path::new(&format!("/proc/{}", text.trim())).exists()
            && began.elapsed() < Duration::from_secs(5)
        {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    for left in [pid, place.join("pid")] {
        let _ = std::fs::remove_file(left);
    }
    let mut command = Command::new("dockerd");
    for (name, value) in [("--data-root", "root"), ("--exec-root", "exec"), ("--pidfile", "pid")] {
        command.arg(name).arg(place.join(value));
    }
    command.arg("-H").arg(format!("unix://{}", socket.display()));
    // Only the networks `none` and `host`: nothing of the machine's own is changed.
    command.args(["--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-forward=false"]);
    command.args(["--ip-masq=false", "--exec-opt", "native.cgroupdriver=cgroupfs", "--oom-score-adjust=0"]);
    command.args(["--default-ulimit", FILES, "--default-ulimit", PROCESSES, "--live-restore"]);
    command
}

fn podman(place: &Path, socket: &Path) -> Result<Command, String> {
    for directory in ["root", "run", "tmp"] {
        std::fs::create_dir_all(place.join(directory)).map_err(|error| error.to_string())?;
    }
    let at = place.display();
    let files = [
        (
            "containers.conf",
            "CONTAINERS_CONF",
            format!(
                "[containers]\ndefault_ulimits = [\"{FILES}\", \"{PROCESSES}\"]\nnetns = \"none\"\n\
                 log_driver = \"k8s-file\"\n[engine]\nruntime = \"crun\"\ncgroup_manager = \"cgroupfs\"\n\
                 events_logger = \"file\"\nexit_command_delay = {KEPT}\ntmp_dir = \"{at}/tmp\"\n[network]\nnetwork_backend = \"netavark\"\n"
            ),
        ),
        (
            "storage.conf",
            "CONTAINERS_STORAGE_CONF",
            format!("[storage]\ndriver = \"overlay\"\ngraphroot = \"{at}/root\"\nrunroot = \"{at}/run\"\n"),
        ),
        ("registries.conf", "CONTAINERS_REGISTRIES_CONF", "unqualified-search-registries = []\n".into()),
    ];
    // crun takes no mixture of both control groups; the second is hidden from this engine alone.
    let script = "umount /sys/fs/cgroup/unified 2>/dev/null; exec podman system service --time=0 \"$1\"";
    let mut command = Command::new("unshare");
    command.args(["-m", "--propagation", "private", "sh", "-c", script, "sh"]);
    command.arg(format!("unix://{}", socket.display())).env("TMPDIR", place.join("tmp"));
    for (name, variable, text) in files {
        std::fs::write(place.join(name), text).map_err(|error| error.to_string())?;
        command.env(variable, place.join(name));
    }
    Ok(command)
}

/// Runs a test with an engine, or says why it is skipped.
pub fn with(
    kind: Kind,
    engine: impl FnOnce(Kind) -> Result<Arc<Engine>, String>,
    test: impl FnOnce(&Engine),
) {
    match engine(kind) {
        Ok(engine) => test(&engine),
        Err(why) if std::env::var_os(REQUIRED).is_some() => panic!("{kind:?} has to be here: {why}"),
        Err(why) => skipped(kind, &why),
    }
}

#[allow(clippy::print_stderr, reason = "a test that did not run says so")]
fn skipped(kind: Kind, why: &str) {
    eprintln!("skipped: {kind:?} cannot be had here: {why}");
}
