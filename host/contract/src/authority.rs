//! What a component wants to reach, and the permission that covers it.
//!
//! Authority = wanted (imports) ∩ declared (permissions) ∩ granted (host policy). This module holds the
//! one table from imports to permissions; who declares and who grants is decided elsewhere.

use serde::{Deserialize, Serialize};

/// Something a host can grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Permission {
    /// Outgoing HTTP.
    #[serde(rename = "http")]
    Http,
    /// Plain connections to granted addresses.
    #[serde(rename = "tcp")]
    Tcp,
    /// HTTP over granted Unix sockets.
    #[serde(rename = "unix-http")]
    UnixHttp,
    /// Isolated processes on the host's machine.
    #[serde(rename = "jail")]
    Jail,
    /// The key-value store.
    #[serde(rename = "state")]
    State,
    /// Clocks and timers.
    #[serde(rename = "time")]
    Time,
    /// Random numbers.
    #[serde(rename = "random")]
    Random,
}

impl Permission {
    /// Every permission.
    pub const ALL: [Permission; 7] = [
        Permission::Http,
        Permission::Tcp,
        Permission::UnixHttp,
        Permission::Jail,
        Permission::State,
        Permission::Time,
        Permission::Random,
    ];

    /// The name in files and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Permission::Http => "http",
            Permission::Tcp => "tcp",
            Permission::UnixHttp => "unix-http",
            Permission::Jail => "jail",
            Permission::State => "state",
            Permission::Time => "time",
            Permission::Random => "random",
        }
    }

    /// The permission of this name.
    pub fn by_name(name: &str) -> Option<Permission> {
        Permission::ALL.into_iter().find(|permission| permission.name() == name)
    }
}

impl std::fmt::Display for Permission {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// What an import needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Nothing: it reaches nothing outside the call.
    Nothing,
    /// Any one of these permissions.
    AnyOf(&'static [Permission]),
    /// No permission covers it; the text says what to use instead.
    Never(&'static str),
}

/// Imports by name without version, each with what it needs. The longest matching prefix decides; an
/// import that matches no row is refused.
pub const IMPORTS: &[(&str, Need)] = &[
    ("leasehold:provider/", Need::Nothing),
    ("leasehold:host/transfer", Need::Nothing),
    ("leasehold:host/log", Need::Nothing),
    ("leasehold:host/egress-status", Need::Nothing),
    ("leasehold:host/state", Need::AnyOf(&[Permission::State])),
    ("leasehold:host/jail", Need::AnyOf(&[Permission::Jail])),
    ("leasehold:host/connect", Need::AnyOf(&[Permission::Tcp, Permission::UnixHttp])),
    ("wasi:io/", Need::Nothing),
    // Environment, arguments and preopened directories are always empty, so these reach nothing.
    ("wasi:cli/", Need::Nothing),
    ("wasi:filesystem/", Need::Nothing),
    ("wasi:clocks/", Need::AnyOf(&[Permission::Time])),
    ("wasi:random/", Need::AnyOf(&[Permission::Random])),
    ("wasi:http/types", Need::Nothing),
    ("wasi:http/outgoing-handler", Need::AnyOf(&[Permission::Http, Permission::UnixHttp])),
    ("wasi:sockets/", Need::Never("use `wasi:http/outgoing-handler` or `leasehold:host/connect`")),
];

/// What an import needs. `name` may carry a version.
pub fn need(name: &str) -> Option<Need> {
    let bare = name.split('@').next().unwrap_or(name);
    IMPORTS
        .iter()
        .filter(|(prefix, _)| bare == *prefix || (prefix.ends_with('/') && bare.starts_with(prefix)))
        .max_by_key(|(prefix, _)| prefix.len())
        .map(|(_, need)| *need)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permission_is_found_by_its_name() {
        for permission in Permission::ALL {
            assert_eq!(Permission::by_name(permission.name()), Some(permission));
            assert_eq!(serde_json::to_value(permission).unwrap(), permission.name());
        }
        assert_eq!(Permission::by_name("HTTP"), None);
    }

    #[test]
    fn an_import_needs_what_its_interface_needs_whatever_the_version() {
        let cases = [
            ("wasi:io/streams@0.2.12", Some(Need::Nothing)),
            ("wasi:clocks/monotonic-clock@0.2.0", Some(Need::AnyOf(&[Permission::Time]))),
            ("leasehold:host/jail@0.1.0", Some(Need::AnyOf(&[Permission::Jail]))),
            ("leasehold:host/jail-of-another-kind@0.1.0", None),
            ("somebody:else/thing", None),
            ("thing", None),
        ];
        for (name, expected) in cases {
            assert_eq!(need(name), expected, "{name}");
        }
        assert!(matches!(need("wasi:sockets/tcp@0.2.12"), Some(Need::Never(_))));
    }
}
