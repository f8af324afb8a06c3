//! From the start of a process to its first answer: ours from a warm cache, and a Node worker.

use crate::measure::{median, row};
use leasehold_contract::authority::Permission;
use leasehold_engine::hook::AcquireLease;
use leasehold_engine::{Cache, CallOptions, Digest};
use leasehold_tests::act::acquire;
use leasehold_tests::{bytes, context, engine_with};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The argument that makes this program the new process.
pub(crate) const CHILD: &str = "--first-call";

const ROUNDS: usize = 20;

/// The smallest worker that answers JSON-RPC, one message a line.
const WORKER: &str = r#"
const lines = require("node:readline").createInterface({ input: process.stdin });
lines.on("line", (line) => {
  const { id } = JSON.parse(line);
  process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, result: { ok: true } }) + "\n");
});
"#;

pub(crate) fn reply() {
    let directory = tempfile::TempDir::new().unwrap();
    let cache = directory.path().join("cache");
    engine_with(Cache::open(&cache).unwrap()).load(&bytes("minimal")).unwrap();
    let (mut whole, mut inside, mut node) = (Vec::new(), Vec::new(), Vec::new());
    let has_node = Command::new("node").arg("--version").stdout(Stdio::null()).status().is_ok();
    for _ in 0..ROUNDS {
        let mut ours = Command::new(std::env::current_exe().unwrap());
        let (taken, line) = first_line(ours.arg(CHILD).arg(&cache));
        whole.push(taken);
        inside.push(Duration::from_nanos(line.trim().parse().unwrap()));
        if has_node {
            node.push(first_line(Command::new("node").args(["-e", WORKER])).0);
        }
    }
    let (whole, inside) = (median(whole), median(inside));
    let (against, ratio): (String, Box<dyn Fn(Duration) -> String>) = match has_node {
        false => ("no `node` on this machine".into(), Box::new(|_| String::new())),
        true => {
            let node = median(node);
            let ratio =
                move |ours: Duration| format!("{:.0} × sooner", node.as_secs_f64() / ours.as_secs_f64());
            (format!("start of a Node worker to its first reply: {node:.2?}"), Box::new(ratio))
        }
    };
    let goal = "≥ 100 × sooner";
    row(
        "a provider's first call in a new process, from a warm cache",
        inside,
        &against,
        &ratio(inside),
        goal,
    );
    row("the same, from the start of that process", whole, &against, &ratio(whole), "");
}

/// Asks and waits for the first line.
fn first_line(command: &mut Command) -> (Duration, String) {
    let started = Instant::now();
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"environmentAcquireLease\"}\n").unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let taken = started.elapsed();
    assert!(!line.is_empty());
    drop(input);
    child.wait().unwrap();
    (taken, line)
}

/// The new process: an engine, then the entry of the cache, the instance and the call, which are timed.
pub(crate) fn child(cache: &str) {
    let engine = engine_with(Cache::open(Path::new(cache)).unwrap());
    let digest = Digest::of(&bytes("minimal"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let hook = AcquireLease { request: acquire("name-1") };
    let started = Instant::now();
    let provider = engine.load_cached(digest).unwrap().link(&BTreeSet::from([Permission::Time])).unwrap();
    let finished = runtime.block_on(provider.call(hook, context("{}"), &CallOptions::default()));
    let taken = started.elapsed();
    assert_eq!(finished.answer.unwrap().unwrap().id, "name-1");
    println!("{}", taken.as_nanos());
}
