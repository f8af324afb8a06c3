//! Two tenants of one provider at once.

use leasehold_tests::edge::{Edge, Server, ok};
use serde_json::Value;

#[tokio::test]
async fn two_tenants_at_once_never_meet() {
    let server = Server::answering(|request| {
        let key = request.lines().find(|line| line.starts_with("authorization: ")).unwrap_or("none");
        ok(&key.replace("secret-of-", "seen "))
    })
    .await;
    let both = Edge::shared().guest(&[&server.grant()]).with_secret("secret-of-TENANT", Value::Null);
    let (one, two) = (both.clone().of_tenant("one"), both.of_tenant("two"));
    let url = server.url("/");
    let work = async |guest: &leasehold_tests::edge::Guest, name: &str| {
        for turn in 0..10 {
            let said = guest.run(&["request", "GET", &url, "-h", "authorization:$key"]).await;
            assert!(said.contains(&format!("seen {name}")), "{said}");
            let value = format!("{name}-{turn}");
            guest.run(&["state", "set", "mine", &value]).await;
            let kept = guest.run(&["state", "get", "mine"]).await;
            assert!(kept.starts_with(&value), "{kept}");
        }
    };
    tokio::join!(work(&one, "one"), work(&two, "two"));
    // A connection belongs to one of them.
    assert_eq!(server.connections(), 2);
    for (guest, tenant) in [(&one, "one"), (&two, "two")] {
        assert!(guest.audit().iter().any(|entry| entry.tenant == tenant));
    }
}
