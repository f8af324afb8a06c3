//! The key-value store of a provider.

use leasehold_contract::authority::Permission;
use leasehold_engine::Limit;
use leasehold_tests::edge::Edge;

#[tokio::test]
async fn a_value_is_written_over_the_version_that_is_named_and_no_other() {
    let guest = Edge::shared().guest(&[]);
    let act = async |words: &[&str]| guest.run(&[&["state"], words].concat()).await.trim_end().to_owned();
    assert_eq!(act(&["get", "a"]).await, "absent");
    assert_eq!(act(&["set", "a", "one", "0"]).await, "version 1");
    assert_eq!(act(&["set", "a", "two", "0"]).await, "error StateError::Conflict(Some(1))");
    assert_eq!(act(&["set", "a", "two", "1"]).await, "version 2");
    assert_eq!(act(&["get", "a"]).await, "two@2");
    assert_eq!(act(&["remove", "a", "1"]).await, "error StateError::Conflict(Some(2))");
    assert_eq!(act(&["remove", "a"]).await, "removed true");
    assert_eq!(act(&["remove", "a"]).await, "removed false");
    // A version that was ever given is never given again.
    assert_eq!(act(&["set", "a", "three"]).await, "version 3");
    assert_eq!(act(&["set", "b", "soon gone", "-", "0"]).await, "version 4");
    assert_eq!(act(&["get", "b"]).await, "absent");
    assert!(
        guest.audit().iter().all(|entry| entry.permission == Permission::State && entry.denied.is_none())
    );
}

#[tokio::test]
async fn a_flood_of_keys_ends_at_the_quota() {
    let guest = Edge::shared().guest(&[]);
    let said = guest.run(&["state", "flood", "5000"]).await;
    assert!(
        said.starts_with("wrote 1000 then") && said.contains("limit `state-keys` hit: 1001 of at most 1000"),
        "{said}"
    );
    let said = guest.run(&["state", "big", "100000"]).await;
    assert!(said.contains("limit `state-value-bytes` hit: 100000 of at most 65536 bytes"), "{said}");
    let small = Edge::shared().guest(&[]).limited(&[(Limit::StateBytes, 100)]);
    let said = small.run(&["state", "big", "98"]).await;
    assert!(said.contains("limit `state-bytes` hit: 101 of at most 100"), "{said}");
    let long = "k".repeat(257);
    let said = guest.run(&["state", "set", &long, "x"]).await;
    assert!(said.contains("a key has 1 to 256 bytes, not 257"), "{said}");
}

#[tokio::test]
async fn what_was_not_declared_is_refused_in_the_call_too() {
    let guest = Edge::shared().guest(&[]).declared(&["time"]);
    assert!(guest.run(&["state", "get", "a"]).await.contains("StateError::Unavailable"));
    assert!(guest.audit()[0].denied.as_ref().unwrap().contains("does not declare it"));
}
