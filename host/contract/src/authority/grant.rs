//! What a host allows, in the one way it is written everywhere: files, commands, rows.

use super::http::{self, HttpRule};
use super::{HostPattern, Permission};
use ipnet::IpNet;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// The longest grant. Hit: refused; nothing that means something is longer.
const GRANT_MAX: usize = 2_000;

/// The longest name of an endpoint.
const NAME_MAX: usize = 63;

/// One thing a host allows a provider.
///
/// Written as one text: `time`, `http=https://*.example.com:8443,GET,POST`, `tcp=ssh=10.0.0.5:22`,
/// `unix-http=docker=/run/docker.sock`, `secrets.reveal=auth.key`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Grant {
    /// Outgoing HTTP to these hosts.
    Http(HttpRule),
    /// A plain connection to an address.
    Tcp(Endpoint),
    /// HTTP and plain connections over a Unix socket: `http://NAME/` leads to it.
    UnixHttp {
        /// What a guest calls it.
        name: String,
        /// Where it is, an absolute path.
        socket: String,
    },
    /// Isolated processes on the host's machine.
    Jail,
    /// The key-value store.
    State,
    /// The value of the secret in this field of the configuration.
    RevealSecret(String),
    /// Clocks and timers.
    Time,
    /// Random numbers.
    Random,
}

/// Where a plain connection leads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// What a guest calls it; the address itself where nothing else was given.
    pub name: String,
    /// The host; never a pattern.
    pub host: HostPattern,
    /// The port.
    pub port: u16,
    /// Networks that the host's name may lead to although they are not public.
    pub networks: Vec<IpNet>,
}

/// A text that is no grant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GrantError {
    /// No permission of that name.
    #[error("`{text}` names no permission; known: {}", known())]
    Unknown {
        /// What was written.
        text: String,
    },
    /// The permission needs to know where or what.
    #[error("`{permission}` alone would allow everything; say what: `{}`", permission.form())]
    TooWide {
        /// The permission.
        permission: Permission,
    },
    /// The permission takes nothing.
    #[error("`{permission}` stands alone; leave `={rest}` out")]
    Alone {
        /// The permission.
        permission: Permission,
        /// What was written behind it.
        rest: String,
    },
    /// What stands behind the permission's name is not what belongs there.
    #[error("`{text}`: {reason}; write {form}")]
    Malformed {
        /// What was written.
        text: String,
        /// What is wrong with it.
        reason: String,
        /// How it is written.
        form: &'static str,
    },
}

impl Grant {
    /// The permission it is a grant of.
    pub fn permission(&self) -> Permission {
        match self {
            Grant::Http(_) => Permission::Http,
            Grant::Tcp(_) => Permission::Tcp,
            Grant::UnixHttp { .. } => Permission::UnixHttp,
            Grant::Jail => Permission::Jail,
            Grant::State => Permission::State,
            Grant::RevealSecret(_) => Permission::RevealSecret,
            Grant::Time => Permission::Time,
            Grant::Random => Permission::Random,
        }
    }
}

impl FromStr for Grant {
    type Err = GrantError;

    fn from_str(text: &str) -> Result<Grant, GrantError> {
        let (permission, rest) = split(text)?;
        let whole = |grant: Grant| match rest {
            None => Ok(grant),
            Some(rest) => Err(GrantError::Alone { permission, rest: rest.to_owned() }),
        };
        let given = || rest.filter(|rest| !rest.is_empty()).ok_or(GrantError::TooWide { permission });
        let wrong = |reason: &str, form| GrantError::Malformed {
            text: text.to_owned(),
            reason: reason.to_owned(),
            form,
        };
        match permission {
            Permission::Http => HttpRule::read(given()?).map(Grant::Http),
            Permission::Tcp => endpoint(given()?).map(Grant::Tcp).map_err(|reason| wrong(reason, TCP_FORM)),
            Permission::UnixHttp => {
                let (name, socket) =
                    given()?.split_once('=').ok_or_else(|| wrong("the path is missing", UNIX_FORM))?;
                let name = unix_name(name).map_err(|reason| wrong(reason, UNIX_FORM))?;
                if !socket.starts_with('/') || socket.contains('\0') {
                    return Err(wrong("the path of a socket is absolute", UNIX_FORM));
                }
                Ok(Grant::UnixHttp { name, socket: socket.to_owned() })
            }
            Permission::RevealSecret => {
                field(given()?).map(Grant::RevealSecret).map_err(|reason| wrong(reason, REVEAL_FORM))
            }
            Permission::Jail => whole(Grant::Jail),
            Permission::State => whole(Grant::State),
            Permission::Time => whole(Grant::Time),
            Permission::Random => whole(Grant::Random),
        }
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.permission().name())?;
        match self {
            Grant::Http(rule) => write!(f, "={rule}"),
            Grant::Tcp(endpoint) => write!(f, "={endpoint}"),
            Grant::UnixHttp { name, socket } => write!(f, "={name}={socket}"),
            Grant::RevealSecret(field) => write!(f, "={field}"),
            Grant::Jail | Grant::State | Grant::Time | Grant::Random => Ok(()),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = format!("{}:{}", self.host, self.port);
        if self.name != address {
            write!(f, "{}=", self.name)?;
        }
        f.write_str(&address)?;
        self.networks.iter().try_for_each(|network| write!(f, ",{network}"))
    }
}

impl Serialize for Grant {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Grant {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

const TCP_FORM: &str = "`tcp=NAME=HOST:PORT`, then `,NETWORK` as often as needed";
const UNIX_FORM: &str = "`unix-http=NAME=/PATH`";
const REVEAL_FORM: &str = "`secrets.reveal=FIELD`, the field's place with dots";

/// A permission's name and what stands behind it.
pub(super) fn split(text: &str) -> Result<(Permission, Option<&str>), GrantError> {
    let (name, rest) = match text.split_once('=') {
        Some((name, rest)) => (name, Some(rest)),
        None => (text, None),
    };
    match Permission::by_name(name) {
        Some(permission) if text.len() <= GRANT_MAX && !text.chars().any(char::is_control) => {
            Ok((permission, rest))
        }
        _ => Err(GrantError::Unknown { text: crate::text::plain(text, 100) }),
    }
}

/// What a guest calls a socket. It takes the place of a host in a URL, and must not shadow one of DNS.
pub(super) fn unix_name(text: &str) -> Result<String, &'static str> {
    let good = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    match text {
        "localhost" => Err("`localhost` is the machine itself"),
        _ if text.is_empty() || text.len() > NAME_MAX || !text.bytes().all(good) => {
            Err("a name is 1 to 63 lower-case letters, digits and `-`")
        }
        _ if text.bytes().all(|byte| byte.is_ascii_digit()) => Err("a name is not a number"),
        _ => Ok(text.to_owned()),
    }
}

/// The place of a field: names joined by dots.
pub(super) fn field(text: &str) -> Result<String, &'static str> {
    match text.split('.').any(str::is_empty) {
        true => Err("a field is one or more names joined by dots"),
        false => Ok(text.to_owned()),
    }
}

fn endpoint(text: &str) -> Result<Endpoint, &'static str> {
    let (given, text) = match text.split_once('=') {
        Some((name, rest)) => (Some(tcp_name(name)?), rest),
        None => (None, text),
    };
    let mut items = text.split(',');
    let (host, port) = http::split_port(items.next().unwrap_or_default())?;
    let port = port.and_then(http::port).ok_or("the port is missing")?;
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let host = match bare.unwrap_or(host).parse() {
        Ok(address) => HostPattern::Address(address),
        Err(_) => HostPattern::Name(http::name(host).ok_or("the host is no name or address")?),
    };
    let networks = items.map(|item| http::network(item).ok_or("an item is a network such as 10.0.0.0/8"));
    let networks = networks.collect::<Result<Vec<_>, _>>()?;
    let name = given.unwrap_or_else(|| format!("{host}:{port}"));
    Ok(Endpoint { name, host, port, networks })
}

/// What a guest calls an address.
pub(super) fn tcp_name(text: &str) -> Result<String, &'static str> {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"._-:[]".contains(&byte);
    match (1..=HOST_AND_PORT_MAX).contains(&text.len()) && text.bytes().all(good) {
        true => Ok(text.to_owned()),
        false => Err("a name is letters, digits, `.`, `_` and `-`"),
    }
}

/// A name may be an address itself: the longest host, a colon, the longest port.
const HOST_AND_PORT_MAX: usize = 260;

fn known() -> String {
    let names: Vec<_> = Permission::ALL.iter().map(|permission| permission.name()).collect();
    names.join(", ")
}
