//! What one run takes away, as people and scripts write it.

use crate::input::{boolean, given, wrong};
use leasehold_contract::capability::{Capability, LeasePolicy, Narrowing};
use serde_json::{Map, Value};

/// The narrowing of one run, read from `leasePolicy`, `leaseMetadata`, `configResolutionFailed` and
/// `narrowing`. Fails on wrong types and unknown names.
pub(crate) fn of_run(input: &Map<String, Value>) -> Result<Narrowing, String> {
    let policy = match given(input, "leasePolicy") {
        None => None,
        Some(value) => {
            let known = LeasePolicy::ALL.map(LeasePolicy::name).join(", ");
            let policy = value.as_str().and_then(LeasePolicy::by_name);
            Some(policy.ok_or_else(|| wrong("leasePolicy", &format!("one of {known}"), value))?)
        }
    };
    let metadata = given(input, "leaseMetadata").unwrap_or(&Value::Null);
    if !(metadata.is_object() || metadata.is_null()) {
        return Err(wrong("leaseMetadata", "an object", metadata));
    }
    let failed = boolean(input, "configResolutionFailed", "")?.unwrap_or(false);
    let host = match given(input, "narrowing") {
        None => Narrowing::none(),
        Some(value) => Narrowing::from_json(value).map_err(|fault| format!("narrowing: {fault}"))?,
    };
    let run =
        Narrowing::none().lease_policy(policy).lease_metadata(metadata).config_resolution_failed(failed);
    Ok(run.and(&host))
}

/// The narrowing that `--narrowing` holds: capabilities that are taken away, and facts of the run, in one
/// object.
pub(crate) fn of_argument(text: &str) -> anyhow::Result<Narrowing> {
    let given: Map<String, Value> = serde_json::from_str(text).map_err(|error| {
        anyhow::anyhow!("expected a JSON object such as {{\"nativeSyncIn\":false}}: {error}")
    })?;
    let (capabilities, run): (Map<_, _>, Map<_, _>) =
        given.into_iter().partition(|(key, _)| Capability::by_name(key).is_some());
    const FACTS: [&str; 3] = ["leasePolicy", "leaseMetadata", "configResolutionFailed"];
    if let Some(unknown) = run.keys().find(|key| !FACTS.contains(&key.as_str())) {
        let keys = Capability::ALL.map(Capability::name).join(", ");
        anyhow::bail!("`{unknown}` is no key; there are {keys}, {}", FACTS.join(", "));
    }
    let mut input = run;
    input.insert("narrowing".into(), Value::Object(capabilities));
    of_run(&input).map_err(|fault| anyhow::anyhow!(fault))
}
