//! `leasehold explain secrets`.

use crate::input::{given, object, wrong};
use leasehold_contract::secret::{for_validation, paths, strip};
use serde_json::{Value, json};

const KEYS: [&str; 3] = ["schema", "config", "metadata"];

/// Finds the secrets of a schema, and what is left of metadata without them. Fails on wrong types.
pub(super) fn explain(input: &Value) -> Result<Value, String> {
    let input = object(input)?;
    let empty = json!({});
    let part = |key: &'static str| match given(input, key) {
        Some(value) if value.is_object() => Ok(Some(value)),
        Some(value) => Err(wrong(key, "an object", value)),
        None => Ok(None),
    };
    let paths = paths(part("schema")?.unwrap_or(&empty));
    let mut output = json!({"paths": paths, "stripped": null});
    if let Some(metadata) = part("metadata")? {
        let mut stripped = metadata.clone();
        strip(&mut stripped, &paths);
        output["stripped"] = stripped;
    }
    // What a provider's own validation would be asked about is said only where it would not be asked.
    if let Some(Err(fault)) = part("config")?.map(|config| for_validation(config, &paths)) {
        output["errors"] = json!([fault]);
    }
    let ignored: Vec<_> = input.keys().filter(|key| !KEYS.contains(&key.as_str())).collect();
    if !ignored.is_empty() {
        output["ignored"] = json!(ignored);
    }
    Ok(output)
}
