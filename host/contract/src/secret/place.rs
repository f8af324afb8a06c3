//! Values of a configuration by their places, names joined by dots.

use serde_json::{Map, Value};

/// The value at a place.
pub fn at<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(value, |value, name| value.as_object()?.get(name))
}

/// Puts a value where one is already; false when there is none.
pub fn put(value: &mut Value, path: &str, new: Value) -> bool {
    let found = path.split('.').try_fold(value, |value, name| value.as_object_mut()?.get_mut(name));
    found.map(|slot| *slot = new).is_some()
}

/// Takes a value out, and with it the objects that it alone was in.
pub fn take(value: &mut Value, path: &str) -> Option<Value> {
    taken(value.as_object_mut()?, path)
}

/// Metadata of a provider without what stands at the places of secrets, and without objects that are empty
/// because of that.
pub fn strip(metadata: &mut Value, paths: &[String]) {
    for path in paths {
        take(metadata, path);
    }
}

fn taken(object: &mut Map<String, Value>, path: &str) -> Option<Value> {
    let Some((name, rest)) = path.split_once('.') else { return object.shift_remove(path) };
    let inner = object.get_mut(name)?.as_object_mut()?;
    let found = taken(inner, rest)?;
    if inner.is_empty() {
        object.shift_remove(name);
    }
    Some(found)
}
