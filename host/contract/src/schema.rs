//! JSON Schemas of the files that people write, for editors and for programs that make such files.
//!
//! They are made from the same tables the readers use, kept in `schemas/`, and a test holds them against the
//! readers. The readers decide: a schema cannot say everything they check.

use crate::authority::Permission;
use crate::budget::MAX_DECLARED_ACQUIRE_MS;
use crate::capability::{Capability, LeasePolicy};
use crate::declaration::{DRIVER_KEYS, DriverKind, MANIFEST_KEYS, REGISTER_DRIVERS};
use serde_json::{Map, Value, json};

/// The dialect of all of them.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// A provider's declaration, `provider.json`.
pub fn provider() -> Value {
    let properties = MANIFEST_KEYS.iter().map(|key| ((*key).to_owned(), manifest_key(key)));
    json!({
        "$schema": DIALECT,
        "title": "Declaration of a sandbox provider",
        "type": "object",
        "additionalProperties": false,
        "required": ["pluginKey", "version", "capabilities", "environmentDrivers"],
        "properties": properties.collect::<Map<_, _>>(),
        "$defs": {"driver": driver(), "key": key(), "field": field(), "ask": ask()},
    })
}

/// What one run takes away, as `--narrowing` takes it.
pub fn narrowing() -> Value {
    let mut properties = capabilities("`false` takes it away; `true` means nothing.");
    properties.insert(
        "leasePolicy".into(),
        json!({"enum": LeasePolicy::ALL.map(LeasePolicy::name), "description": "How long the lease is kept."}),
    );
    properties.insert(
        "leaseMetadata".into(),
        json!({"type": ["object", "null"], "description": "What the provider stored on the lease."}),
    );
    properties.insert("configResolutionFailed".into(), json!({"type": ["boolean", "null"]}));
    json!({
        "$schema": DIALECT,
        "title": "What one run takes away",
        "type": "object",
        "additionalProperties": false,
        "properties": properties,
    })
}

/// The settings of the command line, `leasehold.toml`.
pub fn settings() -> Value {
    let name = json!({"type": "string", "minLength": 1});
    let proxy = json!({
        "type": "string", "pattern": "^http://[^/]+/?$", "description": "http://[USER:PASSWORD@]HOST:PORT",
    });
    json!({
        "$schema": DIALECT,
        "title": "Settings of Leasehold",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "store": {
                "type": "string",
                "description": "Where leases are kept: a file beside this one, or postgres://… of a server.",
            },
            "environments": {
                "type": "object",
                "description": "Configured providers, by name.",
                "additionalProperties": {
                    "type": "object",
                    "additionalProperties": false,
                    "required": ["provider"],
                    "properties": {
                        "provider": {"type": "string", "description": "A driver's key, or PROVIDER:DRIVER."},
                        "config": {
                            "type": "object",
                            "description": "As the driver's configSchema has it. A secret is `env:NAME`, `file:/PATH` or `command:PROGRAM ARGUMENTS`.",
                        },
                    },
                },
            },
            "providers": {
                "type": "object",
                "description": "Providers that are brought along, by name.",
                "additionalProperties": {
                    "type": "object",
                    "additionalProperties": false,
                    "required": ["component"],
                    "properties": {
                        "component": {"type": "string", "description": "The component, or the provider's folder."},
                        "declaration": {"type": "string", "description": "Its provider.json, when it lies elsewhere."},
                        "grants": {"type": "array", "items": {"$ref": "#/$defs/grant"}},
                    },
                },
            },
            "network": {
                "type": "object",
                "additionalProperties": false,
                "properties": {
                    "certificates": {
                        "type": "array", "items": name,
                        "description": "Files of certificates in PEM that are trusted beside the system's.",
                    },
                    "proxy": {
                        "description": "\"environment\" for what its variables say, or the proxies; none unless it is said.",
                        "oneOf": [
                            {"const": "environment"},
                            {
                                "type": "object",
                                "additionalProperties": false,
                                "properties": {
                                    "http": proxy, "https": proxy,
                                    "except": {"type": "array", "items": {"type": "string"}},
                                },
                            },
                        ],
                    },
                },
            },
        },
        "$defs": {"grant": grant()},
    })
}

fn manifest_key(name: &str) -> Value {
    match name {
        "pluginKey" => json!({"$ref": "#/$defs/key"}),
        "version" | "displayName" => text(1, 100),
        "capabilities" => json!({
            "type": "array", "items": {"type": "string", "minLength": 1}, "contains": {"const": REGISTER_DRIVERS},
        }),
        "environmentDrivers" => json!({"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/driver"}}),
        "permissions" => json!({
            "type": "array", "uniqueItems": true, "maxItems": 200, "items": {"$ref": "#/$defs/ask"},
            "description": "What the component asks to reach.",
        }),
        // A key without a form of its own would let everything pass; the test finds it.
        _ => Value::Bool(true),
    }
}

fn driver() -> Value {
    let properties = DRIVER_KEYS.iter().map(|key| ((*key).to_owned(), driver_key(key)));
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["driverKey", "displayName", "configSchema"],
        "properties": properties.collect::<Map<_, _>>(),
    })
}

fn driver_key(name: &str) -> Value {
    match name {
        "driverKey" => json!({"$ref": "#/$defs/key"}),
        "kind" => json!({"enum": DriverKind::ALL.map(DriverKind::name)}),
        "displayName" | "templateRefKind" => text(1, 100),
        "description" => text(0, 500),
        "configSchema" => json!({
            "type": "object",
            "description": "JSON Schema of an environment's configuration. A field with the format secret-ref holds a secret.",
        }),
        "sandboxCapabilities" => json!({
            "type": "object",
            "additionalProperties": false,
            "properties": capabilities("`false` turns it off; `true` still needs its methods."),
        }),
        "defaultAcquireTimeoutMs" => {
            json!({"type": "integer", "minimum": 1, "maximum": MAX_DECLARED_ACQUIRE_MS})
        }
        "supportsReusableLeases" => json!({"type": "boolean", "deprecated": true}),
        "supportsSetupTokenLogin" => json!({"type": "boolean", "deprecated": true}),
        "requiresAgent"
        | "supportsInteractiveSetup"
        | "supportsTemplateCapture"
        | "supportsTemplateDelete"
        | "supportsLoginPty" => json!({"type": "boolean"}),
        "interactiveSetupConnectionTypes" => json!({"type": "array", "maxItems": 10, "items": text(1, 100)}),
        "templateConfigBinding" => json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["field"],
            "properties": {
                "field": {"$ref": "#/$defs/field"},
                "unsetFields": {
                    "type": "array", "maxItems": 20, "uniqueItems": true, "items": {"$ref": "#/$defs/field"},
                },
            },
        }),
        "templateIdentityPaths" => json!({
            "type": "array", "maxItems": 20,
            "items": {"type": "string", "maxLength": 200, "pattern": "^[^.]+(\\.[^.]+)*$"},
        }),
        _ => Value::Bool(true),
    }
}

fn capabilities(description: &str) -> Map<String, Value> {
    let one = |capability: Capability| {
        (capability.name().to_owned(), json!({"type": "boolean", "description": description}))
    };
    Capability::ALL.into_iter().map(one).collect()
}

fn text(min: u64, max: u64) -> Value {
    json!({"type": "string", "minLength": min, "maxLength": max})
}

fn key() -> Value {
    json!({"type": "string", "pattern": "^[a-z0-9][a-z0-9._-]*$"})
}

fn field() -> Value {
    json!({"type": "string", "maxLength": 100, "pattern": "^[A-Za-z_][A-Za-z0-9_-]*$", "not": {"const": "provider"}})
}

/// What a declaration asks for: a permission alone, or a part of it.
fn ask() -> Value {
    let alone: Vec<_> = Permission::ALL.iter().map(|permission| permission.name()).collect();
    json!({
        "anyOf": [
            {"enum": alone},
            {"type": "string", "pattern": "^http=https?://"},
            {"type": "string", "pattern": "^(tcp|unix-http|secrets\\.reveal)=."},
        ],
    })
}

/// What a host grants: it says where.
fn grant() -> Value {
    let alone: Vec<_> = Permission::ALL
        .iter()
        .filter(|permission| permission.form() == permission.name())
        .map(|permission| permission.name())
        .collect();
    let forms: Vec<_> = Permission::ALL.iter().map(|permission| permission.form()).collect();
    json!({
        "anyOf": [
            {"enum": alone},
            {"type": "string", "pattern": "^http=https?://"},
            {"type": "string", "pattern": "^tcp=.+:[0-9]+"},
            {"type": "string", "pattern": "^unix-http=[a-z0-9-]+=/"},
            {"type": "string", "pattern": "^secrets\\.reveal=."},
        ],
        "description": forms.join(", "),
    })
}
