//! Reads one JSON object field by field and keeps every fault.

use super::{Fault, spelling};
use serde_json::{Map, Value};

/// Faults that are kept. Nobody mends more at a time, and a declaration that is nothing but faults would
/// make the answer a hundred times as long as the question. Hit: one more line says so.
const FAULTS_MAX: usize = 100;

/// The faults found so far.
#[derive(Default)]
pub(super) struct Faults(Vec<Fault>);

impl Faults {
    pub(super) fn add(&mut self, path: &str, message: impl Into<String>) {
        match self.0.len() {
            FAULTS_MAX => self.0.push(Fault {
                path: "$".into(),
                message: format!("more faults were left out; mend these {FAULTS_MAX} first"),
            }),
            kept if kept < FAULTS_MAX => {
                self.0.push(Fault { path: path.to_owned(), message: message.into() });
            }
            _ => {}
        }
    }

    /// Like [`Faults::add`], and no value; ends a rule.
    pub(super) fn refuse<T>(&mut self, path: &str, message: impl Into<String>) -> Option<T> {
        self.add(path, message);
        None
    }

    /// The value when there were no faults, else the faults.
    pub(super) fn conclude<T>(self, value: Option<T>) -> Result<T, Vec<Fault>> {
        match value {
            Some(value) if self.0.is_empty() => Ok(value),
            _ => Err(self.0),
        }
    }
}

/// An object being read. Keys outside its table are faults, reported when it is opened.
pub(super) struct Object<'v> {
    fields: &'v Map<String, Value>,
    path: &'v str,
}

impl<'v> Object<'v> {
    /// Opens an object with these keys. `refuse_key` may give a known reason against a key outside the table.
    pub(super) fn open(
        value: &'v Value,
        path: &'v str,
        keys: &[&'static str],
        refuse_key: fn(&str) -> Option<&'static str>,
        faults: &mut Faults,
    ) -> Option<Self> {
        let Some(fields) = value.as_object() else {
            return faults.refuse(path, format!("expected an object, found {}", found(value)));
        };
        for key in fields.keys().filter(|key| !keys.contains(&key.as_str())) {
            let message = match (refuse_key(key), spelling::meant(key, keys)) {
                (Some(reason), _) => reason.to_owned(),
                (None, Some(known)) => format!("unknown key; did you mean {known}?"),
                (None, None) => format!("unknown key; known keys: {}", keys.join(", ")),
            };
            faults.add(&field_path(path, key), message);
        }
        Some(Object { fields, path })
    }

    /// A field that may be left out, but not given as `null`.
    pub(super) fn optional<T>(
        &self,
        key: &str,
        faults: &mut Faults,
        rule: impl FnOnce(&Value, &str, &mut Faults) -> Option<T>,
    ) -> Option<T> {
        let value = self.fields.get(key)?;
        let path = self.path_of(key);
        if value.is_null() {
            return faults.refuse(&path, "null is not accepted; leave the key out");
        }
        rule(value, &path, faults)
    }

    /// A field that must be there; `expected` says what it holds.
    pub(super) fn required<T>(
        &self,
        key: &str,
        expected: &str,
        faults: &mut Faults,
        rule: impl FnOnce(&Value, &str, &mut Faults) -> Option<T>,
    ) -> Option<T> {
        match self.fields.get(key) {
            Some(value) => rule(value, &self.path_of(key), faults),
            None => faults.refuse(&self.path_of(key), format!("required: {expected}")),
        }
    }

    /// The path of one of its fields.
    pub(super) fn path_of(&self, key: &str) -> String {
        field_path(self.path, key)
    }
}

/// The path of a field of the object at `path`. Keys that are no plain names are quoted, so that a path can
/// be read back.
pub(super) fn field_path(path: &str, key: &str) -> String {
    let plain =
        !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    match (plain, path) {
        (true, "$") => key.to_owned(),
        (true, _) => format!("{path}.{key}"),
        (false, _) => format!("{path}[{}]", Value::from(key)),
    }
}

/// What a value is, for a message; long values are not repeated.
pub(super) fn found(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) if text.is_empty() => "an empty string".to_owned(),
        // Long enough for any key of the contract; more would drown the message.
        Value::String(text) if text.len() <= 60 => format!("the string {value}"),
        Value::String(_) => "a string".to_owned(),
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}
