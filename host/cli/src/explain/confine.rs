//! `leasehold explain confine`.

use crate::input::{boolean, given, object, wrong};
use leasehold_sync::{ConfineError, Mapping, MappingKind, Operation, PostUpload, Roots, confine};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// Confines every path of the operations. Fails on wrong types; that a path is refused is an answer.
pub(super) fn explain(input: &Value) -> Result<Value, String> {
    let input = object(input)?;
    let operations = operations(input)?;
    let (sources, targets) = (texts(input, "sourceRoots", "")?, texts(input, "targetRoots", "")?);
    let error = check(&operations, &sources, &targets).err().map(|error| error.to_string());
    Ok(json!({"ok": error.is_none(), "error": error}))
}

fn check(operations: &[Operation], sources: &[String], targets: &[String]) -> Result<(), ConfineError> {
    let sources = Roots::new("sourceRoots", sources)?;
    let targets = Roots::new("targetRoots", targets)?;
    confine(operations, &sources, &targets).map(drop)
}

fn operations(input: &Map<String, Value>) -> Result<Vec<Operation>, String> {
    list(input, "operations", "", |field, value| {
        let value = value.as_object().ok_or_else(|| wrong(field, "an object", value))?;
        let path = format!("{field}.");
        Ok(Operation {
            id: text(value, "operationId", &path)?.unwrap_or_default(),
            mappings: list(value, "files", &path, mapping)?,
            post_upload: list(value, "postUploadCommands", &path, command)?,
        })
    })
}

fn mapping(field: &str, value: &Value) -> Result<Mapping, String> {
    let object = value.as_object().ok_or_else(|| wrong(field, "an object", value))?;
    let path = format!("{field}.");
    let required = |key: &str| text(object, key, &path)?.ok_or_else(|| format!("{path}{key}: is missing"));
    let kind = match text(object, "kind", &path)?.as_deref() {
        None | Some("file") => MappingKind::File,
        Some("directory") => MappingKind::Directory,
        Some(_) => return Err(wrong(&format!("{path}kind"), "file or directory", &object["kind"])),
    };
    let mode = given(object, "mode").map(|value| {
        let mode = value.as_u64().and_then(|mode| u32::try_from(mode).ok()).filter(|mode| *mode <= 0o7777);
        mode.ok_or_else(|| wrong(&format!("{path}mode"), "a number up to 4095", value))
    });
    Ok(Mapping {
        mode: mode.transpose()?,
        exclude: texts(object, "exclude", &path)?,
        follow_symlinks: boolean(object, "followSymlinks", &path)?.unwrap_or(false),
        ..Mapping::new(kind, required("sourcePath")?, required("targetPath")?)
    })
}

fn command(field: &str, value: &Value) -> Result<PostUpload, String> {
    let object = value.as_object().ok_or_else(|| wrong(field, "an object", value))?;
    let path = format!("{field}.");
    let timeout = given(object, "timeoutMs").map(|value| {
        let time = value.as_u64().map(Duration::from_millis);
        time.ok_or_else(|| wrong(&format!("{path}timeoutMs"), "a number of milliseconds", value))
    });
    Ok(PostUpload {
        command: text(object, "command", &path)?.unwrap_or_default(),
        cwd: text(object, "cwd", &path)?,
        timeout: timeout.transpose()?,
    })
}

fn text(object: &Map<String, Value>, key: &str, path: &str) -> Result<Option<String>, String> {
    let Some(value) = given(object, key) else { return Ok(None) };
    let text = value.as_str().map(str::to_owned);
    text.map(Some).ok_or_else(|| wrong(&format!("{path}{key}"), "a text", value))
}

fn texts(object: &Map<String, Value>, key: &str, path: &str) -> Result<Vec<String>, String> {
    list(object, key, path, |field, value| {
        value.as_str().map(str::to_owned).ok_or_else(|| wrong(field, "a text", value))
    })
}

/// The entries of an array, which may be left out.
fn list<T>(
    object: &Map<String, Value>,
    key: &str,
    path: &str,
    each: impl Fn(&str, &Value) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    let Some(value) = given(object, key) else { return Ok(Vec::new()) };
    let field = format!("{path}{key}");
    let values = value.as_array().ok_or_else(|| wrong(&field, "an array", value))?;
    values.iter().enumerate().map(|(at, value)| each(&format!("{field}[{at}]"), value)).collect()
}
