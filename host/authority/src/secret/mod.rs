//! Secrets of one call: what the guest gets instead of them, where they may go, what never comes out.
//!
//! A guest gets a placeholder, random for each call. Where a request leaves, placeholders become values, but
//! only in the places and towards the hosts that the secret is bound to; anywhere else the request is refused.

mod placeholder;
pub mod resolve;
pub mod scrub;

pub use placeholder::{Encoding, Misplaced, PREFIX};
pub(crate) use placeholder::{found, seen};

use leasehold_contract::authority::{Grant, HostPattern, HttpRule, HttpTarget, Policy, Scheme};
use leasehold_contract::secret::{Destination, SecretField, Stored, at};
use resolve::{Consumer, ResolveError, Resolver};
use scrub::Scrubber;
use secrecy::SecretString;
use serde_json::Value;

/// Secrets of one configuration. Each costs a place in every search; more is no configuration.
const SECRETS_MAX: usize = 64;

/// The secrets of one call.
#[derive(Debug, Default)]
pub struct Secrets {
    issued: Vec<Issued>,
    scrubber: Option<Scrubber>,
}

#[derive(Debug)]
struct Issued {
    placeholder: String,
    value: SecretString,
    field: SecretField,
    bound: Vec<Bound>,
    /// What was written in its field: a reference.
    written: String,
}

/// Where a secret may go.
#[derive(Debug)]
enum Bound {
    Hosts(HttpRule),
    Unix(String),
    Origin(Scheme, String, u16),
}

/// Where a request is about to go, for secrets.
#[derive(Clone, Copy, Debug)]
pub enum Towards<'a> {
    /// Over the network.
    Network(&'a HttpTarget<'a>),
    /// Over the Unix socket of this name.
    Unix(&'a str),
}

/// Why a call cannot have its secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SecretError {
    /// The stored configuration is no JSON object.
    #[error("the stored configuration cannot be read")]
    Config,
    /// There are too many.
    #[error("the configuration has {at} secrets and may have {SECRETS_MAX}")]
    TooMany {
        /// How many there are.
        at: usize,
    },
    /// The system has no random numbers.
    #[error("the system gives no random numbers, which placeholders are made of")]
    Random,
    /// One has no value.
    #[error("the secret in `{field}` is not there: {reason}")]
    Unresolved {
        /// Its field.
        field: String,
        /// Why.
        reason: ResolveError,
    },
}

impl Secrets {
    /// Resolves the secrets of a stored configuration, and gives the configuration as the guest gets it.
    ///
    /// # Errors
    /// When one of them has no value.
    pub async fn issue(
        config: &str,
        policy: &Policy,
        resolver: &dyn Resolver,
        consumer: &Consumer,
    ) -> Result<(String, Secrets), SecretError> {
        // Most configurations have none; they pass as they are.
        if !config.contains("$secret") {
            return Ok((config.to_owned(), Secrets::default()));
        }
        let mut config: Value = serde_json::from_str(config).map_err(|_| SecretError::Config)?;
        let whole = config.clone();
        let mut slots = Vec::new();
        collect(&mut config, &mut slots);
        if slots.len() > SECRETS_MAX {
            return Err(SecretError::TooMany { at: slots.len() });
        }
        let mut issued: Vec<Issued> = Vec::new();
        for (slot, stored) in slots {
            let reference = &stored.secret;
            let value = resolver
                .resolve(reference, consumer)
                .await
                .map_err(|reason| SecretError::Unresolved { field: stored.field.path.clone(), reason })?;
            let placeholder = placeholder::fresh().ok_or(SecretError::Random)?;
            *slot = Value::String(placeholder.clone());
            if policy.reveals(&stored.field.path) {
                *slot = Value::String(secrecy::ExposeSecret::expose_secret(&value).to_owned());
            }
            let bound = bound(&stored.field, policy, &whole);
            issued.push(Issued { placeholder, value, field: stored.field, bound, written: stored.secret });
        }
        let scrubber = Scrubber::new(issued.iter().map(|issued| &issued.value));
        Ok((config.to_string(), Secrets { issued, scrubber }))
    }

    /// Whether there are any.
    pub fn is_empty(&self) -> bool {
        self.issued.is_empty()
    }

    /// What looks for them, when there is something to look for.
    pub fn scrubber(&self) -> Option<&Scrubber> {
        self.scrubber.as_ref()
    }

    /// Takes secrets out of a configuration that the guest returns: what was written stands in their places again.
    /// What looks like a reference and was not issued is taken out, or the guest could have any secret of the
    /// host resolved and sent to itself.
    pub fn restore(&self, config: &mut Value) {
        match config {
            Value::String(text) => {
                let issued = self.issued.iter().find(|issued| {
                    issued.placeholder == *text || secrecy::ExposeSecret::expose_secret(&issued.value) == text
                });
                match (issued, &self.scrubber) {
                    (Some(issued), _) => *config = Value::String(issued.written.clone()),
                    (None, Some(scrubber)) => scrubber.json(config),
                    (None, None) => {}
                }
            }
            Value::Array(entries) => entries.iter_mut().for_each(|entry| self.restore(entry)),
            Value::Object(object) if object.contains_key("$secret") => *config = Value::Null,
            Value::Object(object) => object.values_mut().for_each(|inner| self.restore(inner)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Whether some secret may stand in a body that goes this way.
    pub(crate) fn may_be_in_body(&self, towards: Towards<'_>) -> bool {
        self.issued.iter().any(|issued| issued.field.uses.body && issued.is_bound(towards))
    }
}

impl Issued {
    fn is_bound(&self, towards: Towards<'_>) -> bool {
        self.bound.iter().any(|bound| match (bound, towards) {
            (Bound::Hosts(rule), Towards::Network(target)) => {
                rule.scheme == target.scheme
                    && rule.port.matches(target.port)
                    && rule.host.matches(target.host)
            }
            (Bound::Origin(scheme, host, port), Towards::Network(target)) => {
                (*scheme, *port) == (target.scheme, target.port)
                    && host.eq_ignore_ascii_case(target.host.strip_suffix('.').unwrap_or(target.host))
            }
            (Bound::Unix(bound), Towards::Unix(name)) => bound == name,
            _ => false,
        })
    }
}

/// Every stored reference of a configuration, with the place it stands in.
fn collect<'v>(value: &'v mut Value, into: &mut Vec<(&'v mut Value, Stored)>) {
    if let Some(stored) = Stored::of(value) {
        into.push((value, stored));
        return;
    }
    match value {
        Value::Array(entries) => entries.iter_mut().for_each(|entry| collect(entry, into)),
        Value::Object(object) => object.values_mut().for_each(|inner| collect(inner, into)),
        _ => {}
    }
}

/// Where a secret may go: where its schema says, else to every host that was granted by name or as a part of
/// DNS. A grant of every host is no place for a secret.
fn bound(field: &SecretField, policy: &Policy, config: &Value) -> Vec<Bound> {
    let Some(to) = &field.to else {
        let granted = policy.granted().iter().filter_map(|grant| match grant {
            Grant::Http(rule) if rule.host != HostPattern::Any => Some(Bound::Hosts(rule.clone())),
            _ => None,
        });
        return granted.collect();
    };
    let bound = to.iter().filter_map(|destination| match destination {
        Destination::Http(rule) => Some(Bound::Hosts(rule.clone())),
        Destination::Unix(name) => Some(Bound::Unix(name.clone())),
        Destination::Field(path) => origin(at(config, path)?.as_str()?),
        _ => None,
    });
    bound.collect()
}

/// The origin of a URL.
fn origin(url: &str) -> Option<Bound> {
    let uri: http::Uri = url.parse().ok()?;
    let scheme = match uri.scheme_str()? {
        "https" => Scheme::Https,
        "http" => Scheme::Http,
        _ => return None,
    };
    let host = uri.host()?.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
    Some(Bound::Origin(scheme, host, uri.port_u16().unwrap_or(scheme.port())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_contract::secret::fields;
    use resolve::{Purpose, Resolving};
    use serde_json::json;

    #[derive(Debug)]
    struct Named;

    impl Resolver for Named {
        fn resolve<'a>(&'a self, reference: &'a str, _: &'a Consumer) -> Resolving<'a> {
            Box::pin(async move { Ok(SecretString::from(format!("value of {reference}"))) })
        }
    }

    async fn issued(config: Value, grants: &[&str]) -> (Value, Secrets) {
        let schema = json!({"properties": {
            "key": {"format": "secret-ref", "x-leasehold-secret": {"to": ["config:url"]}}, "other": {"format": "secret-ref"},
        }});
        let stored = Stored::all(&config, &fields(&schema).unwrap()).unwrap().to_string();
        let grants = grants.iter().map(|text| text.parse().unwrap()).collect();
        let consumer =
            Consumer { tenant: "t".into(), environment: "e".into(), run: None, purpose: Purpose::Teardown };
        let policy = Policy::new("p", None, grants);
        let (config, secrets) = Secrets::issue(&stored, &policy, &Named, &consumer).await.unwrap();
        (serde_json::from_str(&config).unwrap(), secrets)
    }

    #[tokio::test]
    async fn a_secret_goes_where_a_field_of_the_configuration_says() {
        let config = json!({"key": "env:A", "url": "https://API.example.com:8443/v1"});
        let (config, secrets) = issued(config, &["http=https://other.example.com"]).await;
        let key = config["key"].as_str().unwrap();
        let filled = |host: &str, port| {
            let target = HttpTarget { scheme: Scheme::Https, host, port, method: "GET" };
            secrets.filled_header(key.as_bytes(), Towards::Network(&target)).map(|value| value.into_owned())
        };
        assert_eq!(filled("api.example.com", 8443).unwrap(), b"value of env:A");
        for (host, port) in [("api.example.com", 443), ("other.example.com", 443)] {
            assert_eq!(filled(host, port), Err(Misplaced::Destination { field: "key".into() }));
        }
    }

    #[tokio::test]
    async fn what_comes_back_holds_what_was_written_and_no_reference_of_the_guests_own() {
        let (config, secrets) =
            issued(json!({"key": "env:A", "other": "env:B"}), &["secrets.reveal=other"]).await;
        assert_eq!(config["other"], "value of env:B");
        let mut returned = json!({
            "key": config["key"], "other": config["other"], "said": "it is value of env:A!",
            "forged": {"$secret": "file:/etc/shadow", "field": {"path": "x", "to": null, "uses": {}}},
        });
        secrets.restore(&mut returned);
        assert_eq!(returned["key"], "env:A");
        assert_eq!(returned["other"], "env:B");
        assert_eq!(returned["said"], "it is **************!");
        assert_eq!(returned["forged"], Value::Null);
    }
}
