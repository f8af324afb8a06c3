//! How a call ended, and what it cost.

use crate::call::scope::Authority;
use crate::limits::Limit;
use leasehold_contract::{Method, Verdict};
use serde::Serialize;
use std::time::Duration;
use wasmtime::Trap;

/// A call that ended: its answer, or why there is none, and what it cost either way.
#[derive(Debug)]
pub struct Finished<T> {
    /// The guest's answer. An error the guest itself returned is an answer.
    pub answer: Result<T, CallError>,
    /// What the call cost.
    pub bill: Bill,
}

/// What a call cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Bill {
    /// Fuel used: about one unit an instruction. Counted up to the guest's last call or return: what a loop
    /// burned that the clock or a cancellation ended is not in it.
    pub fuel: u64,
    /// Highest sum of memories and tables, in bytes.
    pub peak_memory_bytes: u64,
    /// Time from the start of the instance to the answer, in microseconds.
    pub wall_us: u64,
    /// Bytes of streams the guest wrote to.
    pub bytes_out: u64,
    /// Bytes of streams the guest read from.
    pub bytes_in: u64,
    /// Requests sent and connections opened.
    pub requests: u64,
    /// Requests and connections that were refused.
    pub denials: u64,
    /// Calls of the guest into the host.
    pub host_calls: u64,
    /// Log lines written, the dropped ones included.
    pub log_lines: u64,
    /// Requests for more memory or table that were refused.
    pub refused_growth: u64,
}

impl Bill {
    /// Time from the start of the instance to the answer.
    pub fn wall(&self) -> Duration {
        Duration::from_micros(self.wall_us)
    }
}

/// Why a call gave no answer. After any of these the instance is gone; nothing of it is used again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The method may not be called on this component.
    #[error("{method} cannot be called: {verdict}; `leasehold inspect` shows what the component exports")]
    NotVerified {
        /// The method.
        method: Method,
        /// The verdict on it.
        verdict: Verdict,
    },
    /// A limit was hit.
    #[error("limit `{limit}` hit{}: {} at most {allowed} {}", in_field(.field), reached(.at), limit.info().unit)]
    Limit {
        /// The limit.
        limit: Limit,
        /// The field of the answer it was hit in, for limits on fields.
        field: Option<&'static str>,
        /// The value in force.
        allowed: u64,
        /// The value that was reached or asked for, where it is known.
        at: Option<u64>,
    },
    /// The guest trapped.
    #[error("the guest trapped: {message}{}", quoted(.said))]
    Trap {
        /// A stable code: `unreachable`, `stack-overflow`, `memory-out-of-bounds`, …
        code: &'static str,
        /// What the engine says of it.
        message: String,
        /// The tail of what the guest wrote to its own standard error, if it did.
        said: String,
    },
    /// The guest broke a rule of the component model or of a host function: it passed what is no value of
    /// the type, wrote more than a stream had allowed, used a handle it does not have.
    #[error("the guest broke the rules in {method}: {reason}")]
    Misbehaved {
        /// The method.
        method: Method,
        /// What the engine says.
        reason: String,
    },
    /// A field of the answer is not what the contract says it is.
    #[error("the answer of {method} cannot be used: {field}: {reason}")]
    Malformed {
        /// The method.
        method: Method,
        /// The field at fault.
        field: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The caller cancelled the call.
    #[error("the call was cancelled")]
    Cancelled,
    /// The component could not be instantiated.
    #[error("the component could not be started: {reason}")]
    NotStarted {
        /// What the engine says.
        reason: String,
    },
    /// The host's own code panicked during the call. A fault of the host; please report it.
    #[error("the host failed during the call: {reason}; this is a fault of the host, please report it")]
    HostPanic {
        /// What the panic said.
        reason: String,
    },
}

impl CallError {
    /// The same without secrets in what the guest or the engine said.
    pub(crate) fn scrubbed(mut self, authority: Option<&dyn Authority>) -> CallError {
        let Some(authority) = authority else { return self };
        match &mut self {
            CallError::Trap { message, said, .. } => {
                authority.scrub(message);
                authority.scrub(said);
            }
            CallError::Misbehaved { reason, .. }
            | CallError::Malformed { reason, .. }
            | CallError::NotStarted { reason }
            | CallError::HostPanic { reason } => authority.scrub(reason),
            CallError::NotVerified { .. } | CallError::Limit { .. } | CallError::Cancelled => {}
        }
        self
    }

    /// A stable code for scripts and metrics.
    pub fn code(&self) -> &'static str {
        match self {
            CallError::NotVerified { .. } => "not-verified",
            CallError::Limit { limit, .. } => limit.info().name,
            CallError::Trap { code, .. } => code,
            CallError::Misbehaved { .. } => "misbehaved",
            CallError::Malformed { .. } => "malformed",
            CallError::Cancelled => "cancelled",
            CallError::NotStarted { .. } => "not-started",
            CallError::HostPanic { .. } => "host-panic",
        }
    }
}

/// The stable code of a trap.
pub(super) fn trap_code(trap: Trap) -> &'static str {
    match trap {
        Trap::StackOverflow => "stack-overflow",
        Trap::MemoryOutOfBounds | Trap::HeapMisaligned => "memory-out-of-bounds",
        Trap::TableOutOfBounds => "table-out-of-bounds",
        Trap::IndirectCallToNull | Trap::BadSignature => "bad-indirect-call",
        Trap::IntegerOverflow | Trap::IntegerDivisionByZero | Trap::BadConversionToInteger => {
            "bad-arithmetic"
        }
        Trap::UnreachableCodeReached => "unreachable",
        _ => "trap",
    }
}

fn in_field(field: &Option<&'static str>) -> String {
    field.map(|field| format!(" in `{field}`")).unwrap_or_default()
}

fn reached(at: &Option<u64>) -> String {
    at.map_or_else(|| "more than allowed,".into(), |at| format!("{at} of"))
}

fn quoted(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!("; it said: {said}") }
}
