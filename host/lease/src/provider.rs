//! What this crate needs of a provider. Whoever embeds it implements both traits.

use crate::{
    AcquireFailure, AcquireRequest, Context, DestroyFailure, DestroyTarget, Fault, Finding, Pins,
    ProviderLease, Receipt, ReleaseRequest, ResumeRequest, StopFailure,
};
use std::pin::Pin;
use std::sync::Arc;

/// What a provider answered, and what the call used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply<T> {
    /// The answer.
    pub answer: T,
    /// What the call used, as a JSON object; kept with the event that records the answer.
    pub bill: Option<String>,
}

impl<T> From<T> for Reply<T> {
    fn from(answer: T) -> Self {
        Reply { answer, bill: None }
    }
}

/// What a provider will answer.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Reply<T>> + Send + 'a>>;

/// The optional methods a provider really has, and whether it reaches anything beyond this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offers {
    /// It can look an allocation up by its creation name.
    pub find: bool,
    /// It can take up an allocation again.
    pub resume: bool,
    /// It can end the use of an allocation.
    pub release: bool,
    /// It can delete an allocation.
    pub destroy: bool,
    /// It can stop an allocation and keep its files.
    pub stop: bool,
    /// It reaches a network. Where it does, what it asked for may still appear after its call has ended, so
    /// finding nothing proves nothing until the settle window has passed.
    pub network: bool,
}

/// A provider of sandboxes.
///
/// Dropping an answer ends the call: when its time is used up the host drops it and no longer listens. A
/// method that is not among the [`Offers`] is never called.
pub trait Provider: Send + Sync + 'static {
    /// The methods it has.
    fn offers(&self) -> Offers;

    /// Creates the allocation, or adopts the one an earlier call with this creation name made.
    fn acquire(
        &self,
        context: Context,
        request: AcquireRequest,
    ) -> Answer<'_, Result<ProviderLease, AcquireFailure>>;

    /// Looks once; creates, starts and deletes nothing.
    fn find(&self, context: Context, creation_name: String) -> Answer<'_, Result<Finding, Fault>>;

    /// Starts a kept allocation if need be and proves that it is the same one. Deletes nothing.
    fn resume(&self, context: Context, request: ResumeRequest) -> Answer<'_, Result<ProviderLease, Fault>>;

    /// Ends the use of an allocation. Idempotent.
    fn release(&self, context: Context, request: ReleaseRequest) -> Answer<'_, Result<Receipt, Fault>>;

    /// Deletes an allocation. Idempotent.
    fn destroy(&self, context: Context, target: DestroyTarget)
    -> Answer<'_, Result<Receipt, DestroyFailure>>;

    /// Stops exactly this allocation and keeps its files. Deletion is never a fallback.
    fn stop(&self, context: Context, lease: ProviderLease) -> Answer<'_, Result<Receipt, StopFailure>>;
}

/// Where the provider of a lease is looked for.
pub type Resolving<'a> = Pin<Box<dyn Future<Output = Result<Arc<dyn Provider>, Unready>> + Send + 'a>>;

/// Finds the provider of a lease: the same one, at the digest the lease pins.
pub trait Providers: Send + Sync + 'static {
    /// The provider, or why it cannot be called now. A lease whose provider is not ready is put off and
    /// loses no attempt.
    fn resolve<'a>(&'a self, pins: &'a Pins) -> Resolving<'a>;
}

/// Why the provider of a lease cannot be called now, for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unready(pub String);
