//! The kinds of authority.

use serde::{Deserialize, Serialize};

macro_rules! permissions {
    ($($(#[doc = $doc:literal])+ $variant:ident $name:literal $form:literal;)*) => {
        /// Something a host can grant.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[non_exhaustive]
        pub enum Permission {
            $($(#[doc = $doc])+ #[serde(rename = $name)] $variant,)*
        }

        impl Permission {
            /// Every permission.
            pub const ALL: &[Permission] = &[$(Permission::$variant,)*];

            /// The name in files and messages.
            pub const fn name(self) -> &'static str {
                match self { $(Permission::$variant => $name,)* }
            }

            /// How a grant of it is written; a capital word stands for what the host has to say.
            pub const fn form(self) -> &'static str {
                match self { $(Permission::$variant => $form,)* }
            }
        }
    };
}

permissions! {
    /// Outgoing HTTP.
    Http "http" "http=https://HOST";
    /// Plain connections to granted addresses.
    Tcp "tcp" "tcp=NAME=HOST:PORT";
    /// HTTP, and plain connections, over granted Unix sockets.
    UnixHttp "unix-http" "unix-http=NAME=/PATH";
    /// Isolated processes on the host's machine.
    Jail "jail" "jail";
    /// The key-value store.
    State "state" "state";
    /// The value of a secret instead of a placeholder for it.
    RevealSecret "secrets.reveal" "secrets.reveal=FIELD";
    /// Clocks and timers.
    Time "time" "time";
    /// Random numbers.
    Random "random" "random";
}

impl Permission {
    /// The permission of this name.
    pub fn by_name(name: &str) -> Option<Permission> {
        Permission::ALL.iter().copied().find(|permission| permission.name() == name)
    }
}

impl std::fmt::Display for Permission {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permission_is_found_by_its_name() {
        for permission in Permission::ALL.iter().copied() {
            assert_eq!(Permission::by_name(permission.name()), Some(permission));
            assert_eq!(serde_json::to_value(permission).unwrap(), permission.name());
            assert!(permission.form().starts_with(permission.name()));
        }
        assert_eq!(Permission::by_name("HTTP"), None);
    }
}
