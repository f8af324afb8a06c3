//! `leasehold explain capabilities`.

use crate::input::{boolean, given, object, wrong};
use crate::narrowing;
use leasehold_contract::capability::{Capability, Declared, Effective, IdentityFailure, deny, resolve};
use leasehold_contract::declaration::DRIVER_KEYS;
use leasehold_contract::{Method, Verification};
use serde_json::{Map, Value, json};

const KEYS: [&str; 8] = [
    "methods",
    "declared",
    "leasePolicy",
    "leaseMetadata",
    "configResolutionFailed",
    "narrowing",
    "identityFailed",
    "supportsReusableLeases",
];

/// Resolves one run. Fails on wrong types and unknown lease policies.
pub(super) fn explain(input: &Value) -> Result<Value, String> {
    let input = object(input)?;
    let mut ignored: Vec<String> =
        input.keys().filter(|key| !KEYS.contains(&key.as_str())).cloned().collect();
    let verification = methods(input, &mut ignored)?;
    let declared = declared(input, &mut ignored)?;
    let narrowing = narrowing::of_run(input)?;
    let effective = match identity(input)? {
        Some(failure) => deny(&failure),
        None => resolve(&verification, &declared, &narrowing),
    };
    Ok(shown(&effective, &ignored))
}

fn shown(effective: &Effective, ignored: &[String]) -> Value {
    let flags: Map<_, _> =
        effective.iter().map(|(key, found)| (key.name().to_owned(), found.effective().into())).collect();
    let reasons: Map<_, _> = effective
        .iter()
        .filter_map(|(key, found)| Some((key.name().to_owned(), found.reason()?.into())))
        .collect();
    let mut output = json!({"effective": flags, "reasons": reasons});
    if !ignored.is_empty() {
        output["ignored"] = json!(ignored);
    }
    output
}

/// The methods as if each were verified. Names the contract does not have prove nothing.
fn methods(input: &Map<String, Value>, ignored: &mut Vec<String>) -> Result<Verification, String> {
    let Some(value) = given(input, "methods") else { return Ok(Verification::default()) };
    let expected = "an array of method names";
    let names = value.as_array().ok_or_else(|| wrong("methods", expected, value))?;
    let mut known = Vec::new();
    for name in names {
        let name = name.as_str().ok_or_else(|| wrong("methods", expected, name))?;
        match Method::by_name(name) {
            Some(method) => known.push(method),
            None => ignored.push(format!("methods.{name}")),
        }
    }
    Ok(Verification::of(known))
}

/// The declaration, given as the capabilities alone or inside a whole driver. The older field for reuse
/// counts wherever it stands, the nearer one first, and always after `reusableLeases`.
fn declared(input: &Map<String, Value>, ignored: &mut Vec<String>) -> Result<Declared, String> {
    let outer_legacy = boolean(input, "supportsReusableLeases", "")?;
    let Some(value) = given(input, "declared") else {
        return Ok(Declared::nothing().with_legacy_reuse(outer_legacy));
    };
    let expected = "the sandboxCapabilities object or a driver declaration";
    let object = value.as_object().ok_or_else(|| wrong("declared", expected, value))?;
    let legacy = boolean(object, "supportsReusableLeases", "declared.")?.or(outer_legacy);
    let is_driver = ["sandboxCapabilities", "driverKey"].iter().any(|key| object.contains_key(*key));
    if !is_driver {
        return Ok(capabilities(object, "declared.", ignored)?.with_legacy_reuse(legacy));
    }
    let unknown = object.keys().filter(|key| !DRIVER_KEYS.contains(&key.as_str()));
    ignored.extend(unknown.map(|key| format!("declared.{key}")));
    let nested = match given(object, "sandboxCapabilities") {
        None => Declared::nothing(),
        Some(value) => {
            let path = "declared.sandboxCapabilities";
            let object = value.as_object().ok_or_else(|| wrong(path, "an object", value))?;
            capabilities(object, "declared.sandboxCapabilities.", ignored)?
        }
    };
    Ok(nested.with_legacy_reuse(legacy))
}

fn capabilities(
    object: &Map<String, Value>,
    path: &str,
    ignored: &mut Vec<String>,
) -> Result<Declared, String> {
    let mut declared = Declared::nothing();
    for key in object.keys() {
        match Capability::by_name(key) {
            Some(capability) => {
                if let Some(value) = boolean(object, key, path)? {
                    declared = declared.with(capability, value);
                }
            }
            // Read by the caller, who knows that a driver has it one level up.
            None if key == "supportsReusableLeases" && path == "declared." => {}
            None => ignored.push(format!("{path}{key}")),
        }
    }
    Ok(declared)
}

fn identity(input: &Map<String, Value>) -> Result<Option<IdentityFailure>, String> {
    let text = match given(input, "identityFailed") {
        None | Some(Value::Bool(false)) => return Ok(None),
        Some(Value::String(text)) if !text.trim().is_empty() => text,
        Some(Value::Bool(true) | Value::String(_)) => "not established",
        Some(other) => return Err(wrong("identityFailed", "true, false or a text", other)),
    };
    Ok(Some(IdentityFailure::Reported(text.to_owned())))
}
