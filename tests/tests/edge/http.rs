//! Requests that are allowed, and requests that are not.

use leasehold_contract::authority::Permission;
use leasehold_engine::{CallError, Limit};
use leasehold_tests::edge::{Edge, Server, heard, names, ok, with_head};
use tokio::io::AsyncWriteExt as _;

#[tokio::test]
async fn a_request_arrives_with_the_hosts_own_host_and_length_and_is_written_down() {
    let server =
        Server::answering(|_| with_head("x-from: server\r\nconnection: keep-alive\r\n", b"hello")).await;
    let guest = Edge::shared().guest(&[&server.grant()]);
    let url = server.url("/a?b=c");
    let said = guest.run(&["request", "PUT", &url, "-h", "x-mine:1", "-b", "body"]).await;
    assert!(said.contains("status 200\n") && said.contains("header x-from: server\n"), "{said}");
    assert!(said.contains("body hello\n") && said.contains("egress Some(Verdict::Allowed)"), "{said}");
    assert!(!said.contains("header connection"), "{said}");
    let request = &server.requests()[0];
    assert!(request.starts_with("PUT /a?b=c HTTP/1.1\r\n"), "{request}");
    for line in [format!("host: 127.0.0.1:{}", server.port()), "x-mine: 1".into(), "content-length: 4".into()]
    {
        assert!(request.contains(&format!("{line}\r\n")), "{line}: {request}");
    }
    assert!(request.ends_with("\r\n\r\nbody"), "{request}");
    let [entry] = guest.audit().try_into().unwrap();
    assert_eq!(
        (entry.permission, entry.denied, entry.bytes_out, entry.bytes_in),
        (Permission::Http, None, 4, 5)
    );
    assert_eq!(entry.target, format!("PUT http://127.0.0.1:{}", server.port()));
    assert_eq!((entry.tenant.as_str(), entry.method.as_str()), ("tenant", "environmentExecute"));
}

#[tokio::test]
async fn what_is_not_granted_is_a_typed_error_that_says_what_would_grant_it() {
    let guest = Edge::shared().guest(&["http=https://api.example.com"]);
    let (said, ended, bill) = guest.ran(&["request", "GET", "http://other.example/"]).await;
    ended.unwrap();
    assert!(said.starts_with("error ErrorCode::HttpRequestDenied"), "{said}");
    assert!(said.contains("leasehold provider grant reach http=http://other.example"), "{said}");
    assert_eq!(bill.denials, 1);
    let [entry] = guest.audit().try_into().unwrap();
    assert!(entry.denied.unwrap().contains("is not granted"));
    let undeclared = guest.declared(&["time", "http=https://else.example"]);
    let said = undeclared.run(&["request", "GET", "https://api.example.com/"]).await;
    assert!(said.contains("does not declare it"), "{said}");
}

#[tokio::test]
async fn connections_are_used_again_by_the_next_call_of_the_same_environment() {
    let server = Server::answering(|_| ok("x")).await;
    let guest = Edge::shared().guest(&[&server.grant()]);
    for _ in 0..3 {
        assert_eq!(guest.run(&["many", "5", &server.url("/")]).await, "answered 5 bytes 5\n");
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn a_kept_connection_that_the_server_closed_is_replaced_without_the_guest_noticing() {
    let server = Server::raw("127.0.0.1:0", |mut stream| async move {
        // Promises to go on, and closes.
        if heard(&mut stream).await.is_some() {
            let _ = stream.write_all(&ok("x")).await;
        }
    })
    .await;
    let guest = Edge::shared().guest(&[&server.grant()]);
    assert_eq!(guest.run(&["many", "20", &server.url("/")]).await, "answered 20 bytes 20\n");
}

#[tokio::test]
async fn a_name_is_granted_by_name_and_leads_only_where_it_may() {
    let server = Server::answering(|_| ok("x")).await;
    let port = server.port();
    let url = |host: &str| format!("http://{host}:{port}/");
    for (name, addresses, grants, expected) in [
        ("private.test", vec!["127.0.0.1"], vec!["http=http://private.test:*"], "DestinationIpProhibited"),
        ("mapped.test", vec!["::ffff:127.0.0.1"], vec!["http=http://*:*"], "DestinationIpProhibited"),
        (
            "metadata.test",
            vec!["169.254.169.254"],
            vec!["http=http://*:*,0.0.0.0/0"],
            "DestinationIpProhibited",
        ),
        ("network.test", vec!["127.0.0.1"], vec!["http=http://network.test:*,127.0.0.0/8"], "status 200"),
    ] {
        names().give(name, &addresses);
        let said = Edge::shared().guest(&grants).run(&["request", "GET", &url(name)]).await;
        assert!(said.contains(expected), "{name}: {said}");
    }
    let said =
        Edge::shared().guest(&["http=http://localhost:*"]).run(&["request", "GET", &url("localhost")]).await;
    assert!(said.contains("status 200"), "{said}");
    for odd in ["127.1", "0x7f000001", "2130706433", "0177.0.0.1", "127.0.0.1."] {
        let said = Edge::shared().guest(&["http=http://*:*"]).run(&["request", "GET", &url(odd)]).await;
        assert!(said.starts_with("error"), "{odd}: {said}");
    }
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn times_the_guest_asks_for_are_kept() {
    let silent =
        Server::raw("127.0.0.1:0", |mut stream| async move { while heard(&mut stream).await.is_some() {} })
            .await;
    let guest = Edge::shared().guest(&[&silent.grant()]);
    let said = guest.run(&["request", "GET", &silent.url("/"), "-w", "50"]).await;
    assert!(said.starts_with("error ErrorCode::ConnectionReadTimeout"), "{said}");
}

#[tokio::test]
async fn bodies_are_bounded_each_way_and_headers_too() {
    let server = Server::answering(|_| ok(&"x".repeat(300_000))).await;
    let guest = Edge::shared().guest(&[&server.grant()]);
    let received = guest.clone().limited(&[(Limit::HttpReceived, 100_000)]);
    let said = received.run(&["download", &server.url("/")]).await;
    assert!(said.contains("then HTTP response body size exceeds limit"), "{said}");
    let sent = guest.clone().limited(&[(Limit::HttpSent, 100_000)]);
    let said = sent.run(&["upload", "300000", &server.url("/")]).await;
    assert!(said.contains("HttpRequestBodySize"), "{said}");
    let requests = guest.clone().limited(&[(Limit::HttpRequests, 3)]);
    let said = requests.run(&["many", "5", &server.url("/")]).await;
    assert!(said.contains("ConnectionLimitReached") && said.contains("after 3"), "{said}");
    let header = format!("x-long:{}", "y".repeat(70_000));
    let (_, ended, _) = guest.ran(&["request", "GET", &server.url("/"), "-h", &header]).await;
    assert!(matches!(ended, Err(CallError::Limit { limit: Limit::HttpHeaders, .. })));
}

#[tokio::test]
async fn methods_that_are_for_proxies_are_refused() {
    let server = Server::answering(|_| ok("x")).await;
    let guest = Edge::shared().guest(&[&server.grant()]);
    for method in ["CONNECT", "TRACE"] {
        let said = guest.run(&["request", method, &server.url("/")]).await;
        assert!(said.starts_with("error ErrorCode::HttpRequestDenied"), "{method}: {said}");
    }
    assert_eq!(server.connections(), 0);
}
