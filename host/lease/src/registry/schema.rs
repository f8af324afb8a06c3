//! Configuration schemas of sandbox providers, kept while their revision stays.

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use std::collections::VecDeque;

/// Schemas that are kept. A host uses a handful of providers; one more makes the oldest go, and it is read
/// again when it is asked for.
pub const SCHEMAS_KEPT: usize = 32;

/// The longest schema that is kept, in bytes of its text. A longer one is read every time.
pub const SCHEMA_BYTES_KEPT: usize = 65_536;

/// A configuration schema; none where the store holds something else than an object.
pub type Schema = Option<Map<String, Value>>;

/// Whose schema the store holds, and which one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) provider: String,
    pub(crate) revision: String,
}

/// What the store answers to "has it changed since this version?".
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Stored {
    /// Nobody declares the driver.
    Nobody,
    /// It is this version still; its text was not read.
    Unchanged(Version),
    /// It is another version, with this text.
    Changed(Version, String),
}

/// The store says that a schema is unchanged, and it is not the one that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the store contradicts itself about a configuration schema; it was changed by hand: install the provider again"
)]
pub struct Contradiction;

/// The revision of a schema: the SHA-256 of its text, in hex digits.
pub(crate) fn revision(text: &str) -> String {
    use std::fmt::Write as _;
    Sha256::digest(text.as_bytes()).iter().fold(String::with_capacity(64), |mut hex, byte| {
        // Writing to a string does not fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// What is kept, oldest first. One belongs to one store.
#[derive(Debug, Default)]
pub(crate) struct SchemaCache {
    kept: VecDeque<Kept>,
}

#[derive(Debug)]
struct Kept {
    driver: String,
    version: Version,
    schema: Schema,
}

impl SchemaCache {
    /// The version that is kept of a driver's schema.
    pub(crate) fn version(&self, driver: &str) -> Option<Version> {
        self.kept.iter().find(|kept| kept.driver == driver).map(|kept| kept.version.clone())
    }

    /// The schema by what the store answered; a copy, so that nobody changes what is kept.
    pub(crate) fn take(&mut self, driver: &str, stored: Stored) -> Result<Schema, Contradiction> {
        match stored {
            Stored::Nobody => {
                self.forget(driver);
                Ok(None)
            }
            Stored::Unchanged(version) => {
                let same = |kept: &&Kept| kept.driver == driver && kept.version == version;
                self.kept.iter().find(same).map(|kept| kept.schema.clone()).ok_or(Contradiction)
            }
            Stored::Changed(version, text) => {
                self.forget(driver);
                let schema = match serde_json::from_str(&text) {
                    Ok(Value::Object(schema)) => Some(schema),
                    _ => None,
                };
                if text.len() <= SCHEMA_BYTES_KEPT {
                    let over = self.kept.len().saturating_sub(SCHEMAS_KEPT - 1);
                    self.kept.drain(..over);
                    self.kept.push_back(Kept { driver: driver.to_owned(), version, schema: schema.clone() });
                }
                Ok(schema)
            }
        }
    }

    fn forget(&mut self, driver: &str) {
        self.kept.retain(|kept| kept.driver != driver);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn version(provider: &str, text: &str) -> Version {
        Version { provider: provider.into(), revision: revision(text) }
    }

    fn changed(cache: &mut SchemaCache, driver: &str, text: &str) -> Schema {
        cache.take(driver, Stored::Changed(version("p", text), text.into())).unwrap()
    }

    fn of_length(bytes: usize) -> String {
        let around = r#"{"title":""}"#.len();
        format!(r#"{{"title":"{}"}}"#, "x".repeat(bytes - around))
    }

    #[test]
    fn thirty_two_schemas_are_kept_and_the_oldest_goes_first() {
        let mut cache = SchemaCache::default();
        for number in 0..=SCHEMAS_KEPT {
            changed(&mut cache, &format!("driver-{number}"), "{}");
        }
        assert_eq!(cache.kept.len(), SCHEMAS_KEPT);
        assert_eq!(cache.version("driver-0"), None);
        assert!(cache.version("driver-1").is_some());
    }

    #[test]
    fn a_schema_of_65_536_bytes_is_kept_and_a_longer_one_is_returned_all_the_same() {
        let mut cache = SchemaCache::default();
        for (bytes, kept) in [(SCHEMA_BYTES_KEPT, true), (SCHEMA_BYTES_KEPT + 1, false)] {
            assert!(changed(&mut cache, "d", &of_length(bytes)).is_some());
            assert_eq!(cache.version("d").is_some(), kept, "{bytes}");
        }
    }

    #[test]
    fn who_changes_what_was_given_changes_only_a_copy() {
        let mut cache = SchemaCache::default();
        let mut given = changed(&mut cache, "d", r#"{"type":"object"}"#).unwrap();
        given.insert("type".into(), json!("string"));
        let again = cache.take("d", Stored::Unchanged(version("p", r#"{"type":"object"}"#))).unwrap();
        assert_eq!(again.unwrap()["type"], "object");
    }

    #[test]
    fn what_is_no_object_is_no_schema() {
        for text in ["[]", "\"text\"", "7", "null", "no JSON"] {
            assert_eq!(changed(&mut SchemaCache::default(), "d", text), None, "{text}");
        }
    }

    #[test]
    fn another_revision_or_another_owner_replaces_and_nobody_deletes() {
        let mut cache = SchemaCache::default();
        changed(&mut cache, "d", r#"{"a":1}"#);
        changed(&mut cache, "d", r#"{"a":2}"#);
        assert_eq!(cache.version("d"), Some(version("p", r#"{"a":2}"#)));
        cache.take("d", Stored::Changed(version("q", r#"{"a":2}"#), r#"{"a":2}"#.into())).unwrap();
        assert_eq!(cache.version("d"), Some(version("q", r#"{"a":2}"#)));
        assert_eq!(cache.kept.len(), 1);
        assert_eq!(cache.take("d", Stored::Nobody), Ok(None));
        assert_eq!(cache.version("d"), None);
    }

    #[test]
    fn an_unchanged_that_contradicts_what_is_kept_is_an_error() {
        let mut cache = SchemaCache::default();
        assert_eq!(cache.take("d", Stored::Unchanged(version("p", "{}"))), Err(Contradiction));
        changed(&mut cache, "d", "{}");
        for other in [version("q", "{}"), version("p", "{ }")] {
            assert_eq!(cache.take("d", Stored::Unchanged(other)), Err(Contradiction));
        }
        assert!(cache.take("d", Stored::Unchanged(version("p", "{}"))).unwrap().is_some());
    }

    #[test]
    fn a_revision_is_the_sha_256_of_the_text() {
        let expected = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(revision(""), expected);
    }
}
