//! What holds for every run there can be: all declarations, all sets of methods, all narrowings.

#![allow(clippy::panic, reason = "a test that cannot go on has failed")]

use leasehold_contract::capability::{Capability, Declared, Effective, LeasePolicy, Narrowing, resolve};
use leasehold_contract::{Method, Verification};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Every method that some capability needs.
const METHODS: [Method; 6] = [
    Method::ResumeLease,
    Method::ReleaseLease,
    Method::DestroyLease,
    Method::SyncIn,
    Method::SyncOut,
    Method::Execute,
];

/// The needs once more, as bits of [`METHODS`], written down apart from the code's own table.
const NEEDS: [u32; 6] = [0b000_111, 0b001_000, 0b010_000, 0b100_000, 0b100_000, 0b100_000];
const OPT_IN: [bool; 6] = [true, false, false, false, false, true];

fn verification(methods: u32) -> Verification {
    Verification::of((0..6).filter(|bit| methods & (1 << bit) != 0).map(|bit| METHODS[bit]))
}

/// The declaration with this number: three states a key.
fn declaration(number: usize) -> [Option<bool>; 6] {
    let mut rest = number;
    std::array::from_fn(|_| {
        let state = rest % 3;
        rest /= 3;
        [None, Some(false), Some(true)][state]
    })
}

fn declared(values: &[Option<bool>; 6]) -> Declared {
    Capability::ALL.into_iter().zip(values).filter_map(|(key, value)| Some((key, (*value)?))).collect()
}

/// Every narrowing a run can get from its lease and its configuration.
fn narrowings() -> Vec<Narrowing> {
    let policies = [None].into_iter().chain(LeasePolicy::ALL.map(Some));
    let metadata = [
        Value::Null,
        json!({"backend": "job"}),
        json!({"nativeFileSyncUnsupported": true}),
        json!({"backend": "job", "nativeFileSyncUnsupported": true}),
    ];
    let mut all = Vec::new();
    for policy in policies {
        for metadata in &metadata {
            for failed in [false, true] {
                let narrowing = Narrowing::none().lease_policy(policy).lease_metadata(metadata);
                all.push(narrowing.config_resolution_failed(failed));
            }
        }
    }
    all
}

/// Every set of methods.
fn verifications() -> Vec<(u32, Verification)> {
    (0..1 << METHODS.len()).map(|methods| (methods, verification(methods))).collect()
}

/// The formula once more, written down apart from the code.
fn expected(index: usize, methods: u32, values: &[Option<bool>; 6], narrowed: bool) -> bool {
    methods & NEEDS[index] == NEEDS[index] && values[index].unwrap_or(!OPT_IN[index]) && !narrowed
}

#[test]
fn every_run_there_can_be_is_the_intersection_and_says_why() {
    let (verifications, narrowings) = (verifications(), narrowings());
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for worker in 0..workers {
            let (verifications, narrowings) = (&verifications, &narrowings);
            // One worker takes every declaration whose number falls to it.
            scope.spawn(move || {
                for values in (worker..3_usize.pow(6)).step_by(workers).map(declaration) {
                    let declared = declared(&values);
                    for (methods, verification) in verifications {
                        for narrowing in narrowings {
                            let effective = resolve(verification, &declared, narrowing);
                            check(&effective, *methods, &values, narrowing);
                        }
                    }
                }
            });
        }
    });
}

/// Checks one run: the intersection, and a reason for exactly the denials.
fn check(effective: &Effective, methods: u32, values: &[Option<bool>; 6], narrowing: &Narrowing) {
    for (index, capability) in Capability::ALL.into_iter().enumerate() {
        let found = effective.get(capability);
        let granted = expected(index, methods, values, narrowing.removes(capability));
        let explained = found.reason().is_some_and(|reason| !reason.is_empty());
        if found.effective() != granted || explained == granted {
            panic!("{capability}: {methods:b} {values:?} {narrowing:?} gave {found:?}");
        }
    }
}

#[test]
fn a_reason_names_exactly_the_causes_of_a_denial() {
    for (index, capability) in Capability::ALL.into_iter().enumerate() {
        for value in [None, Some(false), Some(true)] {
            let declared: Declared = value.map(|value| (capability, value)).into_iter().collect();
            for (methods, verification) in verifications() {
                for narrowing in narrowings() {
                    let effective = resolve(&verification, &declared, &narrowing);
                    let reason = effective.get(capability).reason().unwrap_or_default();
                    let causes = [
                        ("not verified: ", methods & NEEDS[index] != NEEDS[index]),
                        ("declared", !value.unwrap_or(!OPT_IN[index])),
                        ("narrowed: ", narrowing.removes(capability)),
                    ];
                    for (cause, applies) in causes {
                        assert_eq!(reason.contains(cause), applies, "{capability}: {reason}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_narrowing_of_one_key_touches_no_other() {
    for capability in Capability::ALL {
        let narrowing = Narrowing::none().remove(capability, "a reason");
        for number in 0..3_usize.pow(6) {
            let declared = declared(&declaration(number));
            let full = verification(0b111_111);
            let open = resolve(&full, &declared, &Narrowing::none());
            for (other, found) in resolve(&full, &declared, &narrowing).iter() {
                assert_eq!(found.effective(), other != capability && open.has(other), "{capability} {other}");
            }
        }
    }
}

proptest! {
    #[test]
    fn narrowing_further_never_adds_and_order_does_not_matter(
        methods in 0_u32..64, number in 0_usize..729,
        first in prop::collection::vec(0_usize..6, 0..6), second in prop::collection::vec(0_usize..6, 0..6),
    ) {
        let remove = |keys: &[usize]| {
            keys.iter().fold(Narrowing::none(), |all, key| all.remove(Capability::ALL[*key], "a reason"))
        };
        let (first, second) = (remove(&first), remove(&second));
        let (verification, declared) = (verification(methods), declared(&declaration(number)));
        let both = resolve(&verification, &declared, &first.clone().and(&second));
        let turned = resolve(&verification, &declared, &second.clone().and(&first));
        let (one, other) =
            (resolve(&verification, &declared, &first), resolve(&verification, &declared, &second));
        for capability in Capability::ALL {
            prop_assert_eq!(both.has(capability), one.has(capability) && other.has(capability));
            prop_assert_eq!(both.has(capability), turned.has(capability));
        }
    }

    #[test]
    fn a_declaration_never_adds_to_what_the_methods_give_except_by_asking(
        methods in 0_u32..64, number in 0_usize..729,
    ) {
        let values = declaration(number);
        let undeclared = resolve(&verification(methods), &Declared::nothing(), &Narrowing::none());
        let effective = resolve(&verification(methods), &declared(&values), &Narrowing::none());
        for (index, (capability, found)) in effective.iter().enumerate() {
            if found.effective() {
                prop_assert!(undeclared.has(capability) || capability.opt_in());
                prop_assert_ne!(values[index], Some(false));
            }
        }
    }
}
