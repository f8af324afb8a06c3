//! The layers a jail is made of, and which of them a caller insists on.

use super::JailError;
use std::collections::BTreeMap;

macro_rules! layers {
    ($($(#[doc = $doc:literal])* $variant:ident $name:literal $demand:ident $waivable:literal;)*) => {
        /// A layer of isolation. The kernel grants or refuses each by itself.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Layer {
            $($(#[doc = $doc])* $variant,)*
        }

        impl Layer {
            /// Every layer, in the order people see them.
            pub const ALL: &'static [Layer] = &[$(Layer::$variant,)*];

            /// Its name in configuration and messages.
            pub const fn name(self) -> &'static str {
                match self { $(Layer::$variant => $name,)* }
            }

            /// What is demanded unless the caller says otherwise.
            pub const fn default_demand(self) -> Demand {
                match self { $(Layer::$variant => Demand::$demand,)* }
            }

            /// Whether a jail can be made without it at all.
            pub const fn waivable(self) -> bool {
                match self { $(Layer::$variant => $waivable,)* }
            }
        }
    };
}

layers! {
    /// Ids of the jail mean nothing outside. An ordinary user cannot make a jail without it.
    UserNamespace "user-namespace" Required true;
    /// A root of its own with the system directories read-only.
    MountNamespace "mount-namespace" Required false;
    /// Sees no process but its own, and all of them end with its first one.
    PidNamespace "pid-namespace" Required false;
    /// System V and POSIX message queues, semaphores and shared memory of its own.
    IpcNamespace "ipc-namespace" Required true;
    /// A host name of its own.
    UtsNamespace "uts-namespace" Required true;
    /// No network but its own loopback.
    NetworkNamespace "network-namespace" Required true;
    /// Sees its control group as the root. Only hides names, so best effort.
    CgroupNamespace "cgroup-namespace" BestEffort true;
    /// An unprivileged id, no capabilities, no new privileges, resource limits.
    Privileges "privileges" Required false;
    /// A filter on system calls.
    Seccomp "seccomp" Required true;
    /// Control groups for memory, processes and processor time. Best effort: memory and processes have a
    /// fallback (a sampler, and the limit on processes of a user). Processor time has none, so a bound on
    /// it makes this layer required.
    Cgroup "cgroup" BestEffort true;
    /// Pseudo-terminals of its own. Without them there are none, so best effort.
    PseudoTerminals "pseudo-terminals" BestEffort true;
}

impl Layer {
    /// The layer of that name.
    pub fn from_name(name: &str) -> Option<Layer> {
        Layer::ALL.iter().copied().find(|layer| layer.name() == name)
    }

    /// What a person can do about a refusal.
    pub(super) fn advice(self) -> String {
        match self {
            Layer::UserNamespace => {
                "see user.max_user_namespaces and kernel.apparmor_restrict_unprivileged_userns, or run as root".into()
            }
            _ if self.waivable() => format!("waive `{}` by name to go on without it", self.name()),
            _ => "no jail can be made on this machine as it is set up".into(),
        }
    }
}

impl std::fmt::Display for Layer {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.name())
    }
}

/// How much a caller insists on a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Demand {
    /// No jail without it.
    Required,
    /// Used where the kernel grants it, reported where not.
    BestEffort,
    /// Not even tried.
    Waived,
}

/// What became of a layer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Grant {
    /// In force.
    Granted,
    /// Refused, and the jail was made without it because it was only best effort.
    Refused(String),
    /// Given up by the caller.
    Waived,
}

/// What a caller demands of a jail's isolation.
///
/// By default every layer is required but `cgroup-namespace`, `cgroup` and `pseudo-terminals`, which are
/// best effort; and there is no network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Isolation {
    demands: BTreeMap<Layer, Demand>,
    host_network: bool,
}

impl Isolation {
    /// Gives a layer up by name.
    pub fn waive(mut self, layer: Layer) -> Result<Self, JailError> {
        if !layer.waivable() {
            return Err(JailError::NotWaivable { layer });
        }
        self.demands.insert(layer, Demand::Waived);
        Ok(self)
    }

    /// Insists on a layer that is best effort by default.
    #[must_use]
    pub fn require(mut self, layer: Layer) -> Self {
        self.demands.insert(layer, Demand::Required);
        self
    }

    /// Grants the host's own network. This also shows the host's abstract Unix sockets to the jail, for
    /// the kernel keeps both in one namespace.
    #[must_use]
    pub fn with_host_network(mut self) -> Self {
        self.host_network = true;
        self
    }

    /// What is demanded of a layer.
    pub fn demand(&self, layer: Layer) -> Demand {
        if layer == Layer::NetworkNamespace && self.host_network {
            return Demand::Waived;
        }
        self.demands.get(&layer).copied().unwrap_or(layer.default_demand())
    }

    /// Whether the caller gave the layer up.
    pub(super) fn waived(&self, layer: Layer) -> bool {
        self.demand(layer) == Demand::Waived
    }

    /// Whether the caller said something about the layer, rather than leaving the default.
    pub(super) fn waived_by_name(&self, layer: Layer) -> bool {
        self.demands.get(&layer) == Some(&Demand::Waived)
    }
}
