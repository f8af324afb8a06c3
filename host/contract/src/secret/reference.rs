//! What may stand in a secret's field, and how a reference is stored.

use super::field::SecretField;
use super::place::{at, put, take};
use crate::declaration::Fault;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Which version of a secret is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Version {
    /// Whatever is current when it is needed.
    Latest,
    /// This one.
    #[serde(untagged)]
    Pinned(u64),
}

/// A secret of the host application's own store, by its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Its id, a UUID.
    pub id: String,
    /// The version.
    pub version: Version,
}

impl Reference {
    /// Reads `{"type": "secret_ref", "secretId": …, "version": …}`; none when the value is something else.
    pub fn of(value: &Value) -> Option<Reference> {
        let object = value.as_object()?;
        if object.get("type")?.as_str()? != "secret_ref" {
            return None;
        }
        let id = object.get("secretId")?.as_str().filter(|id| is_uuid(id))?;
        let version = match object.get("version") {
            None | Some(Value::Null) => Version::Latest,
            Some(Value::String(text)) if text == "latest" => Version::Latest,
            // A whole number is one however it is written: 3 and 3.0 are the same JSON.
            Some(Value::Number(number)) => {
                let number =
                    number.as_f64().filter(|n| n.fract() == 0.0 && *n >= 1.0 && *n <= VERSION_MAX)?;
                Version::Pinned(number as u64)
            }
            Some(_) => return None,
        };
        Some(Reference { id: id.to_owned(), version })
    }
}

/// The highest version that every language can hold.
const VERSION_MAX: f64 = (1_u64 << 53) as f64;

/// What stands in a secret's field.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Written {
    /// Nothing: no secret.
    Blank,
    /// A secret of the host application.
    Binding(Reference),
    /// A secret of the host application by its bare id.
    Id(String),
    /// A place outside: a variable, a file, a command.
    Outside {
        /// `env`, `file` or `command`.
        scheme: &'static str,
        /// What stands behind the colon.
        place: String,
    },
    /// Any other text, perhaps the secret itself.
    Raw,
    /// No text and no binding.
    Other,
}

impl Written {
    /// What a value is.
    pub fn of(value: &Value) -> Written {
        let Some(text) = value.as_str() else {
            return Reference::of(value).map_or(Written::Other, Written::Binding);
        };
        if text.trim().is_empty() {
            return Written::Blank;
        }
        if is_uuid(text) {
            return Written::Id(text.to_owned());
        }
        for scheme in ["env", "file", "command"] {
            if let Some(place) = text.strip_prefix(scheme).and_then(|rest| rest.strip_prefix(':'))
                && !place.is_empty()
            {
                return Written::Outside { scheme, place: place.to_owned() };
            }
        }
        Written::Raw
    }
}

/// A configuration as a provider's own validation gets it: bindings become bare ids, everything else passes.
///
/// # Errors
/// When a binding names a version; only the latest can be used.
pub fn for_validation(config: &Value, paths: &[String]) -> Result<Value, Fault> {
    let mut config = config.clone();
    for path in paths {
        let Some(reference) = at(&config, path).and_then(Reference::of) else { continue };
        if let Version::Pinned(version) = reference.version {
            let message =
                format!("names version {version} of a secret; only the latest version can be used here");
            return Err(Fault { path: path.clone(), message });
        }
        put(&mut config, path, Value::String(reference.id));
    }
    Ok(config)
}

/// A reference as it is stored with a lease: complete in itself, so that a teardown needs neither the
/// environment nor the schema it was made from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stored {
    /// What was written: a bare id, or a place outside.
    #[serde(rename = "$secret")]
    pub secret: String,
    /// What the schema says of the field.
    pub field: SecretField,
}

impl Stored {
    /// Reads a stored reference; none when the value is something else.
    pub fn of(value: &Value) -> Option<Stored> {
        value.as_object()?.get("$secret")?;
        serde_json::from_value(value.clone()).ok()
    }

    /// A configuration with its secrets as stored references: blank ones are left out.
    ///
    /// # Errors
    /// When a field holds a secret itself, a pinned version, or what no secret is; every fault at once.
    pub fn all(config: &Value, fields: &[SecretField]) -> Result<Value, Vec<Fault>> {
        let mut config = config.clone();
        let mut faults = Vec::new();
        foreign(&config, "", DEPTH_MAX, &mut faults);
        for field in fields {
            let Some(value) = at(&config, &field.path) else { continue };
            let secret = match Written::of(value) {
                Written::Blank => {
                    take(&mut config, &field.path);
                    continue;
                }
                Written::Binding(Reference { id, version: Version::Latest }) | Written::Id(id) => id,
                Written::Outside { scheme, place } => format!("{scheme}:{place}"),
                Written::Binding(Reference { version: Version::Pinned(version), .. }) => {
                    let message =
                        format!("names version {version} of a secret; only the latest version can be used");
                    faults.push(Fault { path: field.path.clone(), message });
                    continue;
                }
                Written::Raw => {
                    faults.push(Fault { path: field.path.clone(), message: RAW.into() });
                    continue;
                }
                Written::Other => {
                    let message = format!("is neither a text nor a binding; {FORMS}");
                    faults.push(Fault { path: field.path.clone(), message });
                    continue;
                }
            };
            let stored = Stored { secret, field: field.clone() };
            put(&mut config, &field.path, json!(stored));
        }
        if faults.is_empty() { Ok(config) } else { Err(faults) }
    }
}

/// How references are written, for messages.
const FORMS: &str =
    "write `env:NAME`, `file:/PATH`, `command:PROGRAM ARGUMENTS`, or the id of a stored secret";

/// The message never quotes the value.
const RAW: &str = "holds a secret itself, which would be stored and shown; write `env:NAME`, `file:/PATH`, \
                   `command:PROGRAM ARGUMENTS`, or the id of a stored secret";

/// Objects deeper than JSON is read at all.
const DEPTH_MAX: usize = 128;

/// What looks like a stored reference in a configuration would be resolved without ever having been allowed.
fn foreign(value: &Value, path: &str, depth: usize, faults: &mut Vec<Fault>) {
    match value {
        Value::Object(object) if depth > 0 => {
            if object.contains_key("$secret") {
                let path = if path.is_empty() { "$" } else { path };
                let message = "`$secret` is how the host stores references; it cannot be written";
                faults.push(Fault { path: path.into(), message: message.into() });
            }
            for (name, inner) in object {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                foreign(inner, &path, depth - 1, faults);
            }
        }
        Value::Array(entries) if depth > 0 => {
            for (i, inner) in entries.iter().enumerate() {
                foreign(inner, &format!("{path}[{i}]"), depth - 1, faults);
            }
        }
        _ => {}
    }
}

/// Whether a text is a UUID.
pub fn is_uuid(text: &str) -> bool {
    let hyphens = [8, 13, 18, 23];
    text.len() == 36
        && text.bytes().enumerate().all(|(i, byte)| match hyphens.contains(&i) {
            true => byte == b'-',
            false => byte.is_ascii_hexdigit(),
        })
}
