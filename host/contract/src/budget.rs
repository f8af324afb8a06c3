//! How long a call may take.
//!
//! One function, [`budget`], gives every call its time; nobody else adds, caps or defaults one. All times
//! are milliseconds of wall clock. The configuration is what is stored: defaults in a configuration schema
//! are never read, because a field called `timeoutMs` may mean how long a sandbox lives.

use crate::declaration::DriverKind;
use crate::method::{BudgetRule, Method};
use serde::Serialize;
use serde_json::{Map, Value};

/// Time added to a time somebody asked for. The provider has to notice its own end and answer; without the
/// margin the host would cut the answer off and lose a partial result or a cleanup record.
pub const MARGIN_MS: u64 = 30_000;

/// Time of a call nobody gave a time for. Long enough for one round trip to a slow back end; a driver whose
/// calls take longer has to say so in its configuration or declaration.
pub const DEFAULT_MS: u64 = 30_000;

/// Time of a probe. A probe may start and remove a whole sandbox, so the default would fail healthy back
/// ends; a person waits for it, so it has no setting.
pub const PROBE_MS: u64 = 120_000;

/// The most a stop may take, whatever is configured. A stop is repeated by the reconciler; one that hangs
/// longer would hold up every other lease in the page.
pub const STOP_CEILING_MS: u64 = 60_000;

/// Time for taking up a lease again when nothing is configured or declared. All attempts share it, so that a
/// run starts or gives up within a minute.
pub const RESUME_DEFAULT_MS: u64 = 60_000;

/// Time for opening a login terminal. A person waits in front of it.
pub const PTY_OPEN_MS: u64 = 30_000;

/// Time for closing a login terminal. A close that is not confirmed by then ends the provider's instance
/// instead, so waiting longer gains nothing.
pub const PTY_CLOSE_MS: u64 = 10_000;

/// The longest acquisition time a declaration may ask for: one day. A larger figure is a mistake of unit, and
/// an allocation nobody sees for longer would not be found by people.
pub const MAX_DECLARED_ACQUIRE_MS: u64 = 86_400_000;

/// The longest time any call gets: the largest timer of the peer runtime. A larger value would wrap
/// there and fire at once.
pub const CEILING_MS: u64 = 2_147_483_647;

/// What decides the time of one call.
#[derive(Clone, Copy, Debug)]
pub struct BudgetRequest<'a> {
    /// The time the caller asked for, in milliseconds. Zero, negative and non-finite values count as absent.
    pub requested_ms: Option<f64>,
    /// The stored configuration of the environment. Only numbers count; `"5000"` is no time.
    pub config: &'a Map<String, Value>,
    /// The declaration's `defaultAcquireTimeoutMs`. Zero counts as absent, more than
    /// [`MAX_DECLARED_ACQUIRE_MS`] as that much.
    pub declared_acquire_ms: Option<u64>,
    /// The kind of driver that is called.
    pub kind: DriverKind,
}

/// How long a call may take and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Budget {
    /// Wall clock in milliseconds, between 1 and [`CEILING_MS`].
    pub timeout_ms: u64,
    /// One sentence that names the values used.
    pub because: String,
}

/// The time of one call of a method.
///
/// For a resume it is one deadline for all attempts together, not the time of each.
pub fn budget(method: Method, request: &BudgetRequest<'_>) -> Budget {
    let sandbox = request.kind == DriverKind::SandboxProvider;
    match method.info().budget {
        BudgetRule::Fixed(timeout_ms) => {
            Budget { timeout_ms, because: format!("{method} always gets {timeout_ms} ms") }
        }
        BudgetRule::Execute => execute(method, request),
        BudgetRule::Acquire => acquisition(request).map_or_else(unset, Base::with_margin),
        BudgetRule::Lease | BudgetRule::Resume | BudgetRule::Stop if !sandbox => Budget {
            timeout_ms: DEFAULT_MS,
            because: format!(
                "{method} of a plain environment driver always gets the default {DEFAULT_MS} ms"
            ),
        },
        BudgetRule::Lease => longest_configured(request).map_or_else(unset, Base::with_margin),
        BudgetRule::Resume => acquisition(request).map_or_else(
            || Budget {
                timeout_ms: RESUME_DEFAULT_MS,
                because: format!(
                    "no time is configured or declared, so the default {RESUME_DEFAULT_MS} ms of a resume"
                ),
            },
            Base::with_margin,
        ),
        BudgetRule::Stop => stop(request),
    }
}

/// A time somebody set, before the margin.
struct Base {
    ms: u64,
    source: String,
}

impl Base {
    fn with_margin(self) -> Budget {
        let wanted = self.ms.saturating_add(MARGIN_MS);
        let because = format!("{} plus the margin of {MARGIN_MS} ms", self.source);
        if wanted > CEILING_MS {
            return Budget {
                timeout_ms: CEILING_MS,
                because: format!("{because}, capped at {CEILING_MS} ms"),
            };
        }
        Budget { timeout_ms: wanted, because }
    }
}

fn unset() -> Budget {
    Budget {
        timeout_ms: DEFAULT_MS,
        because: format!(
            "no time is requested, configured or declared for this call, so the default {DEFAULT_MS} ms"
        ),
    }
}

fn execute(method: Method, request: &BudgetRequest<'_>) -> Budget {
    // Only these two carry a time of the caller; the other calls of the class never do.
    let asks = matches!(method, Method::Execute | Method::CaptureTemplate);
    let requested = request.requested_ms.filter(|_| asks).and_then(Time::of);
    requested
        .map(|time| Base { ms: time.ms, source: format!("the requested {time}") })
        .or_else(|| configured(request, "timeoutMs"))
        .map_or_else(unset, Base::with_margin)
}

/// The configured time even when it is smaller than the declared one, raised by the bridge's time.
fn acquisition(request: &BudgetRequest<'_>) -> Option<Base> {
    let declared = request.declared_acquire_ms.filter(|ms| *ms > 0).map(|ms| {
        let ms = ms.min(MAX_DECLARED_ACQUIRE_MS);
        Base { ms, source: format!("the declared defaultAcquireTimeoutMs {ms} ms") }
    });
    let base = configured(request, "timeoutMs").or(declared);
    match (base, configured(request, "bridgeRequestTimeoutMs")) {
        (Some(base), Some(bridge)) if bridge.ms > base.ms => {
            Some(Base { ms: bridge.ms, source: format!("{} raised by {}", base.source, bridge.source) })
        }
        (base, bridge) => base.or(bridge),
    }
}

fn longest_configured(request: &BudgetRequest<'_>) -> Option<Base> {
    let times = ["timeoutMs", "bridgeRequestTimeoutMs"];
    times.into_iter().filter_map(|key| configured(request, key)).max_by_key(|base| base.ms)
}

fn stop(request: &BudgetRequest<'_>) -> Budget {
    let Some(base) = longest_configured(request) else {
        return Budget {
            timeout_ms: STOP_CEILING_MS,
            because: format!("no time is configured, so the {STOP_CEILING_MS} ms of a stop"),
        };
    };
    let wanted = base.with_margin();
    if wanted.timeout_ms <= STOP_CEILING_MS {
        return wanted;
    }
    Budget {
        timeout_ms: STOP_CEILING_MS,
        because: format!("{}, capped at the {STOP_CEILING_MS} ms of a stop", wanted.because),
    }
}

fn configured(request: &BudgetRequest<'_>, key: &str) -> Option<Base> {
    let time = Time::of(request.config.get(key)?.as_f64()?)?;
    Some(Base { ms: time.ms, source: format!("the configured {key} {time}") })
}

/// A time somebody gave that counts: finite and above zero.
struct Time {
    given: f64,
    ms: u64,
}

impl Time {
    /// A fraction below one counts with 0 ms: the margin alone remains.
    fn of(given: f64) -> Option<Time> {
        // The cast drops the fraction and stops at the largest number instead of wrapping.
        (given.is_finite() && given > 0.0).then_some(Time { given, ms: given as u64 })
    }
}

impl std::fmt::Display for Time {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Above this a number has more digits than anybody reads.
        if self.given < 1e15 { write!(f, "{} ms", self.ms) } else { write!(f, "{:e} ms", self.given) }
    }
}
