//! Grants, asks, and what is left of both.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use leasehold_contract::authority::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn grant(text: &str) -> Grant {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn policy(declared: Option<&[&str]>, granted: &[&str]) -> Policy {
    let declared = declared.map(|asks| asks.iter().map(|ask| ask.parse().unwrap()).collect());
    Policy::new("boxes", declared, granted.iter().map(|text| grant(text)).collect())
}

fn target<'a>(scheme: Scheme, host: &'a str, port: u16, method: &'a str) -> HttpTarget<'a> {
    HttpTarget { scheme, host, port, method }
}

#[test]
fn a_grant_is_read_and_written_in_one_form() {
    let cases = [
        ("time", "time"),
        ("jail", "jail"),
        ("http=https://API.Example.com", "http=https://api.example.com"),
        ("http=https://api.example.com:443/", "http=https://api.example.com"),
        ("http=http://api.example.com:443", "http=http://api.example.com:443"),
        ("http=https://*.example.com:*,GET,POST", "http=https://*.example.com:*,GET,POST"),
        ("http=https://*", "http=https://*"),
        ("http=http://127.0.0.1:8080", "http=http://127.0.0.1:8080"),
        ("http=http://[::1]:8080,GET", "http=http://[::1]:8080,GET"),
        ("http=https://in.example,10.1.2.3/8,GET", "http=https://in.example,GET,10.0.0.0/8"),
        ("http=https://in.example,10.1.2.3", "http=https://in.example,10.1.2.3/32"),
        ("tcp=10.0.0.5:22", "tcp=10.0.0.5:22"),
        ("tcp=ssh=host.example:22", "tcp=ssh=host.example:22"),
        ("tcp=ssh=[fd00::1]:22", "tcp=ssh=[fd00::1]:22"),
        ("unix-http=docker=/run/docker.sock", "unix-http=docker=/run/docker.sock"),
        ("unix-http=odd=/run/a,b=c.sock", "unix-http=odd=/run/a,b=c.sock"),
        ("secrets.reveal=auth.key", "secrets.reveal=auth.key"),
    ];
    for (text, written) in cases {
        let read = grant(text);
        assert_eq!(read.to_string(), written, "{text}");
        assert_eq!(grant(written), read, "{text}");
        assert_eq!(serde_json::from_value::<Grant>(serde_json::to_value(&read).unwrap()).unwrap(), read);
    }
}

#[test]
fn a_text_that_is_no_grant_is_told_what_to_write() {
    let cases = [
        ("", "names no permission; known: http, tcp"),
        ("sockets", "names no permission"),
        ("HTTP=https://x", "names no permission"),
        ("http", "`http` alone would allow everything; say what: `http=https://HOST`"),
        ("http=", "would allow everything"),
        ("unix-http", "say what: `unix-http=NAME=/PATH`"),
        ("secrets.reveal", "say what"),
        ("time=now", "`time` stands alone; leave `=now` out"),
        ("http=api.example.com", "has to begin with https://"),
        ("http=ftp://api.example.com", "the scheme is http or https"),
        ("http=https://api.example.com/v1", "a grant is for a whole host"),
        ("http=https://me@api.example.com", "a host has no user name"),
        ("http=https://api.example.com:0", "the port is no number"),
        ("http=https://api.example.com:99999", "the port is no number"),
        ("http=https://api.example.com:+1", "the port is no number"),
        ("http=https://fd00::1", "an IPv6 address stands in brackets"),
        ("http=https://[fd00::1", "an IPv6 address stands in brackets"),
        ("http=https://[10.0.0.1]", "the host is no name"),
        ("http=https://a.*.example.com", "the host is no name"),
        ("http=https://*example.com", "the host is no name"),
        ("http=https://2130706433", "the host is no name"),
        ("http=https://0x7f.0x1", "the host is no name"),
        ("http=https://-a.example", "the host is no name"),
        ("http=https://", "the host is no name"),
        ("http=https://x.example,get", "an item is a method in capitals or a network"),
        ("http=https://x.example,", "an item is a method"),
        ("tcp=ssh", "the port is missing"),
        ("tcp=ssh=host.example", "the port is missing"),
        ("tcp=a b=host.example:22", "a name is letters"),
        ("unix-http=docker", "the path is missing"),
        ("unix-http=docker=run/docker.sock", "the path of a socket is absolute"),
        ("unix-http=docker.io=/run/docker.sock", "a name is 1 to 63"),
        ("unix-http=127=/run/docker.sock", "a name is not a number"),
        ("unix-http=localhost=/run/docker.sock", "`localhost` is the machine itself"),
        ("secrets.reveal=auth..key", "names joined by dots"),
    ];
    for (text, expected) in cases {
        let error = text.parse::<Grant>().unwrap_err().to_string();
        assert!(error.contains(expected), "{text:?}: {error}");
    }
}

#[test]
fn a_host_pattern_means_whole_labels_and_addresses_however_written() {
    let cases = [
        ("api.example.com", "API.example.com.", true),
        ("api.example.com", "api.example.com.evil.example", false),
        ("api.example.com", "xapi.example.com", false),
        ("*.example.com", "a.example.com", true),
        ("*.example.com", "a.b.example.com", true),
        ("*.example.com", "example.com", false),
        ("*.example.com", ".example.com", false),
        ("*.example.com", "evilexample.com", false),
        ("*.example.com", "a.EXAMPLE.com", true),
        ("*.example.com", "ä.example.com", true),
        ("*.example.com", "aexample.cöm", false),
        ("*", "anything", true),
        ("127.0.0.1", "127.0.0.1", true),
        ("127.0.0.1", "127.1", false),
        ("[::1]", "::1", true),
        ("[::1]", "0:0:0:0:0:0:0:1", true),
        ("[::ffff:1.2.3.4]", "1.2.3.4", false),
    ];
    for (pattern, host, expected) in cases {
        let Grant::Http(rule) = grant(&format!("http=https://{pattern}")) else { panic!() };
        assert_eq!(rule.host.matches(host), expected, "{pattern} {host}");
    }
}

#[test]
fn a_request_needs_a_declaration_and_a_grant_and_is_told_which_is_missing() {
    let granted = ["http=https://*.example.com,GET", "http=http://plain.example:8080"];
    let declared = ["http=https://api.example.com", "http=http://plain.example:8080"];
    let policy = policy(Some(&declared), &granted);
    let allowed = |target| policy.http(&target).map(|_| ()).map_err(|denial| denial.to_string());
    assert_eq!(allowed(target(Scheme::Https, "api.example.com", 443, "GET")), Ok(()));
    assert_eq!(allowed(target(Scheme::Http, "plain.example", 8080, "DELETE")), Ok(()));
    let cases = [
        (
            target(Scheme::Https, "api.example.com", 443, "POST"),
            "`wasi:http/outgoing-handler`: POST https://api.example.com is not allowed: `boxes` is not granted \
             it; `leasehold provider grant boxes http=https://api.example.com` does",
        ),
        (
            target(Scheme::Https, "other.example.com", 443, "GET"),
            "`wasi:http/outgoing-handler`: GET https://other.example.com is not allowed: `boxes` does not \
             declare it; its author adds \"http=https://other.example.com\" to `permissions` in the declaration",
        ),
    ];
    for (target, expected) in cases {
        assert_eq!(allowed(target), Err(expected.to_owned()));
    }
    for target in [
        target(Scheme::Http, "api.example.com", 443, "GET"),
        target(Scheme::Https, "api.example.com", 8443, "GET"),
        target(Scheme::Https, "api.example.com", 443, "get"),
        target(Scheme::Http, "plain.example", 80, "GET"),
    ] {
        assert!(allowed(target).is_err(), "{target:?}");
    }
}

#[test]
fn a_socket_takes_the_place_of_a_host_and_only_of_plain_http() {
    let policy =
        policy(Some(&["unix-http=docker", "http"]), &["unix-http=docker=/run/d.sock", "http=http://*:*"]);
    let way = |scheme, host, port| policy.http(&target(scheme, host, port, "GET"));
    let socket = HttpWay::Unix { name: "docker", socket: "/run/d.sock" };
    assert_eq!(way(Scheme::Http, "docker", 80), Ok(socket));
    assert_eq!(way(Scheme::Http, "DOCKER", 80), Ok(socket));
    assert!(matches!(way(Scheme::Http, "docker", 81), Ok(HttpWay::Network(_))));
    assert!(way(Scheme::Https, "docker", 443).is_err());
    assert!(matches!(policy.connect("docker"), Ok(ConnectWay::Unix { socket: "/run/d.sock", .. })));
}

#[test]
fn a_connection_is_found_by_its_name_alone() {
    let policy = policy(Some(&["tcp=ssh"]), &["tcp=ssh=10.0.0.5:22", "tcp=10.0.0.6:22"]);
    let Ok(ConnectWay::Tcp(endpoint)) = policy.connect("ssh") else { panic!() };
    assert_eq!((endpoint.host.to_string().as_str(), endpoint.port), ("10.0.0.5", 22));
    for (name, expected) in [
        ("10.0.0.6:22", "does not declare it"),
        ("10.0.0.5:22", "does not declare it"),
        ("Ssh", "does not declare it"),
        ("a\u{1b}[2J", "a\\u{1b}[2J"),
    ] {
        let denial = policy.connect(name).unwrap_err().to_string();
        assert!(denial.contains(expected), "{denial}");
    }
}

#[test]
fn without_a_declaration_grants_decide_and_with_an_empty_one_nothing_is_allowed() {
    let target = target(Scheme::Https, "x.example", 443, "GET");
    assert!(policy(None, &["http=https://x.example"]).http(&target).is_ok());
    let denial = policy(Some(&[]), &["http=https://x.example", "time"]);
    assert!(matches!(denial.http(&target).unwrap_err().missing, Missing::Declaration(_)));
    assert!(denial.permissions().is_empty());
    assert_eq!(denial.unused(&BTreeSet::from([Permission::Http, Permission::Time])).len(), 2);
}

#[test]
fn grants_of_which_nothing_can_come_are_named() {
    let policy = policy(
        Some(&["http=https://a.example", "time", "unix-http=docker", "secrets.reveal=key"]),
        &["http=https://*", "http=http://*", "time", "random", "unix-http=podman=/p", "secrets.reveal=key"],
    );
    let wanted = BTreeSet::from([Permission::Http, Permission::UnixHttp]);
    let unused: Vec<_> = policy.unused(&wanted).into_iter().map(ToString::to_string).collect();
    assert_eq!(unused, ["http=http://*", "time", "random", "unix-http=podman=/p"]);
    let permissions = BTreeSet::from([Permission::Http, Permission::Time, Permission::RevealSecret]);
    assert_eq!(policy.permissions(), permissions);
    assert!(policy.reveals("key") && !policy.reveals("other"));
}

proptest! {
    #[test]
    fn what_a_grant_writes_it_reads(text in "(http=https?://(\\*\\.)?[a-z]{1,8}\\.[a-z]{2,5}(:[1-9][0-9]{0,3}|:\\*)?(,GET|,POST|,10\\.0\\.0\\.0/8){0,4}|tcp=([a-z]{1,9}=)?[a-z]{2,9}:[1-9][0-9]{0,3}|unix-http=[a-z][a-z0-9-]{0,9}=/[ -~]{0,20})") {
        let read = grant(&text);
        prop_assert_eq!(grant(&read.to_string()), read);
    }

    #[test]
    fn no_text_makes_the_reader_fail_and_no_host_the_matcher(text in ".{0,80}", host in ".{0,40}") {
        let _ = text.parse::<Grant>();
        let _ = text.parse::<Ask>();
        let policy = policy(None, &["http=https://*.example.com", "http=https://[::1]", "unix-http=d=/d"]);
        let allowed = policy.http(&target(Scheme::Https, &host, 443, "GET")).is_ok();
        let lower = host.to_ascii_lowercase();
        prop_assert!(!allowed || lower.trim_end_matches('.').ends_with(".example.com") || lower.contains(':'));
    }
}
