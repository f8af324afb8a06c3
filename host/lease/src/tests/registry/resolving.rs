//! From a name or a pin to a component.

use super::*;
use leasehold_contract::capability::{
    Capability, Declared, IdentityFailure, Narrowing, deny, resolve as effective,
};
use std::time::Duration;

on_both!(
    the_first_that_is_ready_is_taken_and_without_asking_for_that_the_first_at_all,
    one_that_cannot_be_loaded_is_passed_over,
    each_obstacle_has_a_refusal_of_its_own,
    a_driver_of_the_plain_kind_is_no_sandbox_provider,
    what_may_pass_is_waited_for_until_the_deadline_and_no_longer,
    what_comes_while_it_is_waited_for_is_taken,
    what_cannot_pass_is_not_waited_for,
    a_lease_gets_the_provider_and_the_component_it_pins_and_no_other,
    capabilities_of_a_lease_come_from_the_pinned_declaration,
    a_declaration_that_says_nothing_leaves_it_to_the_methods,
    a_lease_whose_provider_no_longer_declares_its_driver_has_no_capability,
);

const ALL: [Method; 7] = [
    Method::AcquireLease,
    Method::ResumeLease,
    Method::ReleaseLease,
    Method::DestroyLease,
    Method::Execute,
    Method::SyncIn,
    Method::SyncOut,
];

async fn the_first_that_is_ready_is_taken_and_without_asking_for_that_the_first_at_all(home: Home) {
    let (registry, ..) = registry(&home).await;
    installed(&registry, "a", "k").await;
    installed(&registry, "b", "k").await;
    registry.set_ready("a", false).await.unwrap();
    assert_eq!(registry.resolve("k").await.unwrap().record.key, "b");
    assert_eq!(registry.declared("k").await.unwrap().key, "a");
    registry.set_ready("a", true).await.unwrap();
    assert_eq!(registry.resolve("k").await.unwrap().record.key, "a");
}

async fn one_that_cannot_be_loaded_is_passed_over(home: Home) {
    let (registry, bench, _) = registry(&home).await;
    installed(&registry, "a", "k").await;
    installed(&registry, "b", "k").await;
    bench.let_it("a", Does::Fail { passing: false });
    assert_eq!(registry.resolve("k").await.unwrap().record.key, "b");
    assert_eq!(registry.get("a").await.unwrap().status, ProviderStatus::Ready);
}

async fn each_obstacle_has_a_refusal_of_its_own(home: Home) {
    let (registry, bench, _) = registry(&home).await;
    let refusal = refused(registry.resolve("k").await);
    assert_eq!(refusal, Refusal::NotInstalled { driver: "k".into(), known: vec![] });
    installed(&registry, "p", "d").await;
    let refusal = refused(registry.resolve("k").await);
    assert_eq!(refusal, Refusal::NotInstalled { driver: "k".into(), known: vec!["d".into()] });
    assert!(refusal.to_string().contains("no provider `k`") && !refusal.may_pass());
    assert_eq!(refused(registry.resolve("q:d").await), Refusal::UnknownKey { key: "q".into() });

    let refusal = refused(registry.resolve("p:x").await);
    assert_eq!(refusal.to_string(), "provider `p` declares no sandbox provider `x`; it declares: d");
    bench.let_it("p", Does::Fail { passing: false });
    let refusal = refused(registry.resolve("p:d").await);
    let text = "provider `p:d` is installed and its component cannot be used: it is broken";
    assert_eq!(refusal.to_string(), text);
    assert_eq!(refused(registry.resolve("d").await).to_string(), text);
    registry.set_ready("p", false).await.unwrap();
    let refusal = refused(registry.resolve("p:d").await);
    let text = "provider `p:d` is not ready, it is disabled; type `leasehold provider enable p`";
    assert_eq!(refusal.to_string(), text);
    assert_eq!(refused(registry.resolve("d").await).to_string(), text);
}

async fn a_driver_of_the_plain_kind_is_no_sandbox_provider(home: Home) {
    let (registry, ..) = registry(&home).await;
    let plain = driver("k", "environment_driver", json!({}));
    registry.install(package("a", "d1", &[plain])).await.unwrap();
    assert!(matches!(refused(registry.resolve("k").await), Refusal::NotInstalled { .. }));
    assert!(matches!(refused(registry.resolve("a:k").await), Refusal::NotDeclared { .. }));
}

async fn what_may_pass_is_waited_for_until_the_deadline_and_no_longer(home: Home) {
    let (registry, bench, clock) = registry(&home).await;
    installed(&registry, "p", "k").await;
    bench.let_it("p", Does::Fail { passing: true });
    let wait = Wait { every: Duration::from_millis(1), at_most: Duration::from_millis(25) };
    let waiting = registry.resolve_waiting("k", wait, &clock);
    let time = async {
        loop {
            clock.pausing(|time| time == wait.every).await;
            clock.advance(wait.every);
            if bench.starts() > 25 {
                std::future::pending::<()>().await;
            }
        }
    };
    let refused_after = tokio::select! {
        outcome = waiting => refused(outcome),
        () = time => unreachable!("nothing ends the clock"),
    };
    assert!(matches!(refused_after, Refusal::NotLoadable { .. }));
    assert!(bench.starts() >= 2, "{}", bench.starts());
    assert_eq!((POLL_EVERY, POLL_FOR), (Duration::from_millis(100), Duration::from_secs(5)));
}

async fn what_comes_while_it_is_waited_for_is_taken(home: Home) {
    let (registry, bench, clock) = registry(&home).await;
    installed(&registry, "p", "k").await;
    bench.let_it("p", Does::Fail { passing: true });
    let waiting = registry.resolve_waiting("k", Wait::default(), &clock);
    let repair = async {
        clock.pausing(|time| time == POLL_EVERY).await;
        bench.let_it("p", Does::Load(vec![]));
        clock.advance(POLL_EVERY);
    };
    let (resolved, ()) = tokio::join!(waiting, repair);
    assert_eq!(resolved.unwrap().record.key, "p");
}

async fn what_cannot_pass_is_not_waited_for(home: Home) {
    let (registry, bench, clock) = registry(&home).await;
    installed(&registry, "p", "k").await;
    bench.let_it("p", Does::Fail { passing: false });
    assert!(registry.resolve_waiting("k", Wait::default(), &clock).await.is_err());
    assert!(registry.resolve_waiting("other", Wait::default(), &clock).await.is_err());
    assert_eq!(bench.starts(), 1);
}

async fn a_lease_gets_the_provider_and_the_component_it_pins_and_no_other(home: Home) {
    let (registry, ..) = registry(&home).await;
    let first = installed(&registry, "a", "k").await;
    let second = installed(&registry, "b", "k").await;
    registry.upgrade(package("b", "d2", &[sandbox("k")])).await.unwrap();
    registry.set_ready("b", false).await.unwrap();
    for (record, digest) in [(&first, "d1"), (&second, "d1"), (&second, "d2")] {
        let part = registry.pinned(&record.id, digest).await.unwrap();
        assert_eq!((&part.pin.provider, part.pin.digest.as_str()), (&record.id, digest));
    }
    assert!(matches!(refused(registry.pinned("prv-z", "d1").await), Refusal::UnknownId { .. }));
}

async fn capabilities_of_a_lease_come_from_the_pinned_declaration(home: Home) {
    let (registry, bench, _) = registry(&home).await;
    let reuse = json!({"reusableLeases": true, "nativeSyncIn": false, "nativeSyncOut": false});
    let sync = json!({"reusableLeases": false, "nativeSyncIn": true, "nativeSyncOut": true});
    registry.install(package("a", "d1", &[driver("k", "sandbox_provider", reuse)])).await.unwrap();
    registry.install(package("b", "d1", &[driver("k", "sandbox_provider", sync)])).await.unwrap();
    bench.let_it("b", Does::Load(ALL.to_vec()));
    let part = registry.pinned("prv-b", "d1").await.unwrap();
    let declared = registry.declaration("prv-b", "k").await.unwrap().unwrap().capabilities;
    let found = effective(&part.verification, &declared, &Narrowing::none());
    assert!(!found.has(Capability::ReusableLeases));
    assert!(found.has(Capability::NativeSyncIn) && found.has(Capability::NativeSyncOut));
}

async fn a_declaration_that_says_nothing_leaves_it_to_the_methods(home: Home) {
    let (registry, bench, _) = registry(&home).await;
    installed(&registry, "a", "k").await;
    bench.let_it("a", Does::Load(vec![Method::SyncIn, Method::SyncOut]));
    let part = registry.pinned("prv-a", "d1").await.unwrap();
    let declared = registry.declaration("prv-a", "k").await.unwrap().unwrap().capabilities;
    assert_eq!(declared, Declared::nothing());
    let found = effective(&part.verification, &declared, &Narrowing::none());
    assert!(found.has(Capability::NativeSyncIn) && found.has(Capability::NativeSyncOut));
    assert!(!found.has(Capability::ReusableLeases));
}

async fn a_lease_whose_provider_no_longer_declares_its_driver_has_no_capability(home: Home) {
    let (registry, ..) = registry(&home).await;
    installed(&registry, "a", "k").await;
    for drivers in [vec![driver("k", "environment_driver", json!({}))], vec![sandbox("other")]] {
        registry.upgrade(package("a", "d1", &drivers)).await.unwrap();
        let failure = registry.declaration("prv-a", "k").await.unwrap().unwrap_err();
        assert!(matches!(failure, IdentityFailure::NotDeclared { .. }));
        assert!(deny(&failure).iter().all(|(_, found)| !found.effective()));
    }
    let failure = registry.declaration("prv-z", "k").await.unwrap().unwrap_err();
    assert!(matches!(failure, IdentityFailure::UnknownPlugin { .. }));
    assert_eq!(registry.declaration("", "k").await.unwrap().unwrap_err(), IdentityFailure::NoPlugin);
}
