//! From the start of a process to its first answer: ours from a warm cache, and a Node worker.

use crate::measure::{in_turns, row};
use leasehold_contract::authority::Permission;
use leasehold_engine::hook::AcquireLease;
use leasehold_engine::{Cache, CallOptions, Digest, Engine};
use leasehold_tests::act::acquire;
use leasehold_tests::{bytes, context};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

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
    Engine::new(Some(Cache::open(&cache).unwrap())).unwrap().load(&bytes("minimal")).unwrap();
    let mut ours = || {
        let mut child = Command::new(std::env::current_exe().unwrap());
        answer(child.arg(CHILD).arg(&cache).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap());
    };
    if Command::new("node").arg("--version").stdout(Stdio::null()).status().is_err() {
        let taken = crate::measure::median((0..ROUNDS).map(|_| crate::measure::time(&mut ours)).collect());
        return row("first call in a new process", taken, "no `node` on this machine", "", "≥ 100 × sooner");
    }
    let node = || {
        let child = Command::new("node").args(["-e", WORKER]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        answer(child.unwrap());
    };
    let (ours, node) = in_turns(ROUNDS, ours, node);
    let ratio = format!("{:.0} × sooner", node.as_secs_f64() / ours.as_secs_f64());
    row("first call in a new process", ours, &format!("first reply of a Node worker: {node:.2?}"), &ratio, "≥ 100 × sooner");
}

/// Asks and waits for the first line.
fn answer(mut child: Child) {
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"environmentAcquireLease\"}\n").unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("ok") || line.contains("name-1"), "{line:?}");
    drop(input);
    child.wait().unwrap();
}

/// The new process: engine, entry of the cache, instance, call.
pub(crate) fn child(cache: &str) {
    let engine = Engine::new(Some(Cache::open(Path::new(cache)).unwrap())).unwrap();
    let loaded = engine.load_cached(Digest::of(&bytes("minimal"))).unwrap();
    let provider = loaded.link(&BTreeSet::from([Permission::Time])).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let hook = AcquireLease { request: acquire("name-1") };
    let finished = runtime.block_on(provider.call(hook, context("{}"), &CallOptions::default()));
    println!("{}", finished.answer.unwrap().unwrap().id);
}
