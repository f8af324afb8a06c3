//! What can be chosen, and who is started again for it.

use super::*;
use std::time::Duration;

on_both!(
    one_that_failed_is_started_again_once_when_it_is_on_the_list_and_only_then,
    two_listings_at_once_start_once,
    a_start_that_fails_leaves_the_others_and_what_the_store_says,
    starts_that_never_end_are_waited_for_together,
    what_is_disabled_or_no_sandbox_provider_is_neither_started_nor_listed,
    reuse_is_published_only_when_it_is_declared_and_all_its_methods_are_verified,
    what_is_published_says_everything_a_selector_needs,
);

fn recovering(keys: &[&str]) -> Recovery {
    Recovery { keys: keys.iter().map(|key| (*key).to_owned()).collect(), ..Recovery::default() }
}

async fn keys(registry: &Registry<Bench>, recovery: &Recovery, clock: &HandClock) -> Vec<String> {
    let listed = registry.published(recovery, clock).await.unwrap();
    listed.into_iter().map(|published| published.plugin_key).collect()
}

async fn one_that_failed_is_started_again_once_when_it_is_on_the_list_and_only_then(home: Home) {
    let (registry, bench, clock) = registry(&home).await;
    installed(&registry, "a", "k").await;
    bench.let_it("a", Does::Fail { passing: false });
    registry.resolve("k").await.unwrap_err();
    bench.let_it("a", Does::Load(vec![]));
    assert_eq!(keys(&registry, &recovering(&["b"]), &clock).await, [""; 0]);
    assert_eq!(bench.starts(), 1);
    assert_eq!(keys(&registry, &recovering(&["a"]), &clock).await, ["a"]);
    assert_eq!(keys(&registry, &recovering(&["a"]), &clock).await, ["a"]);
    assert_eq!(bench.starts(), 2);
}

async fn two_listings_at_once_start_once(home: Home) {
    let (registry, bench, clock) = registry(&home).await;
    installed(&registry, "a", "k").await;
    let recovery = recovering(&["a"]);
    let (one, other) = tokio::join!(keys(&registry, &recovery, &clock), keys(&registry, &recovery, &clock));
    assert_eq!((one, other), (vec!["a".to_owned()], vec!["a".to_owned()]));
    assert_eq!(bench.starts(), 1);
}

async fn a_start_that_fails_leaves_the_others_and_what_the_store_says(home: Home) {
    let (registry, bench, clock) = registry(&home).await;
    installed(&registry, "a", "k").await;
    installed(&registry, "b", "l").await;
    bench.let_it("a", Does::Fail { passing: true });
    assert_eq!(keys(&registry, &recovering(&["a", "b"]), &clock).await, ["b"]);
    assert_eq!(registry.get("a").await.unwrap().status, ProviderStatus::Ready);
}

async fn starts_that_never_end_are_waited_for_together(home: Home) {
    let (registry, bench, clock) = registry(&home).await;
    for key in ["a", "b"] {
        installed(&registry, key, key).await;
        bench.let_it(key, Does::Hang);
    }
    installed(&registry, "c", "c").await;
    let recovery = recovering(&["a", "b"]);
    assert_eq!(recovery.wait, Duration::from_millis(2_000));
    let listing = keys(&registry, &recovery, &clock);
    let time = async {
        loop {
            clock.pausing(|time| time == recovery.wait).await;
            if clock.pauses().len() == 2 {
                return clock.advance(recovery.wait);
            }
            tokio::task::yield_now().await;
        }
    };
    let (listed, ()) = tokio::join!(listing, time);
    assert_eq!(listed, ["c"]);
}

async fn what_is_disabled_or_no_sandbox_provider_is_neither_started_nor_listed(home: Home) {
    let (registry, bench, clock) = registry(&home).await;
    installed(&registry, "a", "k").await;
    registry.set_ready("a", false).await.unwrap();
    let plain = driver("k", "environment_driver", json!({}));
    registry.install(package("b", "d1", &[plain])).await.unwrap();
    assert_eq!(keys(&registry, &recovering(&["a", "b"]), &clock).await, [""; 0]);
    assert_eq!(bench.starts(), 0);
}

async fn reuse_is_published_only_when_it_is_declared_and_all_its_methods_are_verified(home: Home) {
    let methods = [Method::ResumeLease, Method::ReleaseLease, Method::DestroyLease];
    let cases = std::iter::once(methods.to_vec())
        .chain(methods.map(|left_out| methods.into_iter().filter(|method| *method != left_out).collect()));
    for verified in cases {
        let all = verified.len() == methods.len();
        let (registry, bench, clock) = registry(&home).await;
        let declares = driver("k", "sandbox_provider", json!({"reusableLeases": true}));
        registry.install(package("a", "d1", &[declares])).await.unwrap();
        installed(&registry, "silent", "k").await;
        for key in ["a", "silent"] {
            bench.let_it(key, Does::Load(verified.clone()));
        }
        let listed = registry.published(&Recovery::default(), &clock).await.unwrap();
        let found: Vec<_> =
            listed.iter().map(|it| (it.reusable_lease_methods_verified, it.reusable_leases)).collect();
        assert_eq!(found, [(all, all), (all, false)], "{verified:?}");
    }
}

async fn what_is_published_says_everything_a_selector_needs(home: Home) {
    let (registry, _, clock) = registry(&home).await;
    installed(&registry, "a", "k").await;
    let listed = registry.published(&Recovery::default(), &clock).await.unwrap();
    let value = serde_json::to_value(&listed[0]).unwrap();
    assert_eq!(
        value,
        json!({"pluginId": "prv-a", "pluginKey": "a", "driverKey": "k", "kind": "sandbox_provider",
            "displayName": "k", "configSchema": {"title": "k"}, "requiresAgent": false,
            "supportsInteractiveSetup": false, "supportsTemplateCapture": false,
            "supportsTemplateDelete": false, "supportsLoginPty": false, "reusableLeases": false,
            "reusableLeaseMethodsVerified": false})
    );
}
