//! What a declaration asks for.

use super::grant::{self, GrantError};
use super::http::{HttpRule, Scheme};
use super::{Grant, Permission};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// One thing a declaration asks for: a permission, or a part of it.
///
/// Written like a [`Grant`], and shorter where only the host can know: `http` alone for whatever the host
/// grants, `unix-http=docker` and `tcp=ssh` by name without a place.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Ask {
    /// All of a permission that the host grants.
    All(Permission),
    /// HTTP to these hosts.
    Http(HttpRule),
    /// The connection of this name.
    Tcp(String),
    /// The socket of this name.
    UnixHttp(String),
    /// The value of the secret in this field.
    RevealSecret(String),
}

impl Ask {
    /// The permission it asks for.
    pub fn permission(&self) -> Permission {
        match self {
            Ask::All(permission) => *permission,
            Ask::Http(_) => Permission::Http,
            Ask::Tcp(_) => Permission::Tcp,
            Ask::UnixHttp(_) => Permission::UnixHttp,
            Ask::RevealSecret(_) => Permission::RevealSecret,
        }
    }

    /// Whether it asks for this request.
    pub(super) fn covers_http(&self, scheme: Scheme, host: &str, port: u16, method: &str) -> bool {
        match self {
            Ask::All(permission) => *permission == Permission::Http,
            Ask::Http(rule) => rule.matches(scheme, host, port, method),
            _ => false,
        }
    }

    /// Whether it asks for the thing of this name under a permission whose things have names.
    pub(super) fn covers_named(&self, permission: Permission, name: &str) -> bool {
        match self {
            Ask::All(all) => *all == permission,
            Ask::Tcp(asked) => permission == Permission::Tcp && asked == name,
            Ask::UnixHttp(asked) => permission == Permission::UnixHttp && asked == name,
            Ask::RevealSecret(asked) => permission == Permission::RevealSecret && asked == name,
            Ask::Http(_) => false,
        }
    }

    /// Whether a grant could ever serve it. Of two patterns of hosts nothing is said; they may overlap.
    pub(super) fn may_use(&self, grant: &Grant) -> bool {
        match (self, grant) {
            (Ask::Http(asked), Grant::Http(granted)) => asked.scheme == granted.scheme,
            (_, Grant::Tcp(endpoint)) => self.covers_named(Permission::Tcp, &endpoint.name),
            (_, Grant::UnixHttp { name, .. }) => self.covers_named(Permission::UnixHttp, name),
            (_, Grant::RevealSecret(field)) => self.covers_named(Permission::RevealSecret, field),
            _ => self.permission() == grant.permission(),
        }
    }
}

impl FromStr for Ask {
    type Err = GrantError;

    fn from_str(text: &str) -> Result<Ask, GrantError> {
        let (permission, Some(rest)) = grant::split(text)? else {
            return Permission::by_name(text)
                .map(Ask::All)
                .ok_or_else(|| GrantError::Unknown { text: text.into() });
        };
        let wrong = |reason: &str| GrantError::Malformed {
            text: text.to_owned(),
            reason: reason.to_owned(),
            form: "`http=https://HOST`, `tcp=NAME`, `unix-http=NAME`, `secrets.reveal=FIELD` or a permission alone",
        };
        match permission {
            Permission::Http => HttpRule::read(rest).map(Ask::Http),
            // A place is the host's to say; one in a declaration would be no more than a wish.
            Permission::Tcp => grant::tcp_name(rest).map(Ask::Tcp).map_err(wrong),
            Permission::UnixHttp => grant::unix_name(rest).map(Ask::UnixHttp).map_err(wrong),
            Permission::RevealSecret => grant::field(rest).map(Ask::RevealSecret).map_err(wrong),
            _ => Err(GrantError::Alone { permission, rest: rest.to_owned() }),
        }
    }
}

impl fmt::Display for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.permission().name())?;
        match self {
            Ask::All(_) => Ok(()),
            Ask::Http(rule) => write!(f, "={rule}"),
            Ask::Tcp(name) | Ask::UnixHttp(name) | Ask::RevealSecret(name) => write!(f, "={name}"),
        }
    }
}

impl From<Permission> for Ask {
    fn from(permission: Permission) -> Ask {
        Ask::All(permission)
    }
}

impl Serialize for Ask {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Ask {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}
