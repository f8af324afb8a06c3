//! How long things take: calls by the contract's budgets, pauses and windows by what back ends need.

use leasehold_contract::Method;
use leasehold_contract::budget::{BudgetRequest, budget};
use leasehold_contract::declaration::DriverKind;
use serde_json::{Map, Value};
use std::time::Duration;

/// How much longer an acquisition nobody waits for is listened to. Its answer holds the id that makes the
/// undoing certain; a back end that has not answered by then is asked by name instead.
const LATE_ANSWER: Duration = Duration::from_secs(60);

/// How long after a creation's own time it may still come to light at the back end. Until then finding
/// nothing under its name proves nothing; what appears later was delayed for longer than any back end does.
const SETTLE: Duration = Duration::from_secs(600);

/// Pauses before an acquisition is tried again whose provider was not to be had. After the last one the
/// caller is told.
const BOOTSTRAP: [Duration; 2] = [Duration::from_secs(30), Duration::from_secs(60)];

/// The first pause before a cleanup that failed is tried again; it doubles with every attempt.
const BACKOFF: Duration = Duration::from_secs(30);

/// The slowest interval: what only a person can help is still looked at this often.
const SLOWEST: Duration = Duration::from_secs(3600);

/// How long a lease whose provider is not ready is put off. A provider takes seconds to load; one that is
/// not installed is asked about once a minute.
const DEFERRAL: Duration = Duration::from_secs(60);

/// How often a host that shares a server says that it lives.
const BEAT: Duration = Duration::from_secs(10);

/// How long things take.
#[derive(Clone, Debug)]
pub struct Times {
    /// How much longer an acquisition nobody waits for is listened to.
    pub late_answer: Duration,
    /// How long after a creation's own time it may still come to light.
    pub settle: Duration,
    /// Pauses before an acquisition is tried again whose provider was not to be had; none means never.
    pub bootstrap: Vec<Duration>,
    /// The first pause before a cleanup that failed is tried again.
    pub backoff: Duration,
    /// The longest such pause, and the one of what only a person can help.
    pub slowest: Duration,
    /// How long a lease whose provider is not ready is put off.
    pub deferral: Duration,
    /// How often a host that shares a server says that it lives.
    pub beat: Duration,
    /// After which silence another host takes its leases.
    pub stale: Duration,
}

impl Default for Times {
    fn default() -> Times {
        Times {
            late_answer: LATE_ANSWER,
            settle: SETTLE,
            bootstrap: BOOTSTRAP.to_vec(),
            backoff: BACKOFF,
            slowest: SLOWEST,
            deferral: DEFERRAL,
            beat: BEAT,
            stale: crate::store::STALE,
        }
    }
}

impl Times {
    /// The pause after this many attempts.
    pub(super) fn pause(&self, attempts: u32) -> Duration {
        let doubled = 2u32.checked_pow(attempts.saturating_sub(1)).unwrap_or(u32::MAX);
        self.backoff.saturating_mul(doubled).min(self.slowest)
    }
}

/// The time of one call under this configuration, by the contract.
pub(super) fn of_call(method: Method, config: &str, declared_acquire_ms: Option<u64>) -> Duration {
    let config: Map<String, Value> = serde_json::from_str(config).unwrap_or_default();
    let kind = DriverKind::SandboxProvider;
    let request = BudgetRequest { requested_ms: None, config: &config, declared_acquire_ms, kind };
    Duration::from_millis(budget(method, &request).timeout_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_slowest_interval() {
        let times = Times::default();
        let pauses = [1, 2, 3, 8, 9, 40].map(|attempts| times.pause(attempts).as_secs());
        assert_eq!(pauses, [30, 60, 120, 3600, 3600, 3600]);
    }

    #[test]
    fn the_time_of_an_acquisition_follows_the_contract() {
        let of = |config, declared| of_call(Method::AcquireLease, config, declared).as_millis();
        assert_eq!(of("{}", None), 30_000);
        assert_eq!(of("{}", Some(300_000)), 330_000);
        assert_eq!(of("{\"timeoutMs\":1234}", Some(300_000)), 31_234);
        assert_eq!(of("{\"bridgeRequestTimeoutMs\":600000}", Some(300_000)), 630_000);
    }
}
