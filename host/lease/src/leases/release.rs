//! Releasing: the provider is asked under the retention decided at acquisition and must prove the end.

use super::{LeaseError, Leases, call};
use crate::fault::Step;
use crate::receipt::Asked;
use crate::store::{Change, Learned, Whose};
use crate::{Context, Disposition, Lease, LeaseId, Provider, ReleaseRequest, State, StoreError};
use std::sync::Arc;
use tokio::sync::oneshot;

/// A lease that has ended, proved by its provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Released {
    /// The lease as it is stored now.
    pub lease: Lease,
    /// What became of its allocation.
    pub disposition: Disposition,
}

impl Leases {
    /// Ends the use of a lease, whoever acquired it. `cancel_active_work` ends commands that still run in it.
    ///
    /// Once begun it goes on when the future is dropped, see [`Leases::idle`].
    ///
    /// # Errors
    /// [`LeaseError::Store`] when the lease is not active, and [`LeaseError::Unconfirmed`] when the provider
    /// failed or its receipt does not fit; the lease then waits for [`Leases::reconcile`].
    pub async fn release(
        &self,
        provider: Arc<dyn Provider>,
        id: &LeaseId,
        cancel_active_work: bool,
    ) -> Result<Released, LeaseError> {
        let (leases, id) = (self.clone(), id.clone());
        let (waiting, released) = oneshot::channel();
        self.inner.tasks.spawn(async move {
            // Whoever no longer waits finds the outcome in the store.
            waiting.send(leases.end_use(&provider, id, cancel_active_work).await).ok();
        });
        let ended = || StoreError::Ended { doing: "releasing a lease" };
        released.await.map_err(|_| ended())?
    }

    async fn end_use(
        &self,
        provider: &Arc<dyn Provider>,
        id: LeaseId,
        cancel_active_work: bool,
    ) -> Result<Released, LeaseError> {
        let _work = self.inner.working.begin(&id);
        let begin = Change {
            id,
            from: State::Active,
            whose: Whose::Anybodys,
            to: State::Releasing,
            owner: Some(self.inner.me.clone()),
            reason: "its use has ended".into(),
            learned: Learned::default(),
        };
        let lease = self.inner.store.change(Step::BeginRelease, begin).await?;
        match self.call_release(provider, &lease, cancel_active_work).await {
            Ok(disposition) => {
                let mut change = self.mine(&lease, State::Released, disposition.word());
                change.learned.disposition = Some(disposition);
                let lease = self.inner.store.change(Step::EndRelease, change).await?;
                Ok(Released { lease, disposition })
            }
            Err(why) => {
                let mut change = self.mine(&lease, State::PendingCleanup, format!("not released: {why}"));
                change.learned.error = Some(why.clone());
                self.inner.store.change(Step::LeaveRelease, change).await?;
                Err(LeaseError::Unconfirmed { id: lease.id, why })
            }
        }
    }

    /// Asks the provider to end the use and checks its receipt.
    pub(super) async fn call_release(
        &self,
        provider: &Arc<dyn Provider>,
        lease: &Lease,
        cancel_active_work: bool,
    ) -> Result<Disposition, String> {
        let Some(allocation) = lease.allocation.clone() else {
            return Err("its allocation was never seen".into());
        };
        let (id, retention) = (allocation.id.clone(), lease.retention);
        let request = ReleaseRequest { lease: allocation, retention, cancel_active_work };
        let budget = self.inner.budgets.release;
        let (asked, context) = (provider.clone(), Context::of(lease, budget));
        let answer = async move { asked.release(context, request).await };
        let receipt =
            call::timed(Step::CallRelease, budget, answer).await?.map_err(|fault| fault.to_string())?;
        Asked::Release(retention).check(&id, &receipt)
    }
}
