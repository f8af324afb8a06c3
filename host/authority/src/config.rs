//! A configuration before anybody uses it: checked by its schema, and made fit to be stored.

use jsonschema::{PatternOptions, Validator};
use leasehold_contract::declaration::Fault;
use leasehold_contract::secret::{SecretField, Stored, Version, Written, at, fields, put};
use leasehold_contract::text::plain;
use serde_json::{Map, Value};

/// Keys that belong to the host. A provider never sees them, whatever its schema says.
pub const HOST_KEYS: [&str; 11] = [
    "driver",
    "executionWorkspaceMode",
    "pluginId",
    "pluginKey",
    "providerMetadata",
    "remoteCwd",
    "shellCommand",
    "sandboxProviderPlugin",
    "sandboxLeaseAcquisition",
    "nativeHarnessBackup",
    "nativeWorkspaceSync",
];

/// Faults that are told at once. Nobody mends more at a time.
const FAULTS_MAX: usize = 50;

/// The longest message; a schema's own texts and patterns may be of any length.
const MESSAGE_MAX: usize = 300;

/// A configuration without what is the host's, with its secrets as references that can be stored.
///
/// # Errors
/// When the schema is none, or the configuration does not fit it; every fault at once. No value of a secret is
/// in a message.
pub fn checked(
    schema: &Map<String, Value>,
    config: &Map<String, Value>,
) -> Result<Map<String, Value>, Vec<Fault>> {
    let schema = Value::Object(schema.clone());
    let fields = fields(&schema)?;
    let mut config = config.clone();
    for key in HOST_KEYS {
        config.shift_remove(key);
    }
    let config = Value::Object(config);
    let mut faults = unfit(&schema, &config, &fields)?;
    match (Stored::all(&config, &fields), faults.is_empty()) {
        (Ok(Value::Object(stored)), true) => Ok(stored),
        (Ok(_), _) => Err(faults),
        (Err(more), _) => {
            faults.extend(more);
            Err(faults)
        }
    }
}

/// Where a configuration does not fit its schema.
fn unfit(schema: &Value, config: &Value, fields: &[SecretField]) -> Result<Vec<Fault>, Vec<Fault>> {
    let validator =
        validator(schema).map_err(|message| vec![Fault { path: "configSchema".into(), message }])?;
    // A schema describes the secret; here stands a reference to it, which is always a text.
    let mut described = config.clone();
    for field in fields {
        let reference = at(config, &field.path).map(Written::of);
        match reference {
            Some(Written::Blank) => {
                leasehold_contract::secret::take(&mut described, &field.path);
            }
            Some(Written::Binding(ref binding)) if binding.version == Version::Latest => {
                put(&mut described, &field.path, Value::String(binding.id.clone()));
            }
            _ => {}
        }
    }
    let mut faults = Vec::new();
    for error in validator.iter_errors(&described) {
        let path = dotted(error.instance_path().as_str());
        // Lengths and patterns are the secret's, which nobody has here.
        if fields.iter().any(|field| field.path == path) {
            continue;
        }
        if faults.len() == FAULTS_MAX {
            let message = format!("more faults were left out; mend these {FAULTS_MAX} first");
            faults.push(Fault { path: "$".into(), message });
            break;
        }
        let message = plain(&error.masked().to_string(), MESSAGE_MAX);
        faults.push(Fault { path: if path.is_empty() { "$".into() } else { path }, message });
    }
    Ok(faults)
}

/// Schemas are their providers': no reference leaves them, and no pattern takes for ever.
fn validator(schema: &Value) -> Result<Validator, String> {
    jsonschema::options()
        .with_pattern_options(PatternOptions::regex())
        .build(schema)
        .map_err(|error| plain(&format!("it is no usable schema: {error}"), MESSAGE_MAX))
}

/// `/auth/keys/0` as `auth.keys[0]`.
fn dotted(pointer: &str) -> String {
    let mut path = String::new();
    for part in pointer.split('/').skip(1) {
        let name = part.replace("~1", "/").replace("~0", "~");
        if !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit()) {
            path.push_str(&format!("[{name}]"));
        } else {
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(&name);
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Map<String, Value> {
        let schema = json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["region"],
            "properties": {
                "region": {"enum": ["eu", "us"]},
                "size": {"type": "integer", "minimum": 1},
                "disks": {"type": "array", "items": {"type": "object", "properties": {"gb": {"type": "integer"}}}},
                "name": {"type": "string", "pattern": "^(a+)+$"},
                "auth": {"type": "object", "properties": {"key": {
                    "type": "string", "format": "secret-ref", "minLength": 40, "pattern": "^dtn_",
                }}},
            },
        });
        schema.as_object().unwrap().clone()
    }

    fn faults(config: Value) -> Vec<String> {
        match checked(&schema(), config.as_object().unwrap()) {
            Ok(_) => Vec::new(),
            Err(faults) => faults.iter().map(|fault| fault.path.clone()).collect(),
        }
    }

    #[test]
    fn every_fault_is_told_at_once_with_its_place() {
        assert_eq!(faults(json!({"region": "eu", "size": 1})), [""; 0]);
        assert_eq!(
            faults(json!({"size": 0, "disks": [{"gb": 1}, {"gb": "x"}]})),
            ["size", "disks[1].gb", "$"]
        );
        assert_eq!(faults(json!({"region": "eu", "colour": 1})), ["$"]);
        assert_eq!(faults(json!({"region": "eu", "auth": {"key": "raw-value-of-a-key"}})), ["auth.key"]);
    }

    #[test]
    fn a_secret_is_a_reference_whatever_its_schema_says_of_the_value() {
        let id = "3f0c2a52-1111-4222-8333-444455556666";
        for key in [json!("env:KEY"), json!({"type": "secret_ref", "secretId": id}), json!("")] {
            assert_eq!(faults(json!({"region": "eu", "auth": {"key": key}})), [""; 0], "{key}");
        }
    }

    #[test]
    fn what_is_the_hosts_is_kept_out() {
        let config =
            json!({"region": "eu", "driver": "sandbox", "remoteCwd": "/x", "nativeWorkspaceSync": true});
        let stored = checked(&schema(), config.as_object().unwrap()).unwrap();
        assert_eq!(Value::Object(stored), json!({"region": "eu"}));
    }

    #[test]
    fn a_pattern_made_to_take_for_ever_does_not() {
        assert_eq!(faults(json!({"region": "eu", "name": format!("{}b", "a".repeat(5_000))})), ["name"]);
    }

    #[test]
    fn a_schema_that_is_none_is_said_so_and_nothing_is_fetched() {
        for schema in [json!({"type": "no-such-type"}), json!({"$ref": "http://127.0.0.1:1/schema.json"})] {
            let faults = checked(schema.as_object().unwrap(), &Map::new()).unwrap_err();
            assert_eq!(faults[0].path, "configSchema", "{faults:?}");
        }
    }
}
