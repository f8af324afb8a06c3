//! Every limit of a call: one table, with the default, the ceiling, the reason, and what happens when it
//! is hit. `leasehold limits` prints this table, and `Limits::set` is the only way to change a value.

use serde::Serialize;

/// What the contract of one limit says.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LimitInfo {
    /// The limit.
    #[serde(skip)]
    pub limit: Limit,
    /// Its name in files, messages and outcomes.
    pub name: &'static str,
    /// What it is counted in.
    pub unit: &'static str,
    /// The value in force unless somebody changes it.
    pub default: u64,
    /// The highest value that can be set.
    pub ceiling: u64,
    /// Why there is a limit, and why this one.
    pub reason: &'static str,
    /// What happens when it is hit.
    pub when_hit: &'static str,
}

/// A value that cannot be set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LimitError {
    /// No limit of that name.
    #[error("there is no limit `{name}`; `leasehold limits` lists them")]
    Unknown {
        /// The name asked for.
        name: String,
    },
    /// The value is zero or above the ceiling.
    #[error("limit `{name}` can be 1 to {ceiling} {unit}, not {value}")]
    OutOfRange {
        /// The limit.
        name: &'static str,
        /// The value asked for.
        value: u64,
        /// The highest value that can be set.
        ceiling: u64,
        /// What it is counted in.
        unit: &'static str,
    },
}

macro_rules! limits {
    ($($variant:ident $field:ident $name:literal $unit:literal
        $default:expr, $ceiling:expr, $reason:literal, $when_hit:literal;)*) => {
        /// A limit of a call.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Limit {
            $(#[doc = $reason] $variant,)*
        }

        /// Every limit, in the order people see them.
        pub const LIMITS: &[LimitInfo] = &[$(LimitInfo {
            limit: Limit::$variant, name: $name, unit: $unit, default: $default, ceiling: $ceiling,
            reason: $reason, when_hit: $when_hit,
        },)*];

        /// The limits in force for one call.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct Limits { $($field: u64,)* }

        impl Default for Limits {
            fn default() -> Self {
                Limits { $($field: $default,)* }
            }
        }

        impl Limits {
            /// The value in force.
            pub const fn get(&self, limit: Limit) -> u64 {
                match limit { $(Limit::$variant => self.$field,)* }
            }

            fn slot(&mut self, limit: Limit) -> &mut u64 {
                match limit { $(Limit::$variant => &mut self.$field,)* }
            }
        }
    };
}

// variant, field, name, unit, default, ceiling, reason, what happens
limits! {
    Wall wall_ms "wall-ms" "milliseconds" 30_000, 2_147_483_647,
        "Nobody waits for ever; the clock also runs while the guest is inside a host call. The default is the contract's for a call without a budget of its own.",
        "the call ends, the instance is dropped";
    Fuel fuel "fuel" "instructions" 20_000_000_000, 2_000_000_000_000,
        "Processor time a guest may burn, apart from waiting; the default is about half a minute of computing.",
        "the call ends, the instance is dropped";
    Memory memory_bytes "memory-bytes" "bytes" 64 << 20, 256 << 20,
        "All memories and tables of the instance together. The default holds an interpreter; the ceiling is the size of a pool slot.",
        "growth is refused; a guest that cannot go on, or asks again and again, ends";
    Tables table_elements "table-elements" "elements" 100_000, 200_000,
        "Elements of all tables together; interpreters need tens of thousands.",
        "growth is refused; a guest that cannot go on, or asks again and again, ends";
    Handles handles "handles" "handles" 1_024, 65_536,
        "Streams, timers and other resources a guest holds at one time; each costs host memory.",
        "the call ends, the instance is dropped";
    Returned returned_bytes "returned-bytes" "bytes" 1 << 20, 64 << 20,
        "Bytes a guest passes to the host in one piece, as an argument or as its answer; the host copies them.",
        "the call ends, the instance is dropped";
    Config config_bytes "config-bytes" "bytes" 64 << 10, 1 << 20,
        "A configuration as JSON text, in either direction.",
        "the call is refused, or its answer is not used";
    Metadata metadata_bytes "metadata-bytes" "bytes" 64 << 10, 1 << 20,
        "Metadata is stored with the lease and sent with every later call.",
        "the answer is not used";
    Message message_bytes "message-bytes" "bytes" 4 << 10, 64 << 10,
        "A message is read by people and written to logs.",
        "the answer is not used";
    Id id_bytes "id-bytes" "bytes" 1 << 10, 4 << 10,
        "Ids, codes and references go into rows, labels and paths.",
        "the answer is not used";
    Items items "items" "entries" 1_000, 100_000,
        "Entries of a list a guest returns.",
        "the answer is not used";
    Output output_bytes "output-bytes" "bytes" 1 << 30, 1 << 40,
        "Bytes a command may write to one of its two streams, kept or not.",
        "the call ends, the instance is dropped";
    OutputKept output_kept_bytes "output-kept-bytes" "bytes" 1 << 20, 64 << 20,
        "Bytes of each stream the host keeps: half from the head, half from the tail.",
        "the middle is counted and not kept";
    LogLines log_lines "log-lines" "lines" 1_000, 100_000,
        "Log lines of one call; more says nothing more.",
        "further lines are counted and dropped";
    LogBytes log_bytes "log-bytes" "bytes" 256 << 10, 16 << 20,
        "Log text of one call.",
        "further lines are counted and dropped";
    LogRate log_rate "log-rate" "lines a second" 200, 10_000,
        "Log lines of one call in one second, so that one guest does not drown the others.",
        "further lines of that second are counted and dropped";
    HttpOpen http_open "http-open" "requests" 32, 1_024,
        "Requests of one call that are under way at one time; each has a connection and buffers of the host.",
        "the request fails with connection-limit-reached";
    HttpRequests http_requests "http-requests" "requests" 10_000, 1_000_000,
        "Requests of one call in all.",
        "the request fails with connection-limit-reached";
    HttpHeaders http_header_bytes "http-header-bytes" "bytes" 64 << 10, 256 << 10,
        "Names and values of all headers of one request or one answer, as the host holds them.",
        "the request fails, or its answer is not delivered";
    HttpSent http_sent_bytes "http-sent-bytes" "bytes" 64 << 30, 1 << 40,
        "Bytes of the bodies that one call sends.",
        "the request ends with http-request-body-size";
    HttpReceived http_received_bytes "http-received-bytes" "bytes" 64 << 30, 1 << 40,
        "Bytes of the bodies that one call receives.",
        "the answer ends with http-response-body-size";
    HttpConnect http_connect_ms "http-connect-ms" "milliseconds" 10_000, 600_000,
        "Time for a connection, its name and its TLS included, unless the guest asks for another; never beyond the call's own.",
        "the request fails with connection-timeout";
    HttpFirstByte http_first_byte_ms "http-first-byte-ms" "milliseconds" 60_000, 86_400_000,
        "Time to the first byte of an answer, unless the guest asks for another; never beyond the call's own.",
        "the request fails with connection-read-timeout";
    HttpIdle http_idle_ms "http-idle-ms" "milliseconds" 60_000, 86_400_000,
        "Time between two pieces of an answer, unless the guest asks for another; never beyond the call's own.",
        "the answer ends with connection-read-timeout";
    Connections connections "connections" "connections" 16, 256,
        "Plain connections of one call that are open at one time.",
        "opening one more is refused";
    StateKeys state_keys "state-keys" "entries" 1_000, 100_000,
        "Entries that one provider keeps for one environment.",
        "the write is refused";
    StateBytes state_bytes "state-bytes" "bytes" 1 << 20, 64 << 20,
        "Keys and values that one provider keeps for one environment, together.",
        "the write is refused";
    StateValue state_value_bytes "state-value-bytes" "bytes" 64 << 10, 1 << 20,
        "One value that a provider keeps; what is larger belongs into the sandbox.",
        "the write is refused";
    Random random_bytes "random-bytes" "bytes" 64 << 10, 1 << 20,
        "Random bytes asked for in one piece; the host makes them.",
        "the call ends, the instance is dropped";
}

/// Memories and tables of one component, each. Interpreters bring an adapter or two; hundreds are an attack
/// on the pool. Hit: the component is refused when it is loaded or instantiated.
pub const STRUCTURE_MAX: usize = 32;

/// Core instances of one component. They reserve nothing, so there may be more of them than of memories:
/// the tool for Python makes one for each library and several for each interface, 42 for a small provider.
/// Hit: the component is refused when it is loaded or instantiated.
pub const CORE_INSTANCES_MAX: usize = 128;

/// The largest component file. Interpreted languages reach 20 MB. Hit: refused before it is read.
pub const COMPONENT_BYTES_MAX: u64 = 64 << 20;

/// Calls that run at one time in one engine. Each holds a stack and up to [`STRUCTURE_MAX`] slots of the
/// pool. Hit: further calls wait inside their own wall clock.
pub const CONCURRENT_CALLS: usize = 256;

/// A limit of the whole engine; it cannot be changed.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EngineLimit {
    /// Its name in messages.
    pub name: &'static str,
    /// What it is counted in.
    pub unit: &'static str,
    /// The value in force.
    pub value: u64,
    /// What happens when it is hit.
    pub when_hit: &'static str,
}

/// Every limit of the whole engine.
pub const ENGINE_LIMITS: &[EngineLimit] = &[
    EngineLimit {
        name: "component-bytes",
        unit: "bytes",
        value: COMPONENT_BYTES_MAX,
        when_hit: "the component is refused before it is read",
    },
    EngineLimit {
        name: "component-structure",
        unit: "memories, tables each",
        value: STRUCTURE_MAX as u64,
        when_hit: "the component is refused when it is loaded or instantiated",
    },
    EngineLimit {
        name: "component-instances",
        unit: "core instances",
        value: CORE_INSTANCES_MAX as u64,
        when_hit: "the component is refused when it is loaded or instantiated",
    },
    EngineLimit {
        name: "concurrent-calls",
        unit: "calls",
        value: CONCURRENT_CALLS as u64,
        when_hit: "further calls wait inside their own wall clock",
    },
];

impl Limit {
    /// What the table says of this limit.
    pub const fn info(self) -> &'static LimitInfo {
        // The macro writes variants and rows in one order, so a variant is its row's index.
        &LIMITS[self as usize]
    }
}

impl std::fmt::Display for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.info().name)
    }
}

impl Limits {
    /// These limits with one value changed.
    ///
    /// # Errors
    /// When the value is zero or above the limit's ceiling.
    pub fn with(mut self, limit: Limit, value: u64) -> Result<Self, LimitError> {
        let info = limit.info();
        if value == 0 || value > info.ceiling {
            let LimitInfo { name, ceiling, unit, .. } = *info;
            return Err(LimitError::OutOfRange { name, value, ceiling, unit });
        }
        *self.slot(limit) = value;
        Ok(self)
    }

    /// Like [`Limits::with`], by the limit's name.
    ///
    /// # Errors
    /// When there is no such limit, or the value is out of range.
    pub fn with_named(self, name: &str, value: u64) -> Result<Self, LimitError> {
        match LIMITS.iter().find(|info| info.name == name) {
            Some(info) => self.with(info.limit, value),
            None => Err(LimitError::Unknown { name: name.into() }),
        }
    }

    /// A value as the size type of this machine.
    pub(crate) fn size(&self, limit: Limit) -> usize {
        usize::try_from(self.get(limit)).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_is_its_own_row_has_a_reason_and_a_default_within_its_ceiling() {
        for (index, info) in LIMITS.iter().enumerate() {
            assert_eq!(info.limit as usize, index);
            assert!(info.default > 0 && info.default <= info.ceiling, "{}", info.name);
            assert!(!info.reason.is_empty() && !info.when_hit.is_empty(), "{}", info.name);
            assert_eq!(Limits::default().get(info.limit), info.default);
        }
    }

    #[test]
    fn a_value_outside_its_range_is_refused_with_the_range() {
        let ceiling = Limit::Handles.info().ceiling;
        for value in [0, ceiling + 1] {
            let error = Limits::default().with(Limit::Handles, value).unwrap_err();
            assert_eq!(error.to_string(), format!("limit `handles` can be 1 to 65536 handles, not {value}"));
        }
        let set = Limits::default().with_named("handles", ceiling).unwrap();
        assert_eq!(set.get(Limit::Handles), ceiling);
        assert!(matches!(Limits::default().with_named("handle", 1), Err(LimitError::Unknown { .. })));
    }
}
