//! What `leasehold run` costs, as ratios measured in one run: `cargo bench -p leasehold-cli --bench run`.
//!
//! Comparisons take turns, A B A B …; medians are shown.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark")]

use leasehold::{Environment, For, Isolation, Leasehold};
use leasehold_authority::jail::{self, Bounds, Jails};
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The argument that makes this program start a jail by itself, without a provider, a lease or a store.
const JAIL_ALONE: &str = "--jail-alone";

/// Bytes that a command writes to measure how fast output comes through.
const OUTPUT: u64 = 256 << 20;

fn main() {
    if let Some(directory) = std::env::args().skip_while(|arg| arg != JAIL_ALONE).nth(1) {
        return jail_alone(directory.as_ref());
    }
    let directory = TempDir::new().unwrap();
    println!("| what | ours | against | ratio | goal |");
    println!("| --- | --- | --- | --- | --- |");
    start(&directory);
    output(&directory);
    idle(&directory);
}

/// A whole `run -- true` against a process that makes the same jail and runs `true` in it.
fn start(directory: &TempDir) {
    let alone = directory.path().join("alone");
    let mut alone_command = Command::new(std::env::current_exe().unwrap());
    alone_command.arg(JAIL_ALONE).arg(&alone);
    let mut rivals = vec![("the same jail without us", alone_command)];
    rivals.extend(bwrap().map(|bwrap| ("`bwrap`", bwrap)));
    rivals.extend(container_engine(directory.path()));
    for (name, mut rival) in rivals {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for round in 0..33 {
            let taken = (time(&mut leasehold(directory, &["true"])), time(&mut rival));
            // The first rounds fill caches.
            if round >= 3 {
                ours.push(taken.0);
                theirs.push(taken.1);
            }
        }
        let (ours, theirs) = (median(ours), median(theirs));
        let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
        let goal = if name.contains("without us") { "≤ 1.5 ×" } else { "" };
        println!(
            "| `run -- true`, whole process | {ours:.1?} | {name}: {theirs:.1?} | {ratio:.2} × | {goal} |"
        );
    }
}

/// `bwrap` with what the jail has: namespaces, own root, nothing but the system.
fn bwrap() -> Option<Command> {
    answers(Command::new("bwrap").arg("--version")).then(|| {
        let mut bwrap = Command::new("bwrap");
        let options = "--unshare-all --die-with-parent --ro-bind /usr /usr --symlink usr/lib /lib \
                       --symlink usr/lib64 /lib64 --proc /proc --dev /dev --tmpfs /tmp /usr/bin/true";
        bwrap.args(options.split_whitespace());
        bwrap
    })
}

/// `docker run --rm` or `podman run --rm` where an engine answers, with an image of one static program.
fn container_engine(directory: &Path) -> Option<(&'static str, Command)> {
    const IMAGE: &str = "leasehold-bench:latest";
    let rows = [("docker", "`docker run --rm`"), ("podman", "`podman run --rm`")];
    let (engine, name) = rows.into_iter().find(|(engine, _)| answers(Command::new(engine).arg("info")))?;
    let root = directory.join("image");
    std::fs::create_dir_all(root.join("bin")).unwrap();
    std::fs::copy("/bin/busybox", root.join("bin/true")).ok()?;
    let tar = directory.join("image.tar");
    assert!(
        Command::new("tar").arg("-cf").arg(&tar).arg("-C").arg(&root).arg(".").status().unwrap().success()
    );
    if !answers(Command::new(engine).arg("import").arg(&tar).arg(IMAGE)) {
        return None;
    }
    let mut run = Command::new(engine);
    run.args(["run", "--rm", "--network", "none", IMAGE, "/bin/true"]);
    Some((name, run))
}

fn answers(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// From the first byte of `cat bigfile` to the last, in a sandbox and through a pipe alone.
fn output(directory: &TempDir) {
    let project = directory.path().join("project");
    std::fs::create_dir_all(&project).unwrap();
    let content = vec![b'x'; usize::try_from(OUTPUT).unwrap()];
    std::fs::write(project.join("bigfile"), content).unwrap();
    let (mut ours, mut pipe) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        let mut run = leasehold_with(directory, &["--sync", project.to_str().unwrap()], &["cat", "bigfile"]);
        ours.push(drain(&mut run));
        pipe.push(drain(Command::new("cat").arg(project.join("bigfile"))));
    }
    let rate = |taken: Duration| OUTPUT as f64 / taken.as_secs_f64() / f64::from(1 << 20);
    let (ours, pipe) = (rate(median(ours)), rate(median(pipe)));
    let percent = ours / pipe * 100.0;
    println!(
        "| output of `run -- cat bigfile` | {ours:.0} MiB/s | a pipe alone: {pipe:.0} MiB/s | {percent:.0} % | ≥ 50 % |"
    );
}

/// Memory of the host and of the jails' own processes, for each lease that does nothing.
fn idle(directory: &TempDir) {
    const LEASES: u64 = 32;
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let host = Leasehold::builder(directory.path().join("idle")).build().await.unwrap();
        let environment = Environment::of("local");
        let acquire = || environment.acquire(&host, For::default());
        let first = acquire().await.unwrap();
        let before = memory();
        let mut sessions = Vec::new();
        for _ in 0..LEASES {
            sessions.push(acquire().await.unwrap());
        }
        let each = memory().saturating_sub(before) / LEASES;
        println!("| memory of an idle lease, host and jail | {} KiB | | | |", each >> 10);
        for session in sessions.into_iter().chain([first]) {
            session.release().await.unwrap();
        }
    });
}

/// Proportional memory of this process and of all its children, in bytes.
fn memory() -> u64 {
    let mine = std::process::id().to_string();
    let processes =
        std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().into_string().ok());
    let of = |pid: &str| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
        let line = text.lines().find(|line| line.starts_with("Pss:"))?.to_owned();
        line.split_whitespace().nth(1)?.parse::<u64>().ok()
    };
    let child = |pid: &String| {
        *pid == mine
            || std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
                stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(1)) == Some(&mine)
            })
    };
    processes.filter(child).filter_map(|pid| of(&pid)).sum::<u64>() << 10
}

fn leasehold(directory: &TempDir, command: &[&str]) -> Command {
    leasehold_with(directory, &["--no-sync"], command)
}

fn leasehold_with(directory: &TempDir, options: &[&str], command: &[&str]) -> Command {
    let mut run = Command::new(env!("CARGO_BIN_EXE_leasehold"));
    run.arg("run").args(options).arg("--").args(command).stdin(Stdio::null());
    run.env("XDG_STATE_HOME", directory.path().join("state"))
        .env("XDG_CACHE_HOME", directory.path().join("cache"));
    run
}

fn time(command: &mut Command) -> Duration {
    let started = Instant::now();
    assert!(command.stdin(Stdio::null()).status().unwrap().success());
    started.elapsed()
}

/// Reads all a command writes; how long that took from the first byte on.
fn drain(command: &mut Command) -> Duration {
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut output = child.stdout.take().unwrap();
    let mut buffer = vec![0; 64 << 10];
    let mut total = output.read(&mut buffer).unwrap() as u64;
    let started = Instant::now();
    while total < OUTPUT {
        match output.read(&mut buffer).unwrap() {
            0 => break,
            read => total += read as u64,
        }
    }
    // What follows is the way back of the files, which has figures of its own.
    let taken = started.elapsed();
    assert!(child.wait().unwrap().success());
    assert_eq!(total, OUTPUT);
    taken
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// The same jail, and nothing of ours around it.
fn jail_alone(directory: &Path) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let jails = Jails::open(directory).unwrap();
        let name = format!("alone-{}", std::process::id());
        jails.create(&name, Bounds::default(), &Isolation::default()).await.unwrap();
        let command = jail::Command::new(["true"]);
        let (output, error) = (tokio::io::sink(), tokio::io::sink());
        jails.run(&name, &command, tokio::io::empty(), output, error).await.unwrap();
        jails.destroy(&name).await.unwrap();
    });
}
