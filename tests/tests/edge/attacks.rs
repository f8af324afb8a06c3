//! Servers and guests that do what they should not.

use leasehold_engine::{CallError, Limit};
use leasehold_tests::edge::{Edge, Server, heard, names, ok, with_head};
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;

#[tokio::test]
async fn a_redirect_is_the_guests_to_follow_and_is_judged_again() {
    let server = Server::answering(|_| {
        b"HTTP/1.1 302 Found\r\nlocation: http://169.254.169.254/latest\r\ncontent-length: 0\r\n\r\n".to_vec()
    })
    .await;
    let guest = Edge::shared().guest(&[&server.grant(), "http=http://*"]);
    let said = guest.run(&["request", "GET", &server.url("/")]).await;
    assert!(
        said.contains("status 302\n") && said.contains("header location: http://169.254.169.254/latest"),
        "{said}"
    );
    let said = guest.run(&["request", "GET", "http://169.254.169.254/latest"]).await;
    assert!(said.starts_with("error ErrorCode::DestinationIpProhibited"), "{said}");
    assert!(said.contains("a cloud's metadata service"), "{said}");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_name_that_changes_its_address_leads_nowhere_it_may_not() {
    let good = Server::answering(|_| ok("good")).await;
    let port = good.port();
    let victim = Server::at(&format!("127.0.0.2:{port}"), |_| ok("victim")).await;
    names().give("rebind.test", &["127.0.0.1", "127.0.0.2"]);
    let grant = format!("http=http://rebind.test:{port},127.0.0.1");
    let url = format!("http://rebind.test:{port}/");
    let guest = Edge::shared().guest(&[&grant]);
    assert!(guest.run(&["request", "GET", &url]).await.contains("body good"));
    // The kept connection goes on leading to the address that was judged; a new one is judged anew.
    assert!(guest.run(&["request", "GET", &url]).await.contains("body good"));
    let said = guest.clone().of_tenant("another").run(&["request", "GET", &url]).await;
    assert!(said.starts_with("error ErrorCode::DestinationIpProhibited"), "{said}");
    assert_eq!((good.connections(), victim.connections()), (1, 0));
}

#[tokio::test]
async fn a_target_in_absolute_form_never_leaves() {
    let server = Server::answering(|_| ok("x")).await;
    let guest = Edge::shared().guest(&[&server.grant()]);
    for path in ["/!http://other.example/", "/!*", "/!other.example:80"] {
        let said = guest.run(&["request", "GET", &server.url(path)]).await;
        assert!(said.starts_with("refused path"), "{path}: {said}");
    }
    for url in ["http://good.example@127.0.0.1/", "http://127.0.0.1:80:80/", "http://[::1/"] {
        let said = guest.run(&["request", "GET", url]).await;
        assert!(said.starts_with("refused authority") || said.starts_with("error"), "{url}: {said}");
    }
    let said = guest.run(&["request", "GET", &server.url("/"), "-h", "host:other.example"]).await;
    assert!(said.contains("header host: HeaderError::Forbidden"), "{said}");
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn lengths_that_contradict_each_other_are_refused_on_both_sides() {
    for head in [
        "content-length: 5\r\ntransfer-encoding: chunked\r\n",
        "content-length: 5\r\ncontent-length: 5\r\n",
        "content-length: 5\r\ncontent-length: 6\r\n",
        "content-length: +5\r\n",
    ] {
        let server = Server::answering(move |_| {
            format!("HTTP/1.1 200 OK\r\n{head}\r\n5\r\nhello\r\n0\r\n\r\n").into_bytes()
        })
        .await;
        let guest = Edge::shared().guest(&[&server.grant()]);
        let said = guest.run(&["request", "GET", &server.url("/")]).await;
        assert!(said.starts_with("error ErrorCode::"), "{head:?}: {said}");
    }
    let server = Server::answering(|_| ok("x")).await;
    let guest = Edge::shared().guest(&[&server.grant()]);
    let url = server.url("/");
    let said =
        guest.run(&["request", "POST", &url, "-h", "content-length:4", "-h", "content-length:4"]).await;
    assert!(said.contains("HeaderError"), "{said}");
    let said = guest.run(&["request", "POST", &url, "-h", "transfer-encoding:chunked"]).await;
    assert!(said.contains("HeaderError::Forbidden"), "{said}");
    // Less and more than was announced.
    for (length, body) in [("9", "four"), ("2", "four")] {
        let said = guest
            .run(&["request", "POST", &url, "-h", &format!("content-length:{length}"), "-p", body])
            .await;
        assert!(said.starts_with("error"), "{length}: {said}");
    }
    assert!(server.requests().iter().all(|request| !request.ends_with("four")), "{:?}", server.requests());
}

#[tokio::test]
async fn trailers_carry_nothing_that_a_header_may_not() {
    let server = Server::answering(|_| {
        let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x-sum\r\n\r\n";
        format!("{head}1\r\nx\r\n0\r\nx-sum: 1\r\n\r\n").into_bytes()
    })
    .await;
    let guest = Edge::shared().guest(&[&server.grant()]);
    let url = server.url("/");
    for name in ["host", "transfer-encoding", "connection", "trailer"] {
        let said = guest.run(&["request", "POST", &url, "-p", "x", "-t", &format!("{name}:evil")]).await;
        assert!(said.contains("HeaderError::Forbidden"), "{name}: {said}");
    }
    let said =
        guest.run(&["request", "POST", &url, "-p", "x", "-t", "authorization:evil", "-t", "x-sum:1"]).await;
    assert!(said.contains("status 200"), "{said}");
    assert!(server.requests().iter().all(|request| !request.contains("evil")), "{:?}", server.requests());
}

#[tokio::test]
async fn a_hundred_thousand_headers_are_not_taken_in() {
    let server = Server::answering(|_| {
        let fields: String = (0..100_000).map(|i| format!("x-{i}: y\r\n")).collect();
        format!("HTTP/1.1 200 OK\r\n{fields}content-length: 0\r\n\r\n").into_bytes()
    })
    .await;
    let guest = Edge::shared().guest(&[&server.grant()]);
    let said = guest.run(&["request", "GET", &server.url("/")]).await;
    assert!(said.starts_with("error ErrorCode::HttpResponseHeaderSectionSize"), "{said}");
    let long = Server::answering(|_| with_head(&format!("x-long: {}\r\n", "y".repeat(100_000)), b"")).await;
    let said = Edge::shared().guest(&[&long.grant()]).run(&["request", "GET", &long.url("/")]).await;
    assert!(said.starts_with("error ErrorCode::HttpResponseHeaderSectionSize"), "{said}");
}

#[tokio::test]
async fn a_body_that_never_ends_ends_with_a_limit() {
    let drip = Server::raw("127.0.0.1:0", |mut stream| async move {
        heard(&mut stream).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n").await;
        while stream.write_all(b"x").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    let guest = Edge::shared().guest(&[&drip.grant()]).limited(&[(Limit::Wall, 300)]);
    let (_, ended, _) = guest.ran(&["download", &drip.url("/")]).await;
    assert!(matches!(ended, Err(CallError::Limit { limit: Limit::Wall, .. })), "{ended:?}");
    drip.left_alone().await;

    let endless = Server::raw("127.0.0.1:0", |mut stream| async move {
        heard(&mut stream).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await;
        let piece = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
        while stream.write_all(piece.as_bytes()).await.is_ok() {}
    })
    .await;
    let guest = Edge::shared().guest(&[&endless.grant()]).limited(&[(Limit::HttpReceived, 1 << 20)]);
    let said = guest.run(&["download", &endless.url("/")]).await;
    assert!(said.contains("then"), "{said}");
    endless.left_alone().await;
}

#[tokio::test]
async fn ten_thousand_requests_at_once_are_thirty_two() {
    let silent =
        Server::raw("127.0.0.1:0", |mut stream| async move { while heard(&mut stream).await.is_some() {} })
            .await;
    let guest = Edge::shared().guest(&[&silent.grant()]);
    let said = guest.run(&["flood", "10000", &silent.url("/")]).await;
    assert!(said.starts_with("open 32 refused 9968"), "{said}");
    assert!(said.contains("limit `http-open` hit"), "{said}");
    assert!(silent.connections() <= 32);
    // Nothing of a call outlives it.
    silent.left_alone().await;
}

#[tokio::test]
async fn a_connection_that_a_guest_keeps_ends_with_its_call() {
    let server = Server::raw("127.0.0.1:0", |mut stream| async move {
        heard(&mut stream).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n12345").await;
        while heard(&mut stream).await.is_some() {}
    })
    .await;
    let guest = Edge::shared().guest(&[&server.grant()]);
    assert_eq!(guest.run(&["keep", &server.url("/")]).await, "kept 200\n");
    server.left_alone().await;
}

#[tokio::test]
async fn a_guest_that_sleeps_is_woken_by_its_clock() {
    let guest = Edge::shared().guest(&[]).limited(&[(Limit::Wall, 200)]);
    let (_, ended, bill) = guest.ran(&["sleep", "3600000"]).await;
    assert!(matches!(ended, Err(CallError::Limit { limit: Limit::Wall, .. })), "{ended:?}");
    assert!(bill.wall() >= Duration::from_millis(200));
}
