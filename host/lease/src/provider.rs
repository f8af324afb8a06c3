//! What this crate needs of a provider. Whoever embeds it implements both traits.

use crate::{
    AcquireFailure, AcquireRequest, Context, DestroyFailure, DestroyTarget, Fault, Finding, Lease,
    ProviderLease, Receipt, ReleaseRequest,
};
use std::pin::Pin;
use std::sync::Arc;

/// What a provider will answer.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A provider of sandboxes.
///
/// Dropping an answer ends the call: when its time is used up the host drops it and no longer listens.
/// A method the provider does not offer answers with [`Fault::Failed`].
pub trait Provider: Send + Sync + 'static {
    /// Creates the allocation, or adopts the one an earlier call with this creation name made.
    fn acquire(
        &self,
        context: Context,
        request: AcquireRequest,
    ) -> Answer<'_, Result<ProviderLease, AcquireFailure>>;

    /// Looks once; creates, starts and deletes nothing.
    fn find(&self, context: Context, creation_name: String) -> Answer<'_, Result<Finding, Fault>>;

    /// Ends the use of an allocation. Idempotent.
    fn release(&self, context: Context, request: ReleaseRequest) -> Answer<'_, Result<Receipt, Fault>>;

    /// Deletes an allocation. Idempotent.
    fn destroy(&self, context: Context, target: DestroyTarget)
    -> Answer<'_, Result<Receipt, DestroyFailure>>;
}

/// Finds the provider of a stored lease again: the same provider, at the digest the lease pins.
pub trait Providers: Send + Sync + 'static {
    /// The provider of this lease, or why it cannot be called now. A lease whose provider is not ready is
    /// put off and loses no attempt.
    fn resolve<'a>(&'a self, lease: &'a Lease) -> Answer<'a, Result<Arc<dyn Provider>, Unready>>;
}

/// Why the provider of a lease cannot be called now, for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unready(pub String);
