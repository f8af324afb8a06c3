//! A lease in use: renewed while a call is in flight, ended with its lifetime, and marked by what it holds.

use super::{LeaseError, Leases, call, times};
use crate::fault::Step;
use crate::{Context, Lease, LeaseId, ProviderLease, ResumeRequest, State, StoreError};
use leasehold_contract::Method;
use std::time::Duration;

/// A lease is renewed when less than this part of its promised time is left. A failed renewal still has
/// time to be tried again.
const RENEW_WITHIN: u32 = 3;

/// The shortest pause between two renewals, whatever the provider promises.
const RENEW_AGAIN: Duration = Duration::from_secs(1);

impl Leases {
    /// Does something in a lease, and meanwhile keeps it from expiring, as far as its provider lets it and
    /// its lifetime reaches. When the lifetime is over, or another host has taken the lease, the call is
    /// dropped.
    ///
    /// # Errors
    /// [`LeaseError::LifetimeOver`], and [`LeaseError::Store`] when the lease is no longer this host's.
    pub async fn in_use<T>(&self, lease: &Lease, call: impl Future<Output = T>) -> Result<T, LeaseError> {
        let mut lease = self.get(&lease.id).await?;
        if lease.state != State::Active {
            let (id, expected) = (lease.id.clone(), State::Active);
            return Err(StoreError::Changed { id, expected, found: lease.state }.into());
        }
        let now = self.now_ms();
        let left = lease.ends_ms.map_or(lease.lifetime_ms, |end| end.saturating_sub(now));
        let over = self.clock().sleep(Duration::from_millis(left));
        let granted = promised(&lease, now);
        tokio::pin!(call, over);
        loop {
            let renewal = self.until_renewal(&lease, granted);
            tokio::select! {
                biased;
                done = &mut call => return Ok(done),
                () = &mut over => {
                    let lifetime = Duration::from_millis(lease.lifetime_ms);
                    return Err(LeaseError::LifetimeOver { id: lease.id, lifetime });
                }
                () = renewal => {}
            }
            // The call goes on while the provider is asked.
            tokio::select! {
                biased;
                done = &mut call => return Ok(done),
                renewed = self.renew(&lease) => match renewed {
                    Ok(Some(renewed)) => lease = renewed,
                    Ok(None) => {}
                    Err(error @ StoreError::Changed { .. }) => return Err(error.into()),
                    Err(error) => tracing::warn!(lease = %lease.id, %error, "a renewal was not written down"),
                },
            }
        }
    }

    /// Waits until the lease has to be renewed; for good when it never has to.
    async fn until_renewal(&self, lease: &Lease, granted: Option<Duration>) {
        match (promised(lease, self.now_ms()), granted) {
            (Some(left), Some(granted)) => {
                let pause = left.saturating_sub(granted / RENEW_WITHIN).max(RENEW_AGAIN);
                self.clock().sleep(pause).await;
            }
            _ => std::future::pending().await,
        }
    }

    /// Asks the provider to keep the allocation for longer. None when it does not, now.
    async fn renew(&self, lease: &Lease) -> Result<Option<Lease>, StoreError> {
        let Some(allocation) = lease.allocation.clone() else { return Ok(None) };
        let Ok(provider) = self.provider(lease).await else { return Ok(None) };
        if !provider.offers().resume {
            return Ok(None);
        }
        let time = times::of_call(Method::ResumeLease, &lease.config, None);
        let context = Context::of(lease, time);
        let requested_cwd = lease.wishes.requested_cwd.clone();
        let request = ResumeRequest { lease: allocation.clone(), requested_cwd };
        let answer = async move { provider.resume(context, request).await };
        match call::timed(self.clock(), Step::CallResume, time, answer).await {
            Ok(reply) => match reply.answer {
                Ok(renewed) if is_renewal(&allocation, &renewed) => {
                    self.inner.store.renew(lease, &renewed, reply.bill).await.map(Some)
                }
                Ok(_) => Ok(None),
                Err(fault) => {
                    tracing::debug!(lease = %lease.id, %fault, "a lease in use was not renewed");
                    Ok(None)
                }
            },
            Err(why) => {
                tracing::debug!(lease = %lease.id, why, "a lease in use was not renewed");
                Ok(None)
            }
        }
    }

    /// Says whether a lease holds work that was not brought back. While it does, nothing but its policy or a
    /// person ends it.
    ///
    /// # Errors
    /// [`StoreError`] when the lease is no longer this host's, or cannot be written.
    pub async fn set_unexported(&self, id: &LeaseId, unexported: bool) -> Result<Lease, StoreError> {
        let lease = self.get(id).await?;
        if lease.unexported == unexported {
            return Ok(lease);
        }
        self.inner.store.set_unexported(&lease, unexported).await
    }

    /// Records something that was done in a lease, with what it used as a JSON object.
    ///
    /// # Errors
    /// [`StoreError::Missing`] when there is no such lease.
    pub async fn record(&self, id: &LeaseId, what: &str, bill: Option<String>) -> Result<(), StoreError> {
        self.inner.store.record(id, what, bill).await
    }
}

/// How long the back end still keeps the allocation; none when it promised no end.
fn promised(lease: &Lease, now: u64) -> Option<Duration> {
    let end = lease.allocation.as_ref()?.expires_at_ms?;
    Some(Duration::from_millis(end.saturating_sub(now)))
}

/// The very same allocation, kept for longer.
fn is_renewal(was: &ProviderLease, renewed: &ProviderLease) -> bool {
    renewed.id == was.id && renewed.check().is_ok() && renewed.expires_at_ms > was.expires_at_ms
}
