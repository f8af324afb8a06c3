//! Who a call is for, what it may reach, and what it has used so far.

use crate::limits::{Limit, Limits};
use crate::provider::Digest;
use bytes::Bytes;
use leasehold_bindings::types::Context;
use leasehold_contract::Method;
use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What a call brings along for the facilities it uses, and what keeps secrets in.
///
/// The engine asks it about everything that leaves a guest towards people or the store; what else is in it
/// is between whoever made the call and the facilities, which find it in [`Scope::authority`].
pub trait Authority: Any + Debug + Send + Sync {
    /// Takes secrets out of a text that leaves the guest.
    fn scrub(&self, text: &mut String);

    /// Takes secrets out of a JSON text that leaves the guest; it stays JSON.
    fn scrub_json(&self, text: &mut String);

    /// Takes secrets out of a configuration that the guest returns, and puts references to them in their
    /// places, so that it can be stored and used again.
    fn restore(&self, config: &mut String);

    /// Takes secrets out of a stream; none when there are no secrets to look for.
    fn filter(&self) -> Option<Box<dyn Filter>>;
}

/// Takes something out of a stream that comes in pieces.
pub trait Filter: Send {
    /// What may go on of this piece and of what was held back before.
    fn pass(&mut self, piece: Bytes) -> Bytes;

    /// What was held back to the end.
    fn end(&mut self) -> Bytes;
}

/// Who a call is for, what it may reach, and what it has used so far.
#[derive(Debug)]
pub struct Scope {
    /// The component.
    pub provider: Digest,
    /// The method.
    pub method: Method,
    /// Key of the driver declaration.
    pub driver: String,
    /// The tenant on whose behalf the call is made.
    pub tenant: String,
    /// The environment's id.
    pub environment: String,
    /// The run, if the call belongs to one.
    pub run: Option<String>,
    /// The lease, if the call is about one.
    pub lease: Option<String>,
    /// The call's own id.
    pub invocation: String,
    /// The limits in force.
    pub limits: Limits,
    /// When the call ends at the latest.
    pub deadline: Instant,
    /// What the caller brought along.
    pub authority: Option<Arc<dyn Authority>>,
    /// What the call has used so far.
    pub meter: Meter,
}

/// What a call has used so far, beyond what the engine itself counts.
#[derive(Debug, Default)]
pub struct Meter {
    /// Bytes the guest read from the streams it was given.
    pub bytes_in: Arc<AtomicU64>,
    /// Bytes the guest wrote to the streams it was given.
    pub bytes_out: Arc<AtomicU64>,
    /// Requests sent and connections opened.
    pub requests: AtomicU64,
    /// Requests and connections refused.
    pub denials: AtomicU64,
}

impl Scope {
    pub(crate) fn new(
        provider: Digest,
        method: Method,
        context: &Context,
        limits: &Limits,
        deadline: Instant,
        lease: Option<String>,
        authority: Option<Arc<dyn Authority>>,
    ) -> Scope {
        Scope {
            provider,
            method,
            driver: context.driver_key.clone(),
            tenant: context.tenant.clone(),
            environment: context.environment_id.clone(),
            run: context.run_id.clone(),
            lease,
            invocation: context.invocation_id.clone(),
            limits: limits.clone(),
            deadline,
            authority,
            meter: Meter::default(),
        }
    }

    /// What the caller brought along, when it is of this type.
    pub fn authority<A: Authority>(&self) -> Option<Arc<A>> {
        let any: Arc<dyn Any + Send + Sync> = self.authority.clone()?;
        any.downcast().ok()
    }

    /// Time that is left.
    pub fn remaining(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// A time from the limits, or the one asked for, within what is left.
    pub fn within(&self, asked: Option<Duration>, limit: Limit) -> Duration {
        asked.unwrap_or(Duration::from_millis(self.limits.get(limit))).min(self.remaining())
    }
}

impl Meter {
    /// One more request or connection.
    pub fn request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// One more refusal; how many there are now.
    pub fn denial(&self) -> u64 {
        self.denials.fetch_add(1, Ordering::Relaxed) + 1
    }
}
