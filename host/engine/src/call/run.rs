//! Runs one hook in an instance of its own.

use crate::call::limiter::Hit;
use crate::call::outcome::{Bill, CallError, Finished, trap_code};
use crate::call::returned::Check;
use crate::call::scope::{Authority, Scope};
use crate::call::state::CallState;
use crate::hook::Hook;
use crate::limits::{Limit, Limits};
use crate::provider::Provider;
use futures_util::FutureExt as _;
use leasehold_bindings::types::Context;
use leasehold_contract::Method;
use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use wasmtime::component::ResourceTableError;
use wasmtime::{Store, Trap, UpdateDeadline};
use wasmtime_wasi::I32Exit;

/// How a call is to be run.
#[derive(Clone, Debug, Default)]
pub struct CallOptions {
    /// The limits in force.
    pub limits: Limits,
    /// Ends the call when it is cancelled, wherever the call is.
    pub cancel: CancellationToken,
    /// The lease the call is about, for attributing what the guest does.
    pub lease: Option<String>,
    /// What the call may reach beyond the engine; without it, nothing that needs more than a permission.
    pub authority: Option<Arc<dyn Authority>>,
}

/// The guest was told to stop because its caller cancelled the call.
#[derive(Debug, thiserror::Error)]
#[error("the call was cancelled")]
struct Cancelled;

pub(crate) async fn run<H: Hook>(
    provider: &Provider,
    hook: H,
    context: Context,
    options: &CallOptions,
) -> Finished<H::Answer> {
    let span = tracing::info_span!(
        target: "leasehold::hook",
        "hook",
        provider = %provider.digest(),
        method = H::METHOD.name(),
        driver = context.driver_key,
        tenant = context.tenant,
        environment = context.environment_id,
        run = context.run_id,
        lease = options.lease,
        invocation = context.invocation_id,
        verdict = tracing::field::Empty,
        bill = tracing::field::Empty,
    );
    within_limits(provider, hook, context, options).instrument(span).await
}

async fn within_limits<H: Hook>(
    provider: &Provider,
    hook: H,
    mut context: Context,
    options: &CallOptions,
) -> Finished<H::Answer> {
    let CallOptions { limits, cancel, lease, authority } = options;
    let started = Instant::now();
    let deadline = started + Duration::from_millis(limits.get(Limit::Wall));
    let unpaid = |error| Finished { answer: Err(error), bill: Bill::default() };

    if let Err(error) = may_start(provider, H::METHOD, &context, limits) {
        return unpaid(error);
    }
    // The place is held until the instance is dropped.
    let place = tokio::select! {
        biased;
        () = cancel.cancelled() => return unpaid(CallError::Cancelled),
        () = tokio::time::sleep_until(deadline.into()) => return unpaid(wall(limits)),
        place = provider.engine().places(provider.places()) => place,
    };
    let _awake = provider.engine().awake();
    let (lease, authority) = (lease.clone(), authority.clone());
    let scope = Scope::new(provider.digest(), H::METHOD, &context, limits, deadline, lease, authority);
    let mut store = match store(provider, Arc::new(scope), cancel.clone()) {
        Ok(store) => store,
        Err(error) => return unpaid(CallError::NotStarted { reason: format!("{error:#}") }),
    };
    let left = deadline.saturating_duration_since(Instant::now());
    context.remaining_ms = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);

    let mut instantiated = false;
    let call = async {
        let instance = provider.pre().instantiate_async(&mut store).await?;
        instantiated = true;
        hook.call(provider.guests(), &mut store, &instance, &context).await
    };
    // A timer around the call, because the epoch cannot reach a guest that waits inside a host call.
    let ended = tokio::select! {
        biased;
        () = cancel.cancelled() => Err(CallError::Cancelled),
        ended = AssertUnwindSafe(call).catch_unwind() => match ended {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(classify(&error, store.data(), H::METHOD, limits, instantiated)),
            Err(panic) => Err(CallError::HostPanic { reason: panic_text(panic.as_ref()) }),
        },
        () = tokio::time::sleep_until(deadline.into()) => Err(wall(limits)),
    };
    let authority = options.authority.as_deref();
    let answer =
        ended.and_then(|mut answer| Check::run(H::METHOD, limits, authority, &mut answer).map(|()| answer));
    let answer = answer.map_err(|error| error.scrubbed(authority));
    let bill = bill(&store, limits, started.elapsed());
    drop(store);
    drop(place);
    let verdict = answer.as_ref().err().map_or("answered", CallError::code);
    let span = tracing::Span::current();
    span.record("verdict", verdict);
    span.record("bill", tracing::field::debug(&bill));
    tracing::debug!("call ended");
    Finished { answer, bill }
}

fn may_start(
    provider: &Provider,
    method: Method,
    context: &Context,
    limits: &Limits,
) -> Result<(), CallError> {
    let verdict = provider.inspection().verification().verdict(method);
    if !verdict.is_verified() {
        return Err(CallError::NotVerified { method, verdict: verdict.clone() });
    }
    let (limit, at) = (Limit::Config, context.config.len() as u64);
    let allowed = limits.get(limit);
    if at > allowed {
        return Err(CallError::Limit { limit, field: Some("context.config"), allowed, at: Some(at) });
    }
    Ok(())
}

fn store(
    provider: &Provider,
    scope: Arc<Scope>,
    cancel: CancellationToken,
) -> wasmtime::Result<Store<CallState>> {
    let facilities = provider.engine().facilities().clone();
    let (limits, deadline) = (scope.limits.clone(), scope.deadline);
    let state = CallState::new(scope, facilities);
    let mut store = Store::new(provider.engine().wasmtime(), state);
    store.limiter(|state| &mut state.limiter);
    store.set_fuel(limits.get(Limit::Fuel))?;
    store.set_hostcall_fuel(limits.size(Limit::Returned));
    store.set_max_component_handles(limits.size(Limit::Handles));
    let late = Hit { limit: Limit::Wall, allowed: limits.get(Limit::Wall), at: limits.get(Limit::Wall) };
    store.epoch_deadline_callback(move |_| {
        if cancel.is_cancelled() {
            Err(Cancelled.into())
        } else if Instant::now() >= deadline {
            Err(late.into())
        } else {
            // Other tasks of this thread get their turn, the timers among them.
            Ok(UpdateDeadline::Yield(1))
        }
    });
    store.set_epoch_deadline(1);
    Ok(store)
}

fn bill(store: &Store<CallState>, limits: &Limits, wall: Duration) -> Bill {
    let state = store.data();
    let meter = &state.scope().meter;
    Bill {
        fuel: limits.get(Limit::Fuel) - store.get_fuel().unwrap_or(0),
        peak_memory_bytes: state.limiter.peak as u64,
        wall_us: u64::try_from(wall.as_micros()).unwrap_or(u64::MAX),
        bytes_out: meter.bytes_out.load(Ordering::Relaxed),
        bytes_in: meter.bytes_in.load(Ordering::Relaxed),
        requests: meter.requests.load(Ordering::Relaxed),
        denials: meter.denials.load(Ordering::Relaxed),
        host_calls: state.host_calls,
        log_lines: state.log.lines,
        refused_growth: state.limiter.refusals,
    }
}

fn wall(limits: &Limits) -> CallError {
    hit(Limit::Wall, limits, None)
}

fn hit(limit: Limit, limits: &Limits, at: Option<u64>) -> CallError {
    CallError::Limit { limit, field: None, allowed: limits.get(limit), at }
}

/// Faults that the engine raises as bare text, and the limit each one means. There is no type to ask for
/// them; a test provokes each, so that an engine that words them differently is noticed.
const ENGINE_TEXTS: &[(&str, Limit)] = &[
    ("fuel allocated for hostcalls has been exhausted", Limit::Returned),
    ("store handle limit exceeded", Limit::Handles),
    ("requested len ", Limit::Random),
    ("total size of fields exceeds limit", Limit::HttpHeaders),
    ("too many fields in the field map", Limit::HttpHeaders),
];

/// Turns what the engine raised into the outcome it means.
fn classify(
    error: &wasmtime::Error,
    state: &CallState,
    method: Method,
    limits: &Limits,
    instantiated: bool,
) -> CallError {
    let limited = |hit: &Hit| CallError::Limit {
        limit: hit.limit,
        field: None,
        allowed: hit.allowed,
        at: Some(hit.at),
    };
    if let Some(hit) = error.downcast_ref::<Hit>() {
        return limited(hit);
    }
    if error.is::<Cancelled>() {
        return CallError::Cancelled;
    }
    if let Some(ResourceTableError::Full) = error.downcast_ref() {
        return hit(Limit::Handles, limits, None);
    }
    let trap = error.downcast_ref::<Trap>().copied();
    match trap {
        Some(Trap::OutOfFuel) => return hit(Limit::Fuel, limits, Some(limits.get(Limit::Fuel))),
        Some(Trap::Interrupt) => return wall(limits),
        // A guest that cannot get memory aborts, and one that cannot get it at its start never runs: the
        // refusal is the reason, not the abort.
        Some(Trap::UnreachableCodeReached) | None => {
            if let Some(refused) = &state.limiter.refused
                && (trap.is_some() || !instantiated)
            {
                return limited(refused);
            }
        }
        Some(_) => {}
    }
    if let Some(trap) = trap {
        return CallError::Trap { code: trap_code(trap), message: trap.to_string(), said: state.said.text() };
    }
    if let Some(I32Exit(code)) = error.downcast_ref() {
        let message = format!("it left its process with code {code}");
        return CallError::Trap { code: "exit", message, said: state.said.text() };
    }
    let reason = format!("{error:#}");
    if let Some((_, limit)) = ENGINE_TEXTS.iter().find(|(text, _)| reason.contains(text)) {
        return hit(*limit, limits, None);
    }
    match instantiated {
        true => CallError::Misbehaved { method, reason },
        false => CallError::NotStarted { reason },
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".into())
}
