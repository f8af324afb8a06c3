//! Reading JSON that people and scripts write: what is missing, and what has the wrong type.

use serde_json::{Map, Value};

/// The input as an object.
pub(crate) fn object(input: &Value) -> Result<&Map<String, Value>, String> {
    input.as_object().ok_or_else(|| format!("expected a JSON object, found {}", what(input)))
}

/// An input that may be left out or `null`.
pub(crate) fn given<'a>(input: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    input.get(key).filter(|value| !value.is_null())
}

pub(crate) fn wrong(key: &str, expected: &str, value: &Value) -> String {
    format!("{key}: expected {expected}, found {}", what(value))
}

/// What a value is, in words that stay short whatever it holds.
pub(crate) fn what(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) if text.len() <= 60 => value.to_string(),
        Value::String(_) => "a long string".to_owned(),
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

/// A true or false that may be left out. `path` leads to the object, for the message.
pub(crate) fn boolean(object: &Map<String, Value>, key: &str, path: &str) -> Result<Option<bool>, String> {
    let Some(value) = given(object, key) else { return Ok(None) };
    value.as_bool().map(Some).ok_or_else(|| wrong(&format!("{path}{key}"), "true or false", value))
}
