//! What the provider `docker` costs beside a native client of the same engine:
//! `cargo bench -p leasehold-tests --bench containers`.
//!
//! Ours and theirs take turns in one run; medians are shown. Ours is a whole call each time: a fresh instance, the
//! engine's calls, and the supervisor that the command runs under.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "a benchmark")]

use bytes::Bytes;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::Request;
use hyper::body::Frame;
use hyper::client::conn::http1::{SendRequest, handshake};
use leasehold_engine::Limits;
use leasehold_engine::bindings::exports::destroy_lease::DestroyTarget;
use leasehold_engine::bindings::imports::transfer::{Entry, EntryKind, TransferError};
use leasehold_engine::bindings::port::{Source, SourceContent};
use leasehold_engine::bindings::sync_types::MappingKind;
use leasehold_engine::bindings::types::Lease;
use leasehold_engine::call::stream::{Output, input_bytes};
use leasehold_engine::hook::{AcquireLease, DestroyLease, Inbound, InboundOperation, SyncIn};
use leasehold_tests::act::{acquire, command};
use leasehold_tests::engines::{Docker, Engine, Kind};
use std::convert::Infallible;
use std::time::{Duration, Instant};
use tokio::net::UnixStream;
use wasmtime_wasi::async_trait;
use wasmtime_wasi::p2::{DynInputStream, InputStream, Pollable, StreamError, StreamResult};
use wasmtime_wasi_http::io::TokioIo;

/// Bytes of the file that is moved.
const FILE: u64 = 512 << 20;

/// How much of it is handed over at once, by both sides.
const PIECE: usize = 256 << 10;

/// Commands of each side; the first few fill caches.
const ROUNDS: usize = 33;
const CACHES: usize = 3;

/// Transfers of each side.
const TRANSFERS: usize = 5;

fn main() {
    println!("| what | ours | native client | ratio | goal |");
    println!("| --- | --- | --- | --- | --- |");
    for kind in [Kind::Podman, Kind::Docker] {
        match Engine::start(kind) {
            Ok(engine) => tokio::runtime::Runtime::new().unwrap().block_on(measured(&engine)),
            Err(why) => println!("| {kind:?} | | cannot be had here: {why} | | |"),
        }
    }
}

async fn measured(engine: &Engine) {
    let docker = Docker::of(engine);
    let acquired = docker.call("acquire", AcquireLease { request: acquire("bench") }).await;
    let lease = acquired.answer.unwrap().unwrap();
    let native = Native { engine, id: lease.id.clone() };

    let mut client = native.connected().await;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let began = Instant::now();
        ran(&docker, &lease, round).await;
        let us = began.elapsed();
        let began = Instant::now();
        native.ran(&mut client).await;
        if round >= CACHES {
            ours.push(us);
            theirs.push(began.elapsed());
        }
    }
    let (us, them) = (median(ours), median(theirs));
    let ratio = us.as_secs_f64() / them.as_secs_f64();
    println!(
        "| {:?}: `true` to its exit code | {us:.1?} | {them:.1?} | {ratio:.2} × | ≤ 1.25 × |",
        engine.kind()
    );

    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..TRANSFERS {
        let began = Instant::now();
        sent(&docker, &lease, round).await;
        ours.push(began.elapsed());
        let began = Instant::now();
        native.sent(&mut client).await;
        theirs.push(began.elapsed());
    }
    let rate = |taken: Duration| FILE as f64 / taken.as_secs_f64() / f64::from(1 << 20);
    let (us, them) = (rate(median(ours)), rate(median(theirs)));
    println!(
        "| {:?}: a file of 512 MiB in | {us:.0} MiB/s | {them:.0} MiB/s | {:.0} % | ≥ 85 % |",
        engine.kind(),
        us / them * 100.0
    );
    let hook = DestroyLease { target: DestroyTarget::Lease(lease) };
    docker.call("destroy", hook).await.answer.unwrap().unwrap();
}

async fn ran(docker: &Docker, lease: &Lease, round: usize) {
    let limits = Limits::default();
    let mut hook = command(&["true"], &Output::new(&limits), &Output::new(&limits));
    hook.request.lease = lease.clone();
    hook.input = input_bytes(&b""[..]);
    docker.call(&format!("call-{round}"), hook).await.answer.unwrap().unwrap();
}

async fn sent(docker: &Docker, lease: &Lease, round: usize) {
    let source = Source(Box::new(Content { left: true }));
    let kind = MappingKind::File;
    let mapping = Inbound { target_path: "/workspace/ours".into(), kind, mode: Some(0o644), source };
    let operation =
        InboundOperation { operation_id: "bench".into(), mappings: vec![mapping], post_upload: vec![] };
    let hook = SyncIn { lease: lease.clone(), operations: vec![operation] };
    let finished = docker.call(&format!("sync-{round}"), hook).await;
    assert_eq!(finished.answer.unwrap().unwrap()[0].bytes, FILE);
    let peak = finished.bill.peak_memory_bytes;
    assert!(peak < 8 << 20, "bytes of the file came into the provider: {peak} bytes of memory");
}

/// One large file, made up.
struct Content {
    left: bool,
}

#[async_trait]
impl SourceContent for Content {
    async fn tar(&mut self) -> Result<DynInputStream, TransferError> {
        Ok(Box::new(Bytewise { piece: piece(), left: FILE }))
    }

    async fn next(&mut self) -> Result<Option<(Entry, Option<DynInputStream>)>, TransferError> {
        if !std::mem::take(&mut self.left) {
            return Ok(None);
        }
        let entry = Entry { path: String::new(), kind: EntryKind::File(FILE), mode: 0o644 };
        Ok(Some((entry, Some(Box::new(Bytewise { piece: piece(), left: FILE })))))
    }

    fn totals(&self) -> (u64, u64) {
        (1, FILE)
    }
}

struct Bytewise {
    piece: Bytes,
    left: u64,
}

#[async_trait]
impl Pollable for Bytewise {
    async fn ready(&mut self) {}
}

impl InputStream for Bytewise {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        if self.left == 0 {
            return Err(StreamError::Closed);
        }
        let now = size.min(PIECE).min(usize::try_from(self.left).unwrap_or(PIECE));
        self.left -= now as u64;
        Ok(self.piece.slice(..now))
    }
}

/// Bytes that nothing makes smaller.
fn piece() -> Bytes {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let bytes = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[0]
    });
    bytes.take(PIECE).collect::<Vec<_>>().into()
}

type Body = http_body_util::combinators::BoxBody<Bytes, Infallible>;

/// The same calls by hyper alone.
struct Native<'a> {
    engine: &'a Engine,
    id: String,
}

impl Native<'_> {
    async fn connected(&self) -> SendRequest<Body> {
        let stream = UnixStream::connect(self.engine.socket()).await.unwrap();
        let (client, connection) = handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        client
    }

    /// Prepares, starts to the end of its stream, and asks how it ended.
    async fn ran(&self, client: &mut SendRequest<Body>) {
        let body = r#"{"AttachStdin":true,"AttachStdout":true,"AttachStderr":true,"Cmd":["true"]}"#;
        let path = format!("/v1.41/containers/{}/exec", self.id);
        let made = json(client, post(&path, body)).await;
        let exec = made["Id"].as_str().unwrap().to_owned();
        let mut attached = self.connected().await;
        let path = format!("/v1.41/exec/{exec}/start");
        whole(&mut attached, post(&path, r#"{"Detach":false,"Tty":false}"#)).await;
        loop {
            let get = Request::get(format!("/v1.41/exec/{exec}/json")).header("host", "engine");
            let standing = json(client, get.body(text("")).unwrap()).await;
            if standing["Running"] == false {
                assert_eq!(standing["ExitCode"], 0);
                return;
            }
            // As ours does, rather than keep the engine busy with questions.
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Sends the file as an archive, its pieces straight from memory.
    async fn sent(&self, client: &mut SendRequest<Body>) {
        let mut header = tar::Header::new_ustar();
        header.set_path("theirs").unwrap();
        header.set_mode(0o644);
        header.set_size(FILE);
        header.set_cksum();
        let (piece, pieces) = (piece(), FILE / PIECE as u64);
        let head = Bytes::copy_from_slice(header.as_bytes());
        let end = Bytes::from_static(&[0; 1024]);
        let all = std::iter::once(head)
            .chain((0..pieces).map(move |_| piece.clone()))
            .chain(std::iter::once(end))
            .map(|bytes| Ok::<_, Infallible>(Frame::data(bytes)));
        let mut all = Box::new(all) as Box<dyn Iterator<Item = _> + Send + Sync>;
        let body =
            StreamBody::new(futures_util::stream::poll_fn(move |_| std::task::Poll::Ready(all.next())));
        let path = format!("/v1.41/containers/{}/archive?path=/workspace", self.id);
        let request = Request::put(path)
            .header("host", "engine")
            .header("content-type", "application/x-tar")
            .header("content-length", 512 + FILE + 1024);
        whole(client, request.body(BodyExt::boxed(body)).unwrap()).await;
    }
}

fn text(body: &str) -> Body {
    Full::new(Bytes::copy_from_slice(body.as_bytes())).boxed()
}

fn post(path: &str, body: &str) -> Request<Body> {
    let request = Request::post(path).header("host", "engine").header("content-type", "application/json");
    request.body(text(body)).unwrap()
}

async fn whole(client: &mut SendRequest<Body>, request: Request<Body>) -> Bytes {
    client.ready().await.unwrap();
    let answer = client.send_request(request).await.unwrap();
    let status = answer.status();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    assert!(status.is_success(), "{status}: {}", String::from_utf8_lossy(&body));
    body
}

async fn json(client: &mut SendRequest<Body>, request: Request<Body>) -> serde_json::Value {
    serde_json::from_slice(&whole(client, request).await).unwrap()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
