//! Where HTTP may go: scheme, host, port, methods.

use super::grant::GrantError;
use ipnet::IpNet;
use std::fmt;
use std::net::IpAddr;

/// How a rule for HTTP is written, for messages.
const FORM: &str =
    "`http=https://HOST`, with `:PORT` or `:*`, then `,METHOD` and `,NETWORK` as often as needed";

/// The longest name DNS has.
const HOST_MAX: usize = 253;

/// Methods and networks of one rule. More is a mistake, and each costs time in every decision.
const ITEMS_MAX: usize = 32;

/// A scheme of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Without TLS.
    Http,
    /// Over TLS.
    Https,
}

impl Scheme {
    /// The name in a URL.
    pub const fn name(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }

    /// The port that is meant when none is named.
    pub const fn port(self) -> u16 {
        match self {
            Scheme::Http => 80,
            Scheme::Https => 443,
        }
    }
}

/// Which hosts a rule is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HostPattern {
    /// Every host: `*`.
    Any,
    /// Every name below this one, and not the name itself: `*.example.com`.
    Below(String),
    /// This name alone, in lower case.
    Name(String),
    /// This address, however it is written.
    Address(IpAddr),
}

impl HostPattern {
    /// Whether this host is meant. A host is a name, or an address without brackets; one dot at its end
    /// makes no difference. Allocates nothing.
    pub fn matches(&self, host: &str) -> bool {
        let host = host.strip_suffix('.').unwrap_or(host);
        match self {
            HostPattern::Any => true,
            HostPattern::Name(name) => name.eq_ignore_ascii_case(host),
            HostPattern::Address(address) => host.parse().is_ok_and(|host: IpAddr| host == *address),
            HostPattern::Below(parent) => {
                let Some(cut) = host.len().checked_sub(parent.len()) else { return false };
                // The bytes of a name are compared, so that a cut inside a character is no panic.
                let (below, end) = host.as_bytes().split_at(cut);
                end.eq_ignore_ascii_case(parent.as_bytes()) && below.len() > 1 && below.ends_with(b".")
            }
        }
    }

    /// Reads a pattern; an IPv6 address stands in brackets.
    fn read(text: &str) -> Option<HostPattern> {
        if text == "*" {
            return Some(HostPattern::Any);
        }
        if let Some(inner) = text.strip_prefix('[') {
            let address: IpAddr = inner.strip_suffix(']')?.parse().ok()?;
            return address.is_ipv6().then_some(HostPattern::Address(address));
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            return address.is_ipv4().then_some(HostPattern::Address(address));
        }
        match text.strip_prefix("*.") {
            Some(parent) => name(parent).map(HostPattern::Below),
            None => name(text).map(HostPattern::Name),
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostPattern::Any => f.write_str("*"),
            HostPattern::Below(parent) => write!(f, "*.{parent}"),
            HostPattern::Name(name) => f.write_str(name),
            HostPattern::Address(IpAddr::V4(address)) => address.fmt(f),
            HostPattern::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

/// Which ports a rule is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PortPattern {
    /// Every port: `:*`.
    Any,
    /// This one.
    Is(u16),
}

impl PortPattern {
    /// Whether this port is meant.
    pub fn matches(self, port: u16) -> bool {
        match self {
            PortPattern::Any => true,
            PortPattern::Is(one) => one == port,
        }
    }
}

/// Where HTTP may go.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HttpRule {
    /// With or without TLS.
    pub scheme: Scheme,
    /// The hosts.
    pub host: HostPattern,
    /// The ports.
    pub port: PortPattern,
    /// The methods, in capitals; none means every method.
    pub methods: Vec<String>,
    /// Networks that a host's name may lead to although they are not public. Without them a name that leads
    /// to a private address is refused: whoever answers for the name is not whoever was granted.
    pub networks: Vec<IpNet>,
}

impl HttpRule {
    /// Whether a request is meant. Allocates nothing.
    pub fn matches(&self, scheme: Scheme, host: &str, port: u16, method: &str) -> bool {
        self.scheme == scheme
            && self.port.matches(port)
            && (self.methods.is_empty() || self.methods.iter().any(|one| one == method))
            && self.host.matches(host)
    }

    /// Reads what stands behind `http=`.
    pub(super) fn read(text: &str) -> Result<HttpRule, GrantError> {
        let wrong = |reason: &str| GrantError::Malformed {
            text: format!("http={text}"),
            reason: reason.to_owned(),
            form: FORM,
        };
        let (origin, items) = match text.split_once(',') {
            Some((origin, items)) => (origin, Some(items)),
            None => (text, None),
        };
        let (scheme, authority) = match origin.split_once("://") {
            Some(("https", rest)) => (Scheme::Https, rest),
            Some(("http", rest)) => (Scheme::Http, rest),
            Some(_) => return Err(wrong("the scheme is http or https")),
            None => return Err(wrong("it has to begin with https:// or http://")),
        };
        let authority = authority.strip_suffix('/').unwrap_or(authority);
        if authority.contains(['/', '?', '#']) {
            return Err(wrong("a grant is for a whole host; leave the path out"));
        }
        if authority.contains('@') {
            return Err(wrong("a host has no user name"));
        }
        let (host, port) = split_port(authority).map_err(wrong)?;
        let port = match port {
            None => PortPattern::Is(scheme.port()),
            Some("*") => PortPattern::Any,
            Some(port) => PortPattern::Is(self::port(port).ok_or_else(|| wrong("the port is no number"))?),
        };
        let host = HostPattern::read(host).ok_or_else(|| wrong("the host is no name, pattern or address"))?;
        let (mut methods, mut networks) = (Vec::new(), Vec::new());
        for item in items.into_iter().flat_map(|items| items.split(',')) {
            if !item.is_empty() && item.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-') {
                methods.push(item.to_owned());
            } else if let Some(network) = network(item) {
                networks.push(network);
            } else {
                return Err(wrong("an item is a method in capitals or a network such as 10.0.0.0/8"));
            }
        }
        if methods.len() + networks.len() > ITEMS_MAX {
            return Err(wrong("it has too many items; use several grants"));
        }
        Ok(HttpRule { scheme, host, port, methods, networks })
    }
}

impl fmt::Display for HttpRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme.name(), self.host)?;
        match self.port {
            PortPattern::Any => f.write_str(":*")?,
            PortPattern::Is(port) if port != self.scheme.port() => write!(f, ":{port}")?,
            PortPattern::Is(_) => {}
        }
        for method in &self.methods {
            write!(f, ",{method}")?;
        }
        for network in &self.networks {
            write!(f, ",{network}")?;
        }
        Ok(())
    }
}

/// A host and what stands behind its colon. An IPv6 address has to be in brackets, which stay.
pub(super) fn split_port(authority: &str) -> Result<(&str, Option<&str>), &'static str> {
    let colon = match authority.rfind(']') {
        Some(end) => match &authority[end + 1..] {
            "" => None,
            rest if rest.starts_with(':') => Some(end + 1),
            _ => return Err("something stands between the address and the port"),
        },
        None if authority.matches(':').count() > 1 => return Err("an IPv6 address stands in brackets"),
        None => authority.find(':'),
    };
    Ok(match colon {
        Some(colon) => (&authority[..colon], Some(&authority[colon + 1..])),
        None => (authority, None),
    })
}

/// A port: plain digits, not zero.
pub(super) fn port(text: &str) -> Option<u16> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|port| digits && *port > 0)
}

/// A network, or a single address as the network of itself alone.
pub(super) fn network(text: &str) -> Option<IpNet> {
    let network = text.parse::<IpNet>().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from))?;
    Some(network.trunc())
}

/// A name of DNS in lower case; labels may begin with `_`, as some services' do. A name whose last label is
/// a number would be read as an address by resolvers, so it is none.
pub(super) fn name(text: &str) -> Option<String> {
    let text = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    let label = |label: &str| {
        let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        (1..=63).contains(&label.len())
            && label.bytes().all(inner)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let last = text.rsplit('.').next().unwrap_or_default();
    let numeric = last.bytes().all(|byte| byte.is_ascii_digit()) || last.starts_with("0x");
    (text.len() <= HOST_MAX && !numeric && text.split('.').all(label)).then_some(text)
}
