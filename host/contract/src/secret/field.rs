//! The fields that a schema marks, and where a secret may go.

use crate::authority::{Grant, GrantError, HttpRule};
use crate::declaration::Fault;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The format of a field that holds a secret's reference.
const FORMAT: &str = "secret-ref";

/// The keyword beside the format that says where the secret may go: `{"to": […], "in": […]}`.
pub const KEYWORD: &str = "x-leasehold-secret";

/// How deep a schema is read. JSON itself is read no deeper, so nothing is missed.
const DEPTH_MAX: usize = 128;

/// A field that holds a secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SecretField {
    /// Its place: names joined by dots.
    pub path: String,
    /// Where the secret may go; none when the schema does not say, which leaves it to the grants.
    pub to: Option<Vec<Destination>>,
    /// Where in a request it may stand.
    pub uses: Uses,
}

/// Where a secret may go.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Destination {
    /// To these hosts.
    Http(HttpRule),
    /// Over the socket of this name.
    Unix(String),
    /// To the host of the URL that another field of the configuration holds.
    Field(String),
}

/// Where in a request a secret may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Uses {
    /// In a header, as it is or inside basic authentication.
    pub header: bool,
    /// In the path or query.
    pub query: bool,
    /// In the body.
    pub body: bool,
}

impl Default for Uses {
    /// In headers alone: paths end up in logs of servers, bodies in places nobody knows.
    fn default() -> Self {
        Uses { header: true, query: false, body: false }
    }
}

/// The places of secrets in a schema, in the order they are found, each once. Properties are walked at every
/// level, and `allOf`, `anyOf` and `oneOf`; entries of arrays are not.
pub fn paths(schema: &Value) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    walk(schema, &mut String::new(), DEPTH_MAX, &mut |path, _| {
        if !found.iter().any(|known| known == path) {
            found.push(path.to_owned());
        }
    });
    found
}

/// The fields of a schema that hold secrets, with what the schema says of them.
///
/// # Errors
/// When the keyword beside a secret is not understood; every fault at once.
pub fn fields(schema: &Value) -> Result<Vec<SecretField>, Vec<Fault>> {
    let (mut fields, mut faults): (Vec<SecretField>, Vec<Fault>) = (Vec::new(), Vec::new());
    walk(schema, &mut String::new(), DEPTH_MAX, &mut |path, node| {
        if fields.iter().any(|field| field.path == path) {
            return;
        }
        match said(node) {
            Ok((to, uses)) => fields.push(SecretField { path: path.to_owned(), to, uses }),
            Err(message) => faults.push(Fault { path: format!("{path}.{KEYWORD}"), message }),
        }
        if node.get("default").is_some() {
            let message = "a secret has no default; it would be the same for everybody and known to all";
            faults.push(Fault { path: format!("{path}.default"), message: message.into() });
        }
    });
    if faults.is_empty() { Ok(fields) } else { Err(faults) }
}

fn walk(node: &Value, path: &mut String, depth: usize, found: &mut dyn FnMut(&str, &Map<String, Value>)) {
    let Some(node) = node.as_object().filter(|_| depth > 0) else { return };
    for keyword in ["allOf", "anyOf", "oneOf"] {
        for branch in node.get(keyword).and_then(Value::as_array).into_iter().flatten() {
            walk(branch, path, depth - 1, found);
        }
    }
    for (name, property) in node.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let Some(inner) = property.as_object() else { continue };
        let before = path.len();
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(name);
        if inner.get("format").and_then(Value::as_str) == Some(FORMAT) {
            found(path, inner);
        }
        walk(property, path, depth - 1, found);
        path.truncate(before);
    }
}

fn said(node: &Map<String, Value>) -> Result<(Option<Vec<Destination>>, Uses), String> {
    /// The keyword as it is written.
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Said {
        to: Option<Vec<Destination>>,
        r#in: Option<Vec<String>>,
    }
    let Some(value) = node.get(KEYWORD) else { return Ok((None, Uses::default())) };
    let Said { to, r#in } = serde_json::from_value(value.clone()).map_err(|error| error.to_string())?;
    let Some(places) = r#in else { return Ok((to, Uses::default())) };
    let mut uses = Uses { header: false, query: false, body: false };
    for place in places {
        match place.as_str() {
            "header" => uses.header = true,
            "query" => uses.query = true,
            "body" => uses.body = true,
            _ => return Err(format!("expected header, query or body, found {place:?}")),
        }
    }
    Ok((to, uses))
}

impl std::str::FromStr for Destination {
    type Err = GrantError;

    fn from_str(text: &str) -> Result<Self, GrantError> {
        let wrong = || GrantError::Malformed {
            text: crate::text::plain(text, 100),
            reason: "it names no destination".into(),
            form: "`https://HOST`, `config:FIELD` or `unix-http=NAME`",
        };
        if let Some(field) = text.strip_prefix("config:") {
            return (!field.is_empty()).then(|| Destination::Field(field.to_owned())).ok_or_else(wrong);
        }
        if let Some(name) = text.strip_prefix("unix-http=") {
            return Ok(Destination::Unix(name.to_owned()));
        }
        match format!("http={text}").parse()? {
            Grant::Http(rule) => Ok(Destination::Http(rule)),
            _ => Err(wrong()),
        }
    }
}

impl std::fmt::Display for Destination {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Destination::Http(rule) => rule.fmt(f),
            Destination::Unix(name) => write!(f, "unix-http={name}"),
            Destination::Field(field) => write!(f, "config:{field}"),
        }
    }
}

impl Serialize for Destination {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Destination {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}
