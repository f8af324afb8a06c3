//! What the edge costs, against the same client without it: `cargo bench -p leasehold-tests --bench edge`.
//!
//! Comparisons take turns in one run; medians are shown. The guest's side is the whole way: a call of a fresh
//! instance, the component's own loop, `wasi:http`, the policy, the edge, the client.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a benchmark"
)]

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http1;
use leasehold_authority::secret::scrub::Scrubber;
use leasehold_contract::authority::{HttpTarget, Policy, Scheme};
use leasehold_engine::Filter as _;
use leasehold_tests::edge::Edge;
use secrecy::SecretString;
use serde_json::Value;
use std::hint::black_box;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use wasmtime_wasi_http::io::TokioIo;

/// Rounds of each comparison; the median of so many is steady on a shared machine.
const ROUNDS: usize = 15;

/// Requests of one round.
const REQUESTS: usize = 500;

/// The body that is streamed.
const BODY: usize = 64 << 20;

fn main() {
    println!("| what | ours | against | ratio | goal |");
    println!("| --- | --- | --- | --- | --- |");
    decisions();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let address = server();
    requests(&runtime, address);
    bodies(&runtime, address, Value::Null, "64 MiB body streamed");
    bodies(&runtime, address, Value::from("secret-of-the-guest"), "the same with secrets to look for");
    scrubbing();
}

fn decisions() {
    let grants = (0..20).map(|i| format!("http=https://*.host-{i}.example.com,GET,POST").parse().unwrap());
    let policy = Policy::new("boxes", Some(vec!["http".parse().unwrap()]), grants.collect());
    let target =
        HttpTarget { scheme: Scheme::Https, host: "api.host-19.example.com", port: 443, method: "POST" };
    let mut times: Vec<Duration> = (0..200_000)
        .map(|_| {
            let started = Instant::now();
            black_box(policy.http(black_box(&target))).unwrap();
            started.elapsed()
        })
        .collect();
    times.sort();
    let median = times[times.len() / 2];
    println!("| policy decision, the last of 20 grants, p50 | {median:.2?} | | | ≤ 1.5 µs |");
}

fn requests(runtime: &Runtime, address: SocketAddr) {
    let guest = Edge::shared().guest(&[&format!("http=http://{address}")]);
    let url = format!("http://{address}/small");
    let count = REQUESTS.to_string();
    let (mut ours, mut plain) = (vec![], vec![]);
    for _ in 0..ROUNDS {
        let started = Instant::now();
        let said = runtime.block_on(guest.run(&["many", &count, &url]));
        ours.push(started.elapsed());
        assert!(said.starts_with(&format!("answered {REQUESTS} ")), "{said}");
        plain.push(runtime.block_on(client(address, "/small", REQUESTS)));
    }
    let (ours, plain) = (median(ours), median(plain));
    let rate = |time: Duration| REQUESTS as f64 / time.as_secs_f64();
    let ratio = 100.0 * rate(ours) / rate(plain);
    println!(
        "| requests one after the other | {:.0}/s | {:.0}/s | {ratio:.0} % | ≥ 80 % |",
        rate(ours),
        rate(plain)
    );
}

fn bodies(runtime: &Runtime, address: SocketAddr, secret: Value, what: &str) {
    let mut guest = Edge::shared().guest(&[&format!("http=http://{address}")]);
    if let Some(secret) = secret.as_str() {
        guest = guest.with_secret(secret, Value::Null);
    }
    let url = format!("http://{address}/large");
    let (mut ours, mut plain) = (vec![], vec![]);
    for _ in 0..ROUNDS {
        let started = Instant::now();
        let said = runtime.block_on(guest.run(&["download", &url]));
        ours.push(started.elapsed());
        assert_eq!(said, format!("bytes {BODY}\n"));
        plain.push(runtime.block_on(client(address, "/large", 1)));
    }
    let (ours, plain) = (median(ours), median(plain));
    let rate = |time: Duration| 64.0 / time.as_secs_f64();
    let ratio = 100.0 * rate(ours) / rate(plain);
    println!("| {what} | {:.0} MiB/s | {:.0} MiB/s | {ratio:.0} % | ≥ 70 % |", rate(ours), rate(plain));
}

fn scrubbing() {
    let secrets =
        [SecretString::from("dtn_0123456789abcdef0123456789abcdef"), SecretString::from("another/secret+1")];
    let scrubber = Scrubber::new(&secrets).unwrap();
    let text =
        Bytes::from("The quick brown fox jumps over the lazy dog, 0123456789 times.\n".repeat(1 << 10));
    let mut times = vec![];
    for _ in 0..ROUNDS {
        let mut stream = scrubber.stream();
        let started = Instant::now();
        for _ in 0..1_000 {
            black_box(stream.pass(text.clone()));
        }
        times.push(started.elapsed());
    }
    let rate = 1_000.0 * text.len() as f64 / 1e6 / median(times).as_secs_f64();
    println!("| scrubbing a stream, two secrets in every form | {rate:.0} MB/s | | | ≥ 500 MB/s |");
}

/// The same client without the edge, on one connection.
async fn client(address: SocketAddr, path: &str, count: usize) -> Duration {
    let stream = tokio::net::TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let started = Instant::now();
    for _ in 0..count {
        sender.ready().await.unwrap();
        let request = hyper::Request::get(path).header("host", address.to_string());
        let response = sender.send_request(request.body(Empty::<Bytes>::new()).unwrap()).await.unwrap();
        let mut body = response.into_body();
        while let Some(frame) = body.frame().await {
            black_box(frame.unwrap());
        }
    }
    started.elapsed()
}

/// A server on threads of its own that costs as little as one can.
fn server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            stream.set_nodelay(true).unwrap();
            std::thread::spawn(move || {
                let small = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello".to_vec();
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {BODY}\r\n\r\n");
                let piece = vec![b'x'; 256 << 10];
                let (mut buffer, mut kept) = (vec![0; 16 << 10], Vec::new());
                while let Ok(read @ 1..) = stream.read(&mut buffer) {
                    kept.extend_from_slice(&buffer[..read]);
                    if !kept.ends_with(b"\r\n\r\n") {
                        continue;
                    }
                    let large = kept.starts_with(b"GET /large");
                    kept.clear();
                    let sent = match large {
                        false => stream.write_all(&small),
                        true => stream.write_all(head.as_bytes()).and_then(|()| {
                            (0..BODY / piece.len()).try_for_each(|_| stream.write_all(&piece))
                        }),
                    };
                    if sent.is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
