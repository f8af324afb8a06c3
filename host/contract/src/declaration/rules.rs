//! Rules for single values. Each gives the value, or adds a fault that says what is accepted.

use super::reader::{Faults, found};
use serde_json::{Map, Value};
use std::ops::RangeInclusive;

/// `true` or `false`; nothing that merely looks like one.
pub(super) fn flag(value: &Value, path: &str, faults: &mut Faults) -> Option<bool> {
    match value.as_bool() {
        Some(flag) => Some(flag),
        None => faults.refuse(path, format!("expected true or false, found {}", found(value))),
    }
}

/// Any object.
pub(super) fn object(value: &Value, path: &str, faults: &mut Faults) -> Option<Map<String, Value>> {
    match value {
        Value::Object(object) => Some(object.clone()),
        other => faults.refuse(path, format!("expected an object (a JSON Schema), found {}", found(other))),
    }
}

/// A string whose length in characters is in this range.
pub(super) fn text(length: RangeInclusive<usize>) -> impl Fn(&Value, &str, &mut Faults) -> Option<String> {
    move |value, path, faults| {
        let Some(text) = value.as_str() else {
            return faults.refuse(
                path,
                format!("expected a string of {} characters, found {}", range(&length), found(value)),
            );
        };
        let count = text.chars().count();
        if !length.contains(&count) {
            let message = format!("expected a string of {} characters, found {count}", range(&length));
            return faults.refuse(path, message);
        }
        Some(text.to_owned())
    }
}

/// A key of a driver or a plugin.
pub(super) fn key(value: &Value, path: &str, faults: &mut Faults) -> Option<String> {
    let accepted = |text: &str| {
        let mut bytes = text.bytes();
        let first = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        bytes.next().is_some_and(first) && bytes.all(|byte| first(byte) || b"._-".contains(&byte))
    };
    match value.as_str() {
        Some(text) if accepted(text) => Some(text.to_owned()),
        _ => faults.refuse(path, format!("expected {KEY}, found {}", found(value))),
    }
}

/// What [`key`] accepts, in words.
pub(super) const KEY: &str = "lower-case letters, digits, `.`, `_` and `-`, beginning with a letter or digit";

/// The name of a configuration field that a template goes into. `provider` belongs to the host: a template
/// put there would change which provider is called.
pub(super) fn field_name(value: &Value, path: &str, faults: &mut Faults) -> Option<String> {
    let text = value.as_str().unwrap_or_default();
    let mut bytes = text.bytes();
    let first = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    let spelt = bytes.next().is_some_and(first)
        && bytes.all(|byte| first(byte) || byte.is_ascii_digit() || byte == b'-')
        && text.len() <= 100;
    if !spelt {
        return faults.refuse(path, format!("expected {FIELD_NAME}, found {}", found(value)));
    }
    if text == "provider" {
        return faults.refuse(path, "`provider` belongs to the host and cannot be a template's field");
    }
    Some(text.to_owned())
}

/// What [`field_name`] accepts, in words.
pub(super) const FIELD_NAME: &str =
    "a field name of up to 100 letters, digits, `_` and `-`, beginning with a letter or `_`";

/// The place of a value in a configuration: names joined by dots.
pub(super) fn dotted_path(value: &Value, path: &str, faults: &mut Faults) -> Option<String> {
    let text = value.as_str().unwrap_or_default();
    if text.split('.').any(str::is_empty) || text.chars().count() > 200 {
        let accepted = "expected a path of up to 200 characters, non-empty names joined by dots";
        return faults.refuse(path, format!("{accepted}, found {}", found(value)));
    }
    Some(text.to_owned())
}

/// A whole number from 1 to `max`. `300000.0` is a whole number.
pub(super) fn positive_integer(max: u64) -> impl Fn(&Value, &str, &mut Faults) -> Option<u64> {
    move |value, path, faults| {
        // Every number up to the largest `max` in use is exact in this type.
        match value.as_f64() {
            Some(number) if number.fract() == 0.0 && number >= 1.0 && number <= max as f64 => {
                Some(number as u64)
            }
            _ => faults
                .refuse(path, format!("expected a whole number from 1 to {max}, found {}", found(value))),
        }
    }
}

/// An array whose number of entries is in this range, every entry by `rule`.
pub(super) fn list<T>(
    count: RangeInclusive<usize>,
    rule: impl Fn(&Value, &str, &mut Faults) -> Option<T>,
) -> impl Fn(&Value, &str, &mut Faults) -> Option<Vec<T>> {
    move |value, path, faults| {
        let Some(entries) = value.as_array() else {
            let message = format!("expected an array of {} entries, found {}", range(&count), found(value));
            return faults.refuse(path, message);
        };
        if !count.contains(&entries.len()) {
            faults.add(path, format!("expected {} entries, found {}", range(&count), entries.len()));
        }
        let read: Vec<Option<T>> = entries
            .iter()
            .enumerate()
            .map(|(i, entry)| rule(entry, &format!("{path}[{i}]"), faults))
            .collect();
        // An entry that was refused has its fault already; the list as a whole is then no value.
        read.into_iter().collect()
    }
}

/// Adds a fault for every text of an array that is there already. Looks at the JSON, so that a repetition is
/// reported beside the other faults of the same entries. `text` picks what must be unique in an entry, with
/// the path inside it.
pub(super) fn unique(
    entries: &Value,
    path: &str,
    faults: &mut Faults,
    text: impl Fn(&Value) -> Option<(&str, &str)>,
) {
    let mut seen = std::collections::HashMap::new();
    for (i, entry) in entries.as_array().into_iter().flatten().enumerate() {
        let Some((text, inside)) = text(entry) else { continue };
        let place = format!("{path}[{i}]{inside}");
        match seen.get(text) {
            Some(first) => faults.add(&place, format!("{text:?} is already at {first}; each must be unique")),
            None => {
                seen.insert(text, place);
            }
        }
    }
}

/// For [`unique`]: the entry itself.
pub(super) fn whole(entry: &Value) -> Option<(&str, &str)> {
    Some((entry.as_str()?, ""))
}

fn range(range: &RangeInclusive<usize>) -> String {
    match (*range.start(), *range.end()) {
        (0, usize::MAX) => "any number of".to_owned(),
        (1, usize::MAX) => "one or more".to_owned(),
        (0, end) => format!("up to {end}"),
        (start, end) => format!("{start} to {end}"),
    }
}
