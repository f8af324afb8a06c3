//! Plain connections and HTTP over Unix sockets.

use leasehold_tests::edge::{Edge, Server, heard, names, ok};
use serde_json::Value;
use std::path::Path;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixListener;

/// Answers requests on a Unix socket; gives back in capitals what else is said.
fn unix(path: &Path) {
    let listener = UnixListener::bind(path).unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                while let Some(request) = heard(&mut stream).await {
                    stream.write_all(&ok(&request)).await.unwrap();
                }
            });
        }
    });
}

/// Gives back in capitals what is said, once no more is said.
async fn echo() -> Server {
    Server::raw("127.0.0.1:0", |mut stream| async move {
        let mut said = String::new();
        if stream.read_to_string(&mut said).await.is_ok() {
            let _ = stream.write_all(said.to_uppercase().as_bytes()).await;
        }
    })
    .await
}

#[tokio::test]
async fn a_socket_has_a_name_and_speaks_http_and_anything_else() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("engine.sock");
    unix(&path);
    let grant = format!("unix-http=docker={}", path.display());
    let guest = Edge::shared().guest(&[&grant]);
    let said = guest.run(&["request", "POST", "http://docker/v1.41/info", "-b", "x"]).await;
    assert!(
        said.contains("status 200") && said.contains("body POST /v1.41/info HTTP/1.1\r\nhost: docker\r\n")
            || said.contains("host: docker"),
        "{said}"
    );
    let said = guest.run(&["connect", "docker", "GET / HTTP/1.1\r\nhost: x\r\n\r\n"]).await;
    assert!(said.starts_with("heard HTTP/1.1 200 OK"), "{said}");
    let said = guest.run(&["request", "GET", "http://podman/"]).await;
    assert!(said.contains("HttpRequestDenied"), "{said}");
    assert!(
        guest
            .declared(&["http"])
            .run(&["request", "GET", "http://docker/"])
            .await
            .contains("HttpRequestDenied")
    );
}

#[tokio::test]
async fn a_connection_carries_bytes_both_ways_and_closes_half() {
    let server = echo().await;
    let guest = Edge::shared().guest(&[&format!("tcp=echo=127.0.0.1:{}", server.port())]);
    let long = "over and over ".repeat(20_000);
    let (said, ended, bill) = guest.ran(&["connect", "echo", &long]).await;
    ended.unwrap();
    assert!(said.starts_with(&format!("heard {}", long.to_uppercase())), "{}", said.len());
    assert_eq!((bill.requests, bill.denials), (1, 0));
    let [entry] = guest.audit().try_into().unwrap();
    assert_eq!((entry.bytes_out, entry.bytes_in), (long.len() as u64, long.len() as u64));
    server.left_alone().await;
}

#[tokio::test]
async fn what_has_no_grant_no_server_or_no_place_is_not_opened() {
    let server = echo().await;
    let port = server.port();
    names().give("private.endpoint", &["127.0.0.1"]);
    let closed = Server::raw("127.0.0.1:0", |_| async {}).await.port();
    let grants = [
        format!("tcp=echo=127.0.0.1:{port}"),
        format!("tcp=named=private.endpoint:{port}"),
        "tcp=none=127.0.0.1:1".into(),
    ];
    let grants: Vec<_> = grants.iter().map(String::as_str).collect();
    let guest = Edge::shared().guest(&grants);
    let _ = closed;
    for (name, expected) in [
        ("other", "leasehold provider grant reach tcp=other=HOST:PORT"),
        ("named", "leads to 127.0.0.1, this machine"),
        ("none", "ConnectError::Unreachable"),
    ] {
        let said = guest.run(&["connect", name, "x"]).await;
        assert!(said.contains(expected), "{name}: {said}");
    }
    let said = guest.run(&["connect-many", "echo", "20"]).await;
    assert!(
        said.contains("open 16 then") && said.contains("limit `connections` hit: 17 of at most 16"),
        "{said}"
    );
    server.left_alone().await;
}

#[tokio::test]
async fn secrets_do_not_travel_over_plain_connections() {
    let server = echo().await;
    let grant = format!("tcp=echo=127.0.0.1:{}", server.port());
    let guest = Edge::shared().guest(&[&grant]).with_secret("s3cr3t-value", Value::Null);
    let said = guest.run(&["connect", "echo", "key $key"]).await;
    assert!(said.contains("refused") && said.contains("secrets do not travel"), "{said}");
}
