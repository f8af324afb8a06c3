//! What is left of wanted, declared and granted, and every decision made of it.

use super::http::Scheme;
use super::{Ask, Denial, Endpoint, Grant, HttpRule, Missing, Permission};
use crate::text::plain;
use std::collections::BTreeSet;

/// The interface that sends requests.
const HTTP: &str = "wasi:http/outgoing-handler";

/// The interface that opens plain connections.
const CONNECT: &str = "leasehold:host/connect";

/// What is quoted of a guest's own text.
const ASKED_MAX: usize = 300;

/// What one provider may reach.
///
/// Cheap to share, never changed: another set of grants is another policy. Decisions allocate nothing when
/// the answer is yes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    provider: String,
    /// None when nobody declared anything: then the grants alone decide.
    declared: Option<Vec<Ask>>,
    granted: Vec<Grant>,
}

/// A request, as it would be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpTarget<'a> {
    /// With or without TLS.
    pub scheme: Scheme,
    /// The host, an IPv6 address without brackets.
    pub host: &'a str,
    /// The port, the scheme's own where none was named.
    pub port: u16,
    /// The method, in capitals.
    pub method: &'a str,
}

/// How an allowed request leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpWay<'a> {
    /// Over the network, by this rule.
    Network(&'a HttpRule),
    /// Over this Unix socket.
    Unix {
        /// What the guest calls it.
        name: &'a str,
        /// Its path.
        socket: &'a str,
    },
}

/// Where an allowed connection leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectWay<'a> {
    /// Over the network.
    Tcp(&'a Endpoint),
    /// To this Unix socket.
    Unix {
        /// What the guest calls it.
        name: &'a str,
        /// Its path.
        socket: &'a str,
    },
}

impl Policy {
    /// The policy of a provider that declared these things, or declared nothing at all because its host
    /// application vouches for it.
    pub fn new(provider: impl Into<String>, declared: Option<Vec<Ask>>, granted: Vec<Grant>) -> Policy {
        Policy { provider: provider.into(), declared, granted }
    }

    /// The provider's name.
    pub fn provider(&self) -> &str {
        &self.provider
    }

    /// What the host granted.
    pub fn granted(&self) -> &[Grant] {
        &self.granted
    }

    /// What the provider declared; none when nobody declared anything.
    pub fn declared(&self) -> Option<&[Ask]> {
        self.declared.as_deref()
    }

    /// The permissions of which something is both declared and granted: what a component is linked with.
    pub fn permissions(&self) -> BTreeSet<Permission> {
        let granted = self.granted.iter().filter(|grant| self.asks(|ask| ask.may_use(grant)));
        granted.map(Grant::permission).collect()
    }

    /// Grants of which nothing can come: not declared, or of a permission that no import wants.
    pub fn unused(&self, wanted: &BTreeSet<Permission>) -> Vec<&Grant> {
        let used = |grant: &Grant| {
            let permission = grant.permission();
            // A revealed secret is in the configuration; no import tells of it.
            let imported = permission == Permission::RevealSecret || wanted.contains(&permission);
            imported && self.asks(|ask| ask.may_use(grant))
        };
        self.granted.iter().filter(|grant| !used(grant)).collect()
    }

    /// Whether a permission that is all or nothing is there.
    ///
    /// # Errors
    /// When it is not declared or not granted.
    pub fn allows(&self, permission: Permission, import: &'static str) -> Result<(), Denial> {
        let declared = self.asks(|ask| ask.permission() == permission);
        let granted = self.granted.iter().any(|grant| grant.permission() == permission);
        self.concluded(declared.then_some(()), granted.then_some(()), || Asked {
            import,
            permission,
            what: permission.name().to_owned(),
            ask: permission.name().to_owned(),
            grant: permission.form().to_owned(),
        })
    }

    /// Whether a request may be sent, and how.
    ///
    /// # Errors
    /// When it is not declared or not granted.
    pub fn http(&self, target: &HttpTarget<'_>) -> Result<HttpWay<'_>, Denial> {
        let HttpTarget { scheme, host, port, method } = *target;
        // A socket's name has no dot and is no address, so it shadows nothing that DNS could know.
        if let Some((name, socket)) = self.socket(host).filter(|_| scheme == Scheme::Http && port == 80) {
            if self.asks(|ask| ask.covers_named(Permission::UnixHttp, name)) {
                return Ok(HttpWay::Unix { name, socket });
            }
            return Err(self.denial(Asked::of_request(target, Permission::UnixHttp), true));
        }
        let declared = self.asks(|ask| ask.covers_http(scheme, host, port, method)).then_some(());
        let granted = self.granted.iter().find_map(|grant| match grant {
            Grant::Http(rule) if rule.matches(scheme, host, port, method) => Some(HttpWay::Network(rule)),
            _ => None,
        });
        self.concluded(declared, granted, || Asked::of_request(target, Permission::Http))
    }

    /// Whether a plain connection may be opened, and where to.
    ///
    /// # Errors
    /// When it is not declared or not granted.
    pub fn connect(&self, name: &str) -> Result<ConnectWay<'_>, Denial> {
        if let Some((name, socket)) = self.socket(name) {
            let declared = self.asks(|ask| ask.covers_named(Permission::UnixHttp, name)).then_some(());
            let way = Some(ConnectWay::Unix { name, socket });
            return self.concluded(declared, way, || Asked::of_name(name, Permission::UnixHttp));
        }
        let endpoint = self.granted.iter().find_map(|grant| match grant {
            Grant::Tcp(endpoint) if endpoint.name == name => Some(ConnectWay::Tcp(endpoint)),
            _ => None,
        });
        let declared = self.asks(|ask| ask.covers_named(Permission::Tcp, name)).then_some(());
        self.concluded(declared, endpoint, || Asked::of_name(name, Permission::Tcp))
    }

    /// Whether the guest may see the value of the secret in this field.
    pub fn reveals(&self, field: &str) -> bool {
        let granted = |grant: &Grant| matches!(grant, Grant::RevealSecret(granted) if granted == field);
        self.granted.iter().any(granted) && self.asks(|ask| ask.covers_named(Permission::RevealSecret, field))
    }

    /// A no because of where a name led.
    pub fn wrong_address(&self, target: &HttpTarget<'_>, found: String, network: &str) -> Denial {
        let asked = Asked::of_request(target, Permission::Http);
        let grant = format!("{},{network}", asked.grant);
        let missing = match network.is_empty() {
            true => Missing::Never(found),
            false => Missing::Address { found, grant },
        };
        Denial { missing, ..self.denial(asked, false) }
    }

    /// A no because of where an endpoint's name led; `grant` would allow it.
    pub fn wrong_endpoint(&self, name: &str, found: String, grant: String) -> Denial {
        let missing = Missing::Address { found, grant };
        Denial { missing, ..self.denial(Asked::of_name(name, Permission::Tcp), false) }
    }

    /// A no for a reason that no grant would mend.
    pub fn never(&self, import: &'static str, permission: Permission, asked: &str, reason: String) -> Denial {
        Denial {
            provider: self.provider.clone(),
            import,
            permission,
            asked: plain(asked, ASKED_MAX),
            missing: Missing::Never(reason),
        }
    }

    fn asks(&self, covers: impl Fn(&Ask) -> bool) -> bool {
        self.declared.as_ref().is_none_or(|asks| asks.iter().any(covers))
    }

    fn socket(&self, wanted: &str) -> Option<(&str, &str)> {
        self.granted.iter().find_map(|grant| match grant {
            Grant::UnixHttp { name, socket } if name.eq_ignore_ascii_case(wanted) => {
                Some((name.as_str(), socket.as_str()))
            }
            _ => None,
        })
    }

    /// Both, or which of the two is missing. A missing declaration is said first: no grant would help.
    fn concluded<T>(
        &self,
        declared: Option<()>,
        granted: Option<T>,
        asked: impl FnOnce() -> Asked,
    ) -> Result<T, Denial> {
        match (declared, granted) {
            (Some(()), Some(granted)) => Ok(granted),
            (declared, _) => Err(self.denial(asked(), declared.is_none())),
        }
    }

    #[cold]
    fn denial(&self, asked: Asked, undeclared: bool) -> Denial {
        let Asked { import, permission, what, ask, grant } = asked;
        let missing = if undeclared { Missing::Declaration(ask) } else { Missing::Grant(grant) };
        Denial { provider: self.provider.clone(), import, permission, asked: what, missing }
    }
}

/// What was asked for, in the words of a denial.
struct Asked {
    import: &'static str,
    permission: Permission,
    what: String,
    ask: String,
    grant: String,
}

impl Asked {
    fn of_request(target: &HttpTarget<'_>, permission: Permission) -> Asked {
        let HttpTarget { scheme, host, port, method } = *target;
        let host = plain(host, ASKED_MAX);
        let shown = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        let port = if port == scheme.port() { String::new() } else { format!(":{port}") };
        let origin = format!("{}://{shown}{port}", scheme.name());
        let (ask, grant) = match permission {
            Permission::UnixHttp => (format!("unix-http={host}"), format!("unix-http={host}=/PATH")),
            _ => (format!("http={origin}"), format!("http={origin}")),
        };
        Asked { import: HTTP, permission, what: format!("{} {origin}", plain(method, 40)), ask, grant }
    }

    fn of_name(name: &str, permission: Permission) -> Asked {
        let name = plain(name, ASKED_MAX);
        let place = if permission == Permission::Tcp { "HOST:PORT" } else { "/PATH" };
        Asked {
            import: CONNECT,
            permission,
            what: format!("a connection to `{name}`"),
            ask: format!("{permission}={name}"),
            grant: format!("{permission}={name}={place}"),
        }
    }
}
