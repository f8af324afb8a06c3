//! Secrets that a guest uses and never sees.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use leasehold_engine::hook::{AcquireLease, ValidateConfig};
use leasehold_tests::act::acquire;
use leasehold_tests::edge::{Edge, Guest, Server, ok, with_head};
use serde_json::{Value, json};

const VALUE: &str = "s3cr3t/value+with \"quotes\"";

/// The placeholder a guest has is another for each call, so a command that uses it asks for it first: the
/// word `KEY` in the fixture's arguments stands for it.
fn guest(server: &Server, said: Value) -> Guest {
    Edge::shared().guest(&[&server.grant()]).with_secret(VALUE, said)
}

#[tokio::test]
async fn a_guest_has_a_placeholder_and_the_server_the_value() {
    let server = Server::answering(|_| ok("x")).await;
    let guest = guest(&server, Value::Null);
    let config: Value = serde_json::from_str(&guest.run(&["config"]).await).unwrap();
    let placeholder = config["key"].as_str().unwrap();
    assert!(placeholder.starts_with("lhsecret_") && placeholder.len() == 41, "{placeholder}");
    let again: Value = serde_json::from_str(&guest.run(&["config"]).await).unwrap();
    assert_ne!(again["key"], config["key"]);

    let said = guest.run(&["request", "GET", &server.url("/"), "-h", "authorization:Bearer $key"]).await;
    assert!(said.contains("status 200"), "{said}");
    assert!(
        server.requests()[0].contains(&format!("authorization: Bearer {VALUE}\r\n")),
        "{:?}",
        server.requests()
    );
    let said = guest.run(&["request", "GET", &server.url("/"), "-h", "authorization:$basic"]).await;
    assert!(said.contains("status 200"), "{said}");
    let basic = STANDARD.encode(format!("user:{VALUE}"));
    assert!(
        server.requests()[1].contains(&format!("authorization: Basic {basic}\r\n")),
        "{:?}",
        server.requests()
    );
}

#[tokio::test]
async fn a_secret_stands_in_a_query_or_a_body_only_where_its_schema_says() {
    let server = Server::answering(|_| ok("x")).await;
    let url = server.url("/?key=$key");
    let json_header = "content-type:application/json";
    let body = "{\"key\":\"$key\"}";
    let headers_alone = guest(&server, Value::Null);
    for request in [
        vec!["request", "GET", &url],
        vec!["request", "POST", &url[..url.len() - 9], "-b", body],
        vec!["request", "POST", &url[..url.len() - 9], "-p", "beginning $key"],
    ] {
        let said = headers_alone.run(&request).await;
        assert!(said.contains("HttpRequestDenied"), "{request:?}: {said}");
    }
    assert!(server.requests().iter().all(|request| !request.contains("s3cr3t")), "{:?}", server.requests());
    let everywhere = guest(&server, json!({"in": ["query", "body"]}));
    let said = everywhere.run(&["request", "POST", &url, "-h", json_header, "-b", body]).await;
    assert!(said.contains("status 200"), "{said}");
    let request = server.requests().pop().unwrap();
    assert!(request.contains("/?key=s3cr3t%2Fvalue%2Bwith%20%22quotes%22 HTTP/1.1"), "{request}");
    assert!(request.ends_with("{\"key\":\"s3cr3t/value+with \\\"quotes\\\"\"}"), "{request}");
    let said = everywhere.run(&["request", "GET", &url[..url.len() - 9], "-h", "authorization:$key"]).await;
    assert!(said.contains("may not stand in a header"), "{said}");
}

#[tokio::test]
async fn a_placeholder_that_is_sent_elsewhere_or_in_parts_is_a_denied_request() {
    let good = Server::answering(|_| ok("x")).await;
    let other = Server::answering(|_| ok("x")).await;
    let to = json!({"to": [format!("http://127.0.0.1:{}", good.port())]});
    let guest = Edge::shared().guest(&[&good.grant(), &other.grant()]).with_secret(VALUE, to);
    let cases = [
        (other.url("/"), vec!["-h", "authorization:$key"], "is not bound to this destination"),
        (other.url("/?$key"), vec![], "is not bound to this destination"),
        (other.url("/"), vec!["-p", "$key"], "placeholder is in the body"),
        (good.url("/"), vec!["-h", "x-a:$first", "-h", "x-b:$second"], "none of this call"),
        (good.url("/"), vec!["-p", "$first", "-p", "$second"], "placeholder is in the body"),
        (
            good.url("/"),
            vec!["-h", "authorization:lhsecret_00000000000000000000000000000000"],
            "none of this call",
        ),
    ];
    for (url, rest, expected) in cases {
        let argv: Vec<_> = ["request", "POST", &url].into_iter().chain(rest).collect();
        let said = guest.run(&argv).await;
        assert!(said.contains("HttpRequestDenied") && said.contains(expected), "{argv:?}: {said}");
    }
    // Even a grant of every host is no place for a secret that is bound to none.
    let wide = Edge::shared().guest(&["http=http://*:*,127.0.0.0/8"]).with_secret(VALUE, Value::Null);
    let said = wide.run(&["request", "GET", &other.url("/"), "-h", "authorization:$key"]).await;
    assert!(said.contains("is not bound to this destination"), "{said}");
    for request in good.requests().into_iter().chain(other.requests()) {
        assert!(!request.contains("s3cr3t"), "{request}");
    }
}

#[tokio::test]
async fn a_secret_that_a_server_echoes_is_masked_in_every_form() {
    let server = Server::answering(|request| {
        let mode = request.split(' ').nth(1).unwrap_or_default();
        let base64 = STANDARD.encode(format!("ab{VALUE}c"));
        match mode {
            "/header" => with_head(&format!("x-echo: {VALUE}\r\n"), b"x"),
            "/body" => ok(&format!("before {VALUE} after")),
            "/base64" => ok(&base64),
            "/url" => ok("k=s3cr3t%2fvalue%2bwith%20%22quotes%22"),
            "/gzip" => with_head("content-encoding: gzip\r\n", b"\x1f\x8b\x08\x00whatever"),
            _ => {
                let piece = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
                let (first, second) = VALUE.split_at(9);
                let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
                format!("{head}{}{}0\r\nx-sum: {VALUE}\r\n\r\n", piece(first), piece(second)).into_bytes()
            }
        }
    })
    .await;
    let guest = guest(&server, Value::Null);
    for path in ["/header", "/body", "/base64", "/url", "/pieces"] {
        let said = guest.run(&["request", "GET", &server.url(path)]).await;
        assert!(said.contains("status 200") && said.contains("****"), "{path}: {said}");
        assert!(!said.contains("s3cr3t") && !said.contains("value"), "{path}: {said}");
    }
    let said = guest.run(&["request", "GET", &server.url("/gzip"), "-h", "accept-encoding:gzip"]).await;
    assert!(said.contains("HttpResponseContentCoding"), "{said}");
    assert!(server.requests().iter().all(|request| request.contains("accept-encoding: identity\r\n")));
}

#[tokio::test]
async fn a_revealed_secret_is_seen_by_the_guest_and_by_nobody_else() {
    let grants = ["secrets.reveal=key"];
    let hidden = Edge::shared().guest(&[]).with_secret(VALUE, Value::Null);
    assert!(hidden.run(&["config"]).await.contains("lhsecret_"));
    let undeclared = Edge::shared().guest(&grants).with_secret(VALUE, Value::Null).declared(&["time"]);
    assert!(undeclared.run(&["config"]).await.contains("lhsecret_"));

    let revealed = Edge::shared().guest(&grants).with_secret(VALUE, Value::Null);
    let said = revealed.run(&["config"]).await;
    assert!(!said.contains("lhsecret_") && !said.contains("s3cr3t") && said.contains("***"), "{said}");
    let (output, ended, _) = revealed.ran(&["fail", VALUE]).await;
    ended.unwrap();
    assert_eq!(output, "");
    let lease = revealed.call(AcquireLease { request: acquire("name") }).await.answer.unwrap().unwrap();
    let metadata = lease.metadata.unwrap();
    assert!(!metadata.contains("s3cr3t") && metadata.contains("****"), "{metadata}");
}

#[tokio::test]
async fn a_returned_configuration_holds_references_again_and_none_that_was_not_issued() {
    for grants in [&[][..], &["secrets.reveal=key"]] {
        let guest = Edge::shared().guest(grants).with_secret(VALUE, Value::Null);
        let accepted = guest.call(ValidateConfig {}).await.answer.unwrap().unwrap();
        let normalized: Value = serde_json::from_str(&accepted.normalized.unwrap()).unwrap();
        assert_eq!(normalized["key"], "env:KEY");
    }
}
