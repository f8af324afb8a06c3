//! `leasehold explain exclude`.

use crate::input::{given, object, wrong};
use leasehold_sync::Excludes;
use serde_json::{Value, json};
use std::path::Path;

/// Which of the paths the patterns keep. Fails on wrong types.
pub(super) fn explain(input: &Value) -> Result<Value, String> {
    let input = object(input)?;
    let array = |key: &str| match given(input, key) {
        None => Ok(&[][..]),
        Some(value) => value.as_array().map(Vec::as_slice).ok_or_else(|| wrong(key, "an array", value)),
    };
    let patterns = array("exclude")?.iter().enumerate().map(|(at, value)| {
        value.as_str().ok_or_else(|| wrong(&format!("exclude[{at}]"), "a pattern as a text", value))
    });
    let excludes = Excludes::new(patterns.collect::<Result<Vec<_>, _>>()?);
    let mut kept = Vec::new();
    for (at, value) in array("paths")?.iter().enumerate() {
        let path = path(value)
            .ok_or_else(|| wrong(&format!("paths[{at}]"), "[path, \"f\", \"d\" or \"l\"]", value))?;
        if !excludes.matches(Path::new(path)) {
            kept.push(path);
        }
    }
    Ok(json!({"kept": kept}))
}

/// A path with its kind, or alone. The kind changes nothing: the patterns know none.
fn path(value: &Value) -> Option<&str> {
    match value {
        Value::String(path) => Some(path),
        Value::Array(pair) => match pair.as_slice() {
            [path, kind] if matches!(kind.as_str(), Some("f" | "d" | "l")) => path.as_str(),
            _ => None,
        },
        _ => None,
    }
}
