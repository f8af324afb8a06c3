//! How long calls may take.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use leasehold_contract::Method;
use leasehold_contract::budget::{self, Budget, BudgetRequest, budget};
use leasehold_contract::declaration::DriverKind;
use leasehold_contract::method::METHODS;
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Map, Value, json};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Case {
    name: String,
    method: String,
    requested: Option<f64>,
    config: Map<String, Value>,
    declared: Option<u64>,
    kind: Option<DriverKind>,
    timeout_ms: u64,
}

#[test]
fn every_call_gets_the_time_the_table_says() {
    let cases: Vec<Case> = serde_json::from_str(include_str!("data/budgets.json")).unwrap();
    for case in cases {
        let request = BudgetRequest {
            requested_ms: case.requested,
            config: &case.config,
            declared_acquire_ms: case.declared,
            kind: case.kind.unwrap_or(DriverKind::SandboxProvider),
        };
        let found = budget(Method::by_name(&case.method).unwrap(), &request);
        assert_eq!(found.timeout_ms, case.timeout_ms, "{}: {}", case.name, found.because);
    }
}

fn of(method: Method, requested_ms: Option<f64>, config: &Value, declared: Option<u64>) -> Budget {
    let config = config.as_object().unwrap();
    let kind = DriverKind::SandboxProvider;
    budget(method, &BudgetRequest { requested_ms, config, declared_acquire_ms: declared, kind })
}

#[test]
fn a_request_that_is_no_finite_number_is_no_request() {
    for requested in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, f64::MIN] {
        let found = of(Method::Execute, Some(requested), &json!({"timeoutMs": 1234}), None);
        assert_eq!(found.timeout_ms, 31_234, "{requested}");
    }
}

#[test]
fn the_sentence_names_the_values_it_used() {
    let cases = [
        (
            of(Method::Execute, Some(1000.0), &json!({}), None),
            "the requested 1000 ms plus the margin of 30000 ms",
        ),
        (
            of(Method::AcquireLease, None, &json!({"bridgeRequestTimeoutMs": 600_000}), Some(300_000)),
            "the declared defaultAcquireTimeoutMs 300000 ms raised by the configured bridgeRequestTimeoutMs \
             600000 ms plus the margin of 30000 ms",
        ),
        (
            of(Method::StopLease, None, &json!({"timeoutMs": 90_000}), None),
            "the configured timeoutMs 90000 ms plus the margin of 30000 ms, capped at the 60000 ms of a stop",
        ),
        (
            of(Method::Execute, Some(1e300), &json!({}), None),
            "the requested 1e300 ms plus the margin of 30000 ms, capped at 2147483647 ms",
        ),
        (of(Method::Probe, None, &json!({}), None), "environmentProbe always gets 120000 ms"),
    ];
    for (found, because) in cases {
        assert_eq!(found.because, because);
    }
}

fn time() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<f64>().prop_map(|number| json!(number)),
        any::<i64>().prop_map(|number| json!(number)),
        (0_u32..200_000).prop_map(|number| json!(number)),
        Just(json!("5000")),
        Just(Value::Null),
    ]
}

proptest! {
    #[test]
    fn every_time_is_within_the_bounds_and_has_a_sentence(
        method in 0..METHODS.len(), requested in proptest::option::of(any::<f64>()),
        timeout in time(), bridge in time(), declared in proptest::option::of(any::<u64>()),
        plain in any::<bool>(),
    ) {
        let config = json!({"timeoutMs": timeout, "bridgeRequestTimeoutMs": bridge});
        let kind = if plain { DriverKind::EnvironmentDriver } else { DriverKind::SandboxProvider };
        let request = BudgetRequest {
            requested_ms: requested, config: config.as_object().unwrap(), declared_acquire_ms: declared, kind,
        };
        let method = METHODS[method].method;
        let found = budget(method, &request);
        prop_assert!((1..=budget::CEILING_MS).contains(&found.timeout_ms));
        prop_assert!(!found.because.is_empty());
        if method == Method::StopLease {
            prop_assert!(found.timeout_ms <= budget::STOP_CEILING_MS);
        }
    }

    #[test]
    fn a_declared_time_reaches_nothing_but_acquisition_and_resume(
        method in 0..METHODS.len(), timeout in time(), declared in any::<u64>(),
    ) {
        let method = METHODS[method].method;
        let config = json!({"timeoutMs": timeout});
        if !matches!(method, Method::AcquireLease | Method::ResumeLease) {
            prop_assert_eq!(of(method, None, &config, Some(declared)), of(method, None, &config, None));
        }
    }
}
