//! `leasehold explain declaration`.

use leasehold_contract::declaration::{driver, manifest};
use serde_json::{Value, json};

/// Validates one driver declaration, or one manifest when the keys are a manifest's.
pub(super) fn explain(input: &Value) -> Result<Value, String> {
    let is_manifest = ["environmentDrivers", "pluginKey"].iter().any(|key| input.get(key).is_some());
    let faults = if is_manifest { manifest(input).err() } else { driver(input).err() };
    let errors = faults.unwrap_or_default();
    Ok(json!({"ok": errors.is_empty(), "errors": errors}))
}
