//! What moving files costs, as ratios measured in one run: `cargo bench -p leasehold --bench sync`.
//!
//! Comparisons take turns, A B A B …; the best of each is shown, which on a busy machine says more than a middle.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark")]
#![allow(clippy::cast_precision_loss, reason = "figures of three digits")]

use leasehold::{
    Command, Environment, Exit, For, Leasehold, Mapping, MappingKind, Operation, Roots, Session, Streams,
    Terms, Transfer, WalkOptions,
};
use std::fs;
use std::io::{Cursor, Write as _};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Rounds of each comparison.
const ROUNDS: usize = 5;

const MIB: u64 = 1 << 20;

#[tokio::main]
async fn main() {
    let directory = TempDir::new().unwrap();
    let runtime = Leasehold::builder(directory.path().join("state")).build().await.unwrap();
    println!("| what | ours | against | ratio | goal |");
    println!("| --- | --- | --- | --- | --- |");
    small_files(&runtime, directory.path()).await;
    large_file(&runtime, directory.path()).await;
    fallback(&runtime, directory.path()).await;
    memory(&runtime, directory.path()).await;
}

async fn lease(runtime: &Leasehold) -> Session {
    let terms = Terms { held: true, ..Terms::default() };
    Environment::of("local").acquire_as(runtime, For::default(), terms).await.unwrap()
}

fn small_tree(folder: &Path, files: usize) {
    for directory in 0..files / 100 {
        let path = folder.join(format!("{directory:03}"));
        fs::create_dir_all(&path).unwrap();
        for file in 0..100 {
            fs::write(path.join(format!("{file:02}")), [u8::try_from(file).unwrap(); 4096]).unwrap();
        }
    }
}

/// Ten thousand files in, against tar piped to tar; and the same again when nothing has changed.
async fn small_files(runtime: &Leasehold, directory: &Path) {
    let folder = directory.join("small");
    small_tree(&folder, 10_000);
    let (mut full, mut again, mut after_work, mut tar) = (vec![], vec![], vec![], vec![]);
    for round in 0..ROUNDS {
        let into = directory.join(format!("tar-{round}"));
        fs::create_dir(&into).unwrap();
        tar.push(timed(async || piped(&folder, &into)).await);
        let session = lease(runtime).await;
        let sync = async || drop(session.sync_in(&folder, WalkOptions::default()).await.unwrap());
        full.push(timed(async || sync().await).await);
        again.push(timed(async || sync().await).await);
        run(&session, "echo changed > 000/00; touch 001/new", &[]).await;
        after_work.push(timed(async || sync().await).await);
        if round == 0 {
            through_guest(runtime, &session).await;
        }
        session.destroy().await.unwrap();
        fs::remove_dir_all(into).unwrap();
    }
    let (full, again, after_work, tar) = (best(full), best(again), best(after_work), best(tar));
    row(
        "10,000 files of 4 KiB in",
        full,
        "`tar c \\| tar x`",
        tar,
        tar.as_secs_f64() / full.as_secs_f64(),
        "≥ 0.60",
    );
    row(
        "the same again, unchanged",
        again,
        "all of it",
        full,
        full.as_secs_f64() / again.as_secs_f64(),
        "≥ 20, < 150 ms",
    );
    row(
        "one changed and one new in the sandbox",
        after_work,
        "all of it",
        full,
        full.as_secs_f64() / after_work.as_secs_f64(),
        "",
    );
}

async fn through_guest(runtime: &Leasehold, session: &Session) {
    let history = runtime.leases().history(session.id()).await.unwrap();
    let bill =
        history.iter().rev().find(|event| event.reason.contains("went in")).unwrap().bill.clone().unwrap();
    let bill: serde_json::Value = serde_json::from_str(&bill).unwrap();
    println!(
        "| bytes through guest memory, by the bill | {} | | | 0 |",
        bill["bytesIn"].as_u64().unwrap() + bill["bytesOut"].as_u64().unwrap()
    );
}

/// One file of 2 GiB in, against `cp` without reflink.
async fn large_file(runtime: &Leasehold, directory: &Path) {
    let file = directory.join("large");
    fill(&file, 2048 * MIB);
    let (mut ours, mut cp) = (vec![], vec![]);
    for _ in 0..ROUNDS.min(3) {
        let to = directory.join("copy");
        cp.push(
            timed(async || {
                let status = std::process::Command::new("cp")
                    .arg("--reflink=never")
                    .arg(&file)
                    .arg(&to)
                    .status()
                    .unwrap();
                assert!(status.success());
            })
            .await,
        );
        fs::remove_file(&to).unwrap();
        let session = lease(runtime).await;
        ours.push(
            timed(async || {
                drop(session.transfer_in(&one(MappingKind::File, &file, "/workspace/large")).await.unwrap())
            })
            .await,
        );
        session.destroy().await.unwrap();
    }
    let (ours, cp) = (best(ours), best(cp));
    row(
        "one file of 2 GiB in",
        ours,
        "`cp --reflink=never`",
        cp,
        cp.as_secs_f64() / ours.as_secs_f64(),
        "≥ 0.50",
    );
    fs::remove_file(file).unwrap();
}

/// 64 MiB in, natively, over commands, and by the loop that people write: 64 KiB and one command at a time.
async fn fallback(runtime: &Leasehold, directory: &Path) {
    let file = directory.join("middle");
    fill(&file, 64 * MIB);
    let native_lease = lease(runtime).await;
    let over_commands = lease(runtime).await.without_native_transfer();
    let transfer = || one(MappingKind::File, &file, "/workspace/middle");
    let (mut native, mut fallback, mut naive) = (vec![], vec![], vec![]);
    // A sixteenth of it is enough for the loop.
    let sample = fs::read(&file).unwrap()[..usize::try_from(4 * MIB).unwrap()].to_vec();
    for _ in 0..ROUNDS.min(3) {
        native.push(timed(async || drop(native_lease.transfer_in(&transfer()).await.unwrap())).await);
        fallback.push(timed(async || drop(over_commands.transfer_in(&transfer()).await.unwrap())).await);
        let chunks = timed(async || {
            for chunk in sample.chunks(64 << 10) {
                let text = base64(chunk);
                run(&over_commands, "base64 -d >> naive", text.as_bytes()).await;
            }
        })
        .await;
        naive.push(chunks * 16);
    }
    let (native, fallback, naive) = (best(native), best(fallback), best(naive));
    row(
        "64 MiB natively",
        native,
        "over commands",
        fallback,
        fallback.as_secs_f64() / native.as_secs_f64(),
        "≥ 50",
    );
    row(
        "64 MiB over commands",
        fallback,
        "a command for each 64 KiB",
        naive,
        naive.as_secs_f64() / fallback.as_secs_f64(),
        "≥ 2",
    );
    native_lease.destroy().await.unwrap();
    over_commands.destroy().await.unwrap();
}

/// How far resident memory rises while a hundred thousand files go in and come back.
async fn memory(runtime: &Leasehold, directory: &Path) {
    let folder = directory.join("many");
    small_tree(&folder, 99_000);
    let session = lease(runtime).await;
    let mut options = WalkOptions::default();
    options.max_entries = usize::MAX;
    let before = resident("VmRSS:");
    fs::write("/proc/self/clear_refs", "5").unwrap();
    let synced = session.sync_in(&folder, options).await.unwrap();
    let inward = resident("VmHWM:").saturating_sub(before);
    session.sync_out(synced).await.unwrap();
    let outward = resident("VmHWM:").saturating_sub(before);
    println!("| memory for 100,000 entries, in | {} MiB | | | ≤ 64 MiB |", inward >> 10);
    println!("| memory for 100,000 entries, in and back | {} MiB | | | ≤ 64 MiB |", outward >> 10);
    session.destroy().await.unwrap();
}

/// A figure of the kernel's about this process, in KiB.
fn resident(what: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(what)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn one(kind: MappingKind, source: &Path, target: &str) -> Transfer {
    let mappings = vec![Mapping::new(kind, source, target)];
    Transfer {
        operations: vec![Operation { id: "sync-op-1".into(), mappings, post_upload: vec![] }],
        sources: Roots::new("source", [source.parent().unwrap()]).unwrap(),
        targets: Roots::new("target", ["/workspace"]).unwrap(),
        ..Transfer::default()
    }
}

async fn run(session: &Session, script: &str, input: &[u8]) {
    let (output, mut of_output) = mpsc::channel(16);
    let (error, _) = mpsc::channel(16);
    let streams = Streams { input: Box::new(Cursor::new(input.to_vec())), output, error };
    let command = Command { argv: ["sh", "-c", script].map(String::from).to_vec(), ..Command::default() };
    let (ended, ()) = tokio::join!(session.execute(command, streams, CancellationToken::new()), async {
        while of_output.recv().await.is_some() {}
    });
    assert!(matches!(ended.unwrap().0, Exit::Exited(0)), "{script}");
}

fn piped(from: &Path, to: &Path) {
    let tar = |arguments: [&str; 3], folder: &Path| {
        let mut tar = std::process::Command::new("tar");
        tar.arg(arguments[0])
            .arg(arguments[1])
            .arg("-C")
            .arg(folder)
            .args(Some(arguments[2]).filter(|last| !last.is_empty()));
        tar
    };
    let mut pack = tar(["-cf", "-", "."], from).stdout(Stdio::piped()).spawn().unwrap();
    let unpacked = tar(["-xf", "-", ""], to).stdin(pack.stdout.take().unwrap()).status().unwrap();
    assert!(pack.wait().unwrap().success() && unpacked.success());
}

/// A file that is neither sparse nor the same everywhere.
fn fill(path: &Path, bytes: u64) {
    let mut file = fs::File::create(path).unwrap();
    let mut piece: Vec<u8> = (0..MIB).map(|at| u8::try_from(at * 2_654_435_761 % 251).unwrap()).collect();
    for number in 0..bytes / MIB {
        piece[..8].copy_from_slice(&number.to_le_bytes());
        file.write_all(&piece).unwrap();
    }
}

fn base64(bytes: &[u8]) -> String {
    let mut encode = std::process::Command::new("base64");
    let mut child = encode.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(bytes).unwrap();
    String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
}

async fn timed(work: impl AsyncFnOnce()) -> Duration {
    let began = Instant::now();
    work().await;
    began.elapsed()
}

fn best(times: Vec<Duration>) -> Duration {
    times.into_iter().min().unwrap()
}

fn row(what: &str, ours: Duration, against: &str, theirs: Duration, ratio: f64, goal: &str) {
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    println!("| {what} | {:.0} ms | {against}: {:.0} ms | {ratio:.2} | {goal} |", ms(ours), ms(theirs));
}
