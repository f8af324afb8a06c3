//! `leasehold explain budget`.

use crate::input::{given, object, what, wrong};
use leasehold_contract::Method;
use leasehold_contract::budget::{BudgetRequest, MAX_DECLARED_ACQUIRE_MS, budget};
use leasehold_contract::declaration::DriverKind;
use leasehold_contract::method::METHODS;
use serde_json::{Map, Value, json};

const KEYS: [&str; 5] = ["method", "requestedTimeoutMs", "config", "defaultAcquireTimeoutMs", "kind"];

/// Gives one call its time. Fails on a method or kind that does not exist and on wrong types.
pub(super) fn explain(input: &Value) -> Result<Value, String> {
    let input = object(input)?;
    let method = method(input)?;
    let nothing = Map::new();
    let config = match given(input, "config") {
        None => &nothing,
        Some(value) => value.as_object().ok_or_else(|| wrong("config", "an object", value))?,
    };
    let request = BudgetRequest {
        // A caller may hand over whatever it was given; what is no number is no request.
        requested_ms: input.get("requestedTimeoutMs").and_then(Value::as_f64),
        config,
        declared_acquire_ms: declared(input)?,
        kind: kind(input)?,
    };
    let budget = budget(method, &request);
    let mut output = json!({"timeoutMs": budget.timeout_ms, "because": budget.because});
    let ignored: Vec<_> = input.keys().filter(|key| !KEYS.contains(&key.as_str())).collect();
    if !ignored.is_empty() {
        output["ignored"] = json!(ignored);
    }
    Ok(output)
}

fn method(input: &Map<String, Value>) -> Result<Method, String> {
    let value = input.get("method").unwrap_or(&Value::Null);
    value.as_str().and_then(Method::by_name).ok_or_else(|| {
        let known: Vec<_> = METHODS.iter().map(|info| info.name).collect();
        format!("method: expected one of {}, found {}", known.join(", "), what(value))
    })
}

fn kind(input: &Map<String, Value>) -> Result<DriverKind, String> {
    let Some(value) = given(input, "kind") else { return Ok(DriverKind::SandboxProvider) };
    let known = DriverKind::ALL.map(DriverKind::name).join(" or ");
    value.as_str().and_then(DriverKind::by_name).ok_or_else(|| wrong("kind", &known, value))
}

fn declared(input: &Map<String, Value>) -> Result<Option<u64>, String> {
    let Some(value) = given(input, "defaultAcquireTimeoutMs") else { return Ok(None) };
    let whole = value.as_f64().filter(|number| number.fract() == 0.0).map(|number| number as u64);
    match whole.filter(|ms| (1..=MAX_DECLARED_ACQUIRE_MS).contains(ms)) {
        Some(ms) => Ok(Some(ms)),
        None => {
            let expected = format!("a whole number from 1 to {MAX_DECLARED_ACQUIRE_MS}");
            Err(wrong("defaultAcquireTimeoutMs", &expected, value))
        }
    }
}
