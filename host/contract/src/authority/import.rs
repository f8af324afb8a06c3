//! The one table from imports to the permissions that cover them.

use super::Permission;

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

/// An interface that a component may import, and what it needs.
#[derive(Clone, Copy, Debug)]
pub struct ImportInfo {
    /// Its name without version.
    pub name: &'static str,
    /// The versions that are served: this one, and those that only add to it.
    pub track: &'static str,
    /// What it needs.
    pub need: Need,
}

macro_rules! imports {
    ($($name:literal $track:literal $need:expr;)*) => {
        /// Every interface that a component may import. One that has no row is refused.
        pub const IMPORTS: &[ImportInfo] =
            &[$(ImportInfo { name: $name, track: $track, need: $need },)*];
    };
}

const TIME: Need = Need::AnyOf(&[Permission::Time]);
const RANDOM: Need = Need::AnyOf(&[Permission::Random]);
const NO_SOCKETS: Need = Need::Never("use `wasi:http/outgoing-handler` or `leasehold:host/connect`");

imports! {
    // Types alone: whoever exports a method imports what its signature names.
    "leasehold:provider/types" "0.1" Need::Nothing;
    "leasehold:provider/sync-types" "0.1" Need::Nothing;
    "leasehold:provider/interactive-setup" "0.1" Need::Nothing;
    "leasehold:host/transfer" "0.1" Need::Nothing;
    "leasehold:host/log" "0.1" Need::Nothing;
    "leasehold:host/egress-status" "0.1" Need::Nothing;
    "leasehold:host/state" "0.1" Need::AnyOf(&[Permission::State]);
    "leasehold:host/jail" "0.1" Need::AnyOf(&[Permission::Jail]);
    "leasehold:host/connect" "0.1" Need::AnyOf(&[Permission::Tcp, Permission::UnixHttp]);
    "wasi:io/error" "0.2" Need::Nothing;
    "wasi:io/poll" "0.2" Need::Nothing;
    "wasi:io/streams" "0.2" Need::Nothing;
    // Environment, arguments and preopened directories are always empty, so these reach nothing.
    "wasi:cli/environment" "0.2" Need::Nothing;
    "wasi:cli/exit" "0.2" Need::Nothing;
    "wasi:cli/stdin" "0.2" Need::Nothing;
    "wasi:cli/stdout" "0.2" Need::Nothing;
    "wasi:cli/stderr" "0.2" Need::Nothing;
    "wasi:cli/terminal-input" "0.2" Need::Nothing;
    "wasi:cli/terminal-output" "0.2" Need::Nothing;
    "wasi:cli/terminal-stdin" "0.2" Need::Nothing;
    "wasi:cli/terminal-stdout" "0.2" Need::Nothing;
    "wasi:cli/terminal-stderr" "0.2" Need::Nothing;
    "wasi:filesystem/types" "0.2" Need::Nothing;
    "wasi:filesystem/preopens" "0.2" Need::Nothing;
    "wasi:clocks/monotonic-clock" "0.2" TIME;
    "wasi:clocks/wall-clock" "0.2" TIME;
    "wasi:random/random" "0.2" RANDOM;
    "wasi:random/insecure" "0.2" RANDOM;
    "wasi:random/insecure-seed" "0.2" RANDOM;
    "wasi:http/types" "0.2" Need::Nothing;
    "wasi:http/outgoing-handler" "0.2" Need::AnyOf(&[Permission::Http, Permission::UnixHttp]);
    "wasi:sockets/network" "0.2" NO_SOCKETS;
    "wasi:sockets/instance-network" "0.2" NO_SOCKETS;
    "wasi:sockets/ip-name-lookup" "0.2" NO_SOCKETS;
    "wasi:sockets/tcp" "0.2" NO_SOCKETS;
    "wasi:sockets/tcp-create-socket" "0.2" NO_SOCKETS;
    "wasi:sockets/udp" "0.2" NO_SOCKETS;
    "wasi:sockets/udp-create-socket" "0.2" NO_SOCKETS;
}

/// What an import needs; none when no version of it that is named like this is served.
pub fn need(name: &str) -> Option<Need> {
    let (bare, version) = name.split_once('@')?;
    let row = IMPORTS.iter().find(|row| row.name == bare)?;
    let patch = version.strip_prefix(row.track)?.strip_prefix('.')?;
    // A pre-release or a build of its own is another version as far as anybody can tell.
    patch.bytes().all(|digit| digit.is_ascii_digit()).then_some(row.need)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_import_needs_what_its_interface_needs_in_every_version_that_is_served() {
        let cases = [
            ("wasi:io/streams@0.2.12", Some(Need::Nothing)),
            ("wasi:clocks/monotonic-clock@0.2.0", Some(Need::AnyOf(&[Permission::Time]))),
            ("leasehold:host/jail@0.1.0", Some(Need::AnyOf(&[Permission::Jail]))),
            ("wasi:io/streams", None),
            ("wasi:io/streams@9.9.12", None),
            ("wasi:io/streams@0.20.1", None),
            ("wasi:io/streams@0.2.0-rc.1", None),
            ("wasi:io/no-such-thing@0.2.12", None),
            ("wasi:cli/backdoor@0.2.0", None),
            ("leasehold:provider/execute@0.1.0", None),
            ("leasehold:host/jail-of-another-kind@0.1.0", None),
            ("somebody:else/thing@1.0.0", None),
            ("thing", None),
        ];
        for (name, expected) in cases {
            assert_eq!(need(name), expected, "{name}");
        }
        assert!(matches!(need("wasi:sockets/tcp@0.2.12"), Some(Need::Never(_))));
    }
}
