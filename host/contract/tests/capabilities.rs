//! Which capabilities a run has.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use leasehold_contract::capability::{
    Capability, Declared, LeasePolicy, Narrowing, NarrowingFault, native_sync, published_reusable, resolve,
};
use leasehold_contract::method::METHODS;
use leasehold_contract::{Difference, Method, Verdict, Verification};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Case {
    name: String,
    /// An array of names, or `"all"`.
    methods: Value,
    #[serde(default)]
    declared: BTreeMap<String, bool>,
    legacy: Option<bool>,
    policy: Option<LeasePolicy>,
    #[serde(default)]
    metadata: Value,
    #[serde(default)]
    config_failed: bool,
    /// Every capability that is effective; the others are not.
    effective: Vec<String>,
    #[serde(default)]
    reasons: BTreeMap<String, String>,
}

impl Case {
    fn verification(&self) -> Verification {
        match self.methods.as_array() {
            None => all_methods(),
            Some(names) => {
                Verification::of(names.iter().map(|name| Method::by_name(name.as_str().unwrap()).unwrap()))
            }
        }
    }

    fn declared(&self) -> Declared {
        let said = self.declared.iter().map(|(key, value)| (Capability::by_name(key).unwrap(), *value));
        said.collect::<Declared>().with_legacy_reuse(self.legacy)
    }

    fn narrowing(&self) -> Narrowing {
        Narrowing::none()
            .lease_policy(self.policy)
            .lease_metadata(&self.metadata)
            .config_resolution_failed(self.config_failed)
    }
}

fn all_methods() -> Verification {
    Verification::of(METHODS.iter().map(|info| info.method))
}

#[test]
fn every_run_has_what_the_table_says_for_the_reasons_it_says() {
    let cases: Vec<Case> = serde_json::from_str(include_str!("data/capabilities.json")).unwrap();
    for case in cases {
        let effective = resolve(&case.verification(), &case.declared(), &case.narrowing());
        let has: Vec<_> =
            effective.iter().filter(|(_, found)| found.effective()).map(|(key, _)| key.name()).collect();
        assert_eq!(has, case.effective, "{}", case.name);
        for (key, reason) in &case.reasons {
            let found = effective.get(Capability::by_name(key).unwrap());
            assert_eq!(found.reason(), Some(reason.as_str()), "{}: {key}", case.name);
        }
    }
}

#[test]
fn a_key_declared_true_without_any_method_stays_false() {
    for capability in Capability::ALL {
        let declared = Declared::nothing().with(capability, true);
        let effective = resolve(&Verification::default(), &declared, &Narrowing::none());
        assert!(!effective.has(capability), "{capability}");
    }
}

#[test]
fn a_method_of_another_shape_is_named_with_the_difference() {
    let difference = Difference {
        path: "sync-in.params.request".to_owned(),
        expected: "record".to_owned(),
        found: "string".to_owned(),
    };
    let unknown = Verdict::UnknownVersion { found: "9.0.0".to_owned(), served: vec!["0.1.0".to_owned()] };
    let verification: Verification = [
        (Method::SyncIn, Verdict::WrongShape(difference)),
        (Method::ResumeLease, unknown),
        (Method::ReleaseLease, Verdict::Verified),
    ]
    .into_iter()
    .collect();
    let effective = resolve(&verification, &Declared::nothing(), &Narrowing::none());
    let cases = [
        (
            Capability::NativeSyncIn,
            "not verified: environmentSyncIn wrong shape at sync-in.params.request: expected record, found string",
        ),
        (
            Capability::ReusableLeases,
            "not verified: environmentResumeLease version 9.0.0 is not served (served: 0.1.0), \
             environmentDestroyLease absent; not declared (opt-in)",
        ),
    ];
    for (capability, reason) in cases {
        assert_eq!(effective.get(capability).reason(), Some(reason));
    }
}

#[test]
fn a_host_application_can_take_away_and_never_add() {
    let narrowing = Narrowing::from_json(&json!({"nativeSyncIn": false, "reusableLeases": true})).unwrap();
    let effective = resolve(&all_methods(), &Declared::nothing(), &narrowing);
    let sync_in = effective.get(Capability::NativeSyncIn);
    assert_eq!(sync_in.reason(), Some("narrowed: by the host application"));
    assert!(sync_in.narrowed() && sync_in.verified());
    assert!(!effective.has(Capability::ReusableLeases));
    assert!(!effective.get(Capability::ReusableLeases).narrowed());
}

#[test]
fn a_narrowing_that_is_not_understood_is_refused_by_its_key() {
    let key = |key: &str| key.to_owned();
    let cases = [
        (json!({"nativeSync": false}), NarrowingFault::UnknownKey { key: key("nativeSync") }),
        (json!({"nativeSyncIn": "false"}), NarrowingFault::NotABoolean { key: key("nativeSyncIn") }),
        (json!({"nativeSyncIn": null}), NarrowingFault::NotABoolean { key: key("nativeSyncIn") }),
        (json!(["nativeSyncIn"]), NarrowingFault::NotAnObject),
    ];
    for (value, fault) in cases {
        assert_eq!(Narrowing::from_json(&value), Err(fault), "{value}");
    }
}

#[test]
fn two_narrowings_together_remove_what_either_removes() {
    let job = Narrowing::none().lease_metadata(&json!({"backend": "job"}));
    let host = Narrowing::from_json(&json!({"nativeSyncIn": false})).unwrap();
    let both = job.and(&host);
    assert_eq!(both.reasons(Capability::NativeSyncIn), ["job-backed lease", "by the host application"]);
    assert_eq!(both.reasons(Capability::NativeSyncOut), ["job-backed lease"]);
    assert!(!both.removes(Capability::ReusableLeases));
}

#[test]
fn native_sync_is_used_in_both_directions_or_in_none() {
    let cases = [
        (vec![Method::SyncIn, Method::SyncOut], true, true),
        (vec![Method::SyncIn, Method::SyncOut], false, false),
        (vec![Method::SyncIn], true, false),
        (vec![Method::SyncOut], true, false),
        (vec![], true, false),
    ];
    for (methods, lease, expected) in cases {
        let effective = resolve(&Verification::of(methods), &Declared::nothing(), &Narrowing::none());
        assert_eq!(native_sync(&effective, lease), expected);
    }
}

#[test]
fn reuse_is_published_only_when_asked_for_and_fully_verified() {
    let yes = Declared::nothing().with(Capability::ReusableLeases, true);
    assert!(published_reusable(&all_methods(), &yes));
    assert!(!published_reusable(&all_methods(), &Declared::nothing()));
    assert!(!published_reusable(
        &all_methods(),
        &Declared::nothing().with(Capability::ReusableLeases, false)
    ));
    for left_out in [Method::ResumeLease, Method::ReleaseLease, Method::DestroyLease] {
        let methods = METHODS.iter().map(|info| info.method).filter(|method| *method != left_out);
        let verification = Verification::of(methods);
        assert!(!Capability::ReusableLeases.verified_by(&verification), "{left_out}");
        assert!(!published_reusable(&verification, &yes), "{left_out}");
    }
}

#[test]
fn the_result_shows_every_key_in_json() {
    let effective = resolve(&Verification::of([Method::SyncIn]), &Declared::nothing(), &Narrowing::none());
    let shown = serde_json::to_value(&effective).unwrap();
    assert_eq!(shown.as_object().unwrap().len(), Capability::ALL.len());
    assert_eq!(
        shown["nativeSyncIn"],
        json!({"effective": true, "verified": true, "declared": null, "narrowed": false})
    );
    assert_eq!(shown["nativeSyncOut"]["reason"], "not verified: environmentSyncOut absent");
}
