//! A decision that says yes costs no memory: guests make thousands of them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use leasehold_contract::authority::{HttpTarget, Policy, Scheme};

#[test]
fn a_yes_allocates_nothing() {
    let grants = (0..50).map(|i| format!("http=https://*.host-{i}.example.com,GET,POST,10.0.0.0/8"));
    let grants = grants.chain(["tcp=ssh=10.0.0.5:22".into(), "unix-http=docker=/run/docker.sock".into()]);
    let asks = vec!["http".parse().unwrap(), "tcp=ssh".parse().unwrap(), "unix-http".parse().unwrap()];
    let policy = Policy::new("boxes", Some(asks), grants.map(|text| text.parse().unwrap()).collect());
    let target =
        HttpTarget { scheme: Scheme::Https, host: "a.b.HOST-49.example.com.", port: 443, method: "POST" };
    let docker = HttpTarget { scheme: Scheme::Http, host: "docker", port: 80, method: "GET" };
    let counted = allocation_counter::measure(|| {
        assert!(policy.http(&target).is_ok() && policy.http(&docker).is_ok());
        assert!(policy.connect("ssh").is_ok() && !policy.reveals("key"));
    });
    assert_eq!(counted.count_total, 0);
}
