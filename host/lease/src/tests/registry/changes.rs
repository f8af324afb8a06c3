//! Installing, upgrading, taking out of use, removing; and the schemas that are kept.

use super::*;

on_both!(
    what_leases_pin_is_needed_until_the_last_has_ended,
    the_same_again_changes_nothing_and_another_needs_an_upgrade,
    an_upgrade_keeps_id_place_and_status_and_needs_something_to_upgrade,
    what_is_part_of_the_host_comes_first_and_stays,
    a_reserved_driver_is_refused,
    what_was_removed_is_gone_and_its_key_free_again,
    enabling_what_is_ready_changes_nothing,
    other_grants_link_a_component_anew,
    a_schema_is_the_first_declarers_whatever_its_status_and_follows_its_revision,
);

fn fault<T: std::fmt::Debug>(outcome: Result<T, RegistryError>) -> InstallFault {
    match outcome.unwrap_err() {
        RegistryError::Install(fault) => fault,
        other => unreachable!("{other}"),
    }
}

async fn the_same_again_changes_nothing_and_another_needs_an_upgrade(home: Home) {
    let (registry, ..) = registry(&home).await;
    let first = package("a", "d1", &[sandbox("k")]);
    assert!(matches!(registry.install(first.clone()).await, Ok(Change::Installed(_))));
    assert!(matches!(registry.install(first.clone()).await, Ok(Change::Unchanged(_))));
    assert!(matches!(registry.upgrade(first).await, Ok(Change::Unchanged(_))));
    let second = package("a", "d2", &[sandbox("k")]);
    let taken = InstallFault::AlreadyInstalled { key: "a".into(), version: "1".into() };
    assert_eq!(fault(registry.install(second.clone()).await), taken);
    let change = registry.upgrade(second).await.unwrap();
    let Change::Upgraded { record, from_digest, live, .. } = change else { unreachable!() };
    assert_eq!((record.digest.as_str(), from_digest.as_str(), live), ("d2", "d1", 0));
    assert_eq!(registry.get("a").await.unwrap(), record);
}

async fn an_upgrade_keeps_id_place_and_status_and_needs_something_to_upgrade(home: Home) {
    let (registry, ..) = registry(&home).await;
    let refusal = refused(registry.upgrade(package("a", "d1", &[sandbox("k")])).await);
    assert_eq!(refusal, Refusal::UnknownKey { key: "a".into() });
    let before = installed(&registry, "a", "k").await;
    registry.set_ready("a", false).await.unwrap();
    registry.upgrade(Package { id: "another".into(), ..package("a", "d2", &[sandbox("l")]) }).await.unwrap();
    let after = registry.get("a").await.unwrap();
    assert_eq!((after.id, after.position), (before.id, before.position));
    assert_eq!(after.status, ProviderStatus::Disabled);
    assert!(registry.declared("k").await.is_err() && registry.declared("l").await.is_ok());
}

async fn what_is_part_of_the_host_comes_first_and_stays(home: Home) {
    let (registry, ..) = registry(&home).await;
    installed(&registry, "a", "local").await;
    let own = Package { embedded: true, ..package("local", "d1", &[sandbox("local")]) };
    registry.ensure(own.clone()).await.unwrap();
    assert_eq!(registry.resolve("local").await.unwrap().record.key, "local");
    assert!(matches!(fault(registry.remove("local").await), InstallFault::Embedded { .. }));
    let other = package("local", "d2", &[sandbox("local")]);
    assert!(matches!(fault(registry.upgrade(other).await), InstallFault::Reserved { .. }));
    registry.set_ready("local", false).await.unwrap();
    registry.ensure(Package { digest: "d2".into(), ..own }).await.unwrap();
    let after = registry.get("local").await.unwrap();
    assert_eq!((after.status, after.digest.as_str()), (ProviderStatus::Disabled, "d2"));
}

async fn a_reserved_driver_is_refused(home: Home) {
    let (registry, ..) = registry(&home).await;
    let fake = package("a", "d1", &[sandbox("fake")]);
    assert_eq!(fault(registry.install(fake).await), InstallFault::Reserved { key: "fake".into() });
}

async fn what_was_removed_is_gone_and_its_key_free_again(home: Home) {
    let (registry, ..) = registry(&home).await;
    installed(&registry, "a", "k").await;
    assert_eq!(registry.remove("a").await.unwrap().live, 0);
    assert!(registry.list().await.unwrap().is_empty());
    assert!(registry.config_schema("k").await.unwrap().is_none());
    assert!(registry.collect().await.unwrap().is_empty());
    let again = Package { id: "prv-again".into(), ..package("a", "d1", &[sandbox("k")]) };
    registry.install(again).await.unwrap();
    assert_eq!(registry.get("a").await.unwrap().id, "prv-again");
}

async fn enabling_what_is_ready_changes_nothing(home: Home) {
    let (registry, ..) = registry(&home).await;
    installed(&registry, "a", "k").await;
    assert!(!registry.set_ready("a", true).await.unwrap());
    assert!(registry.set_ready("a", false).await.unwrap());
    assert!(!registry.set_ready("a", false).await.unwrap());
    assert!(matches!(refused(registry.set_ready("b", true).await), Refusal::UnknownKey { .. }));
}

async fn other_grants_link_a_component_anew(home: Home) {
    let (registry, bench, _) = registry(&home).await;
    let record = installed(&registry, "a", "k").await;
    registry.resolve("k").await.unwrap();
    let store = home.store().await;
    assert!(store.set_provider_grants(&record.id, "[]", "[\"http\"]").await.unwrap());
    assert!(!store.set_provider_grants(&record.id, "[]", "[]").await.unwrap());
    let part = registry.resolve("k").await.unwrap().component;
    assert_eq!((part.pin.grants.as_str(), bench.starts()), ("[\"http\"]", 2));
}

async fn a_schema_is_the_first_declarers_whatever_its_status_and_follows_its_revision(home: Home) {
    let (registry, ..) = registry(&home).await;
    assert_eq!(registry.config_schema("k").await.unwrap(), None);
    installed(&registry, "a", "k").await;
    let mut other = sandbox("k");
    other["configSchema"] = json!({"title": "of b"});
    registry.install(package("b", "d1", &[other.clone()])).await.unwrap();
    registry.set_ready("a", false).await.unwrap();
    for _ in 0..2 {
        assert_eq!(registry.config_schema("k").await.unwrap().unwrap()["title"], "k");
    }
    registry.remove("a").await.unwrap();
    assert_eq!(registry.config_schema("k").await.unwrap().unwrap()["title"], "of b");
    other["configSchema"] = json!({"title": "of b, later"});
    registry.upgrade(package("b", "d1", &[other])).await.unwrap();
    assert_eq!(registry.config_schema("k").await.unwrap().unwrap()["title"], "of b, later");
}

/// What a provider's leases keep, with leases that are in the store for real.
async fn what_leases_pin_is_needed_until_the_last_has_ended(home: Home) {
    let (registry, ..) = registry(&home).await;
    let record = installed(&registry, "a", "k").await;
    let leases = home.leases().await;
    let mut wanted = crate::tests::home::wanted();
    wanted.pins.plugin.clone_from(&record.id);
    let lease = leases.acquire(wanted).await.unwrap().lease;

    let change = registry.upgrade(package("a", "d2", &[sandbox("k")])).await.unwrap();
    assert!(matches!(change, Change::Upgraded { live: 1, .. }), "{change:?}");
    let pair = |digest: &str| (record.id.clone(), digest.to_owned());
    let needed = async || {
        let mut needed = registry.collect().await.unwrap();
        needed.sort();
        needed
    };
    assert_eq!(needed().await, [pair("d1"), pair("d2")]);
    assert_eq!(registry.remove("a").await.unwrap().live, 1);
    assert!(registry.list().await.unwrap().is_empty());
    assert!(registry.resolve("k").await.is_err());
    registry.pinned(&record.id, "d1").await.unwrap();
    // Its key is free, though its row is still there.
    let other = Package { id: "prv-other".into(), ..package("a", "d3", &[sandbox("k")]) };
    registry.install(other).await.unwrap();
    assert!(needed().await.contains(&pair("d1")));

    leases.release(&lease.id, crate::Releasing::default()).await.unwrap();
    assert_eq!(needed().await, [("prv-other".to_owned(), "d3".to_owned())]);
    assert!(matches!(refused(registry.pinned(&record.id, "d1").await), Refusal::UnknownId { .. }));
}
