//! What `leasehold lease ls` costs with 10,000 leases in use, as a whole process:
//! `cargo bench -p leasehold-cli --bench list`. Needs the fixtures (`cargo guests`).
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark")]

use leasehold::{Environment, For, Leasehold, Terms};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Leases in use.
const LEASES: usize = 10_000;

/// Leases acquired at one time.
const TOGETHER: usize = 64;

fn main() {
    let directory = TempDir::new().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let began = Instant::now();
    runtime.block_on(fill(&directory));
    let each = began.elapsed() / u32::try_from(LEASES).unwrap();
    println!("| acquiring one of {LEASES} leases, {TOGETHER} at a time | {each:.1?} | |");
    println!("| what, as a whole process | taken | against `leasehold --version` |");
    println!("| --- | --- | --- |");
    let start = median(&directory, &["--version"]);
    for arguments in [&["lease", "ls"][..], &["lease", "ls", "--json"], &["lease", "ls", "--stuck"]] {
        let taken = median(&directory, arguments);
        println!("| `{}` | {taken:.1?} | {start:.1?} |", arguments.join(" "));
    }
}

/// Fills the store with leases of a provider that does nothing.
async fn fill(directory: &TempDir) {
    let state = directory.path().join("state/leasehold");
    std::fs::create_dir_all(&state).unwrap();
    let component = leasehold_builder::fixture("minimal").unwrap();
    let host = Leasehold::builder(state).provider("minimal", component, []).build().await.unwrap();
    let terms = Terms { held: true, ..Terms::default() };
    let tasks = (0..TOGETHER).map(|task| {
        let (host, terms) = (host.clone(), terms.clone());
        tokio::spawn(async move {
            for _ in (task..LEASES).step_by(TOGETHER) {
                let environment = Environment::of("minimal");
                environment.acquire_as(&host, For::default(), terms.clone()).await.unwrap();
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
}

fn median(directory: &TempDir, arguments: &[&str]) -> Duration {
    let mut times: Vec<_> = (0..21).map(|_| time(directory, arguments)).collect();
    times.sort();
    times[times.len() / 2]
}

fn time(directory: &TempDir, arguments: &[&str]) -> Duration {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
    command.args(arguments).current_dir(directory.path()).stdout(Stdio::null());
    command.env("XDG_STATE_HOME", directory.path().join("state")).env("XDG_CACHE_HOME", directory.path());
    let began = Instant::now();
    assert!(command.status().unwrap().success());
    began.elapsed()
}
