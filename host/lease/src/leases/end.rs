//! Ending a lease by name: deleting it, or stopping it with its files kept.

use super::release::Released;
use super::{LeaseError, Leases};
use crate::fault::Step;
use crate::store::{Attempts, Learned};
use crate::{Disposition, Filter, Goal, Lease, LeaseId, Policy, Scope, Standing, State, StoreError};

impl Leases {
    /// Deletes the allocation of a lease, whether it is used, kept, or waits for cleanup, with the work it
    /// holds. `why` is a stable word for the reason.
    ///
    /// # Errors
    /// [`LeaseError::Busy`] while another living process cleans it up, [`LeaseError::Unconfirmed`] when the
    /// provider did not prove it; it then waits for [`Leases::reconcile`].
    pub async fn destroy(&self, id: &LeaseId, why: &'static str) -> Result<Released, LeaseError> {
        let (leases, id) = (self.clone(), id.clone());
        self.see_through("destroying a lease", async move { leases.destroy_now(&id, why).await }).await
    }

    /// Deletes every lease that is kept for this workspace, in any state: for a workspace that is deleted.
    /// A failure with one does not stop the rest.
    ///
    /// # Errors
    /// When the store cannot be read. What went wrong with a lease stands beside its name.
    pub async fn destroy_scope(
        &self,
        tenant: &str,
        scope: &Scope,
        why: &'static str,
    ) -> Result<Vec<(LeaseId, Result<Released, LeaseError>)>, LeaseError> {
        let filter = Filter {
            states: vec![State::Active, State::Retained, State::PendingCleanup],
            tenant: Some(tenant.to_owned()),
            workspace: Some(scope.workspace.clone()),
            ..Filter::default()
        };
        let mut all = Vec::new();
        for lease in self.list(filter).await? {
            let of_agent = lease.scope.as_ref().is_some_and(|it| it.agent == scope.agent);
            if lease.policy == Policy::Reuse && of_agent {
                all.push((lease.id.clone(), self.destroy(&lease.id, why).await));
            }
        }
        Ok(all)
    }

    /// Stops the allocation of a lease and keeps its files, whatever its policy says. Nothing is deleted,
    /// however it comes out.
    ///
    /// # Errors
    /// [`LeaseError::NotStopped`] while the provider has not proved it; it is tried again by
    /// [`Leases::reconcile`].
    pub async fn stop(&self, id: &LeaseId, why: &'static str) -> Result<Released, LeaseError> {
        let (leases, id) = (self.clone(), id.clone());
        self.see_through("stopping a lease", async move {
            let _work = leases.inner.working.begin(&id);
            let lease = leases.get(&id).await?;
            leases.stop_now(lease, why).await
        })
        .await
    }

    async fn destroy_now(&self, id: &LeaseId, why: &'static str) -> Result<Released, LeaseError> {
        let _work = self.inner.working.begin(id);
        let lease = self.get(id).await?;
        self.refuse_busy(&lease)?;
        let lease = self.condemn(&lease, why).await?;
        self.finish(lease).await
    }

    pub(super) async fn stop_now(&self, lease: Lease, why: &'static str) -> Result<Released, LeaseError> {
        self.refuse_busy(&lease)?;
        let mut change = self.taking(&lease, State::PendingCleanup, "to be stopped with its files kept");
        change.learned = Learned {
            goal: Some(Goal::Stop),
            why: Some(why),
            attempts: Attempts::Anew,
            escalated: Some(false),
            due_ms: Some(self.now_ms()),
            ..Learned::default()
        };
        let lease = self.inner.store.change(Step::StopIntent, change).await?;
        self.finish(lease).await
    }

    /// Writes down that a lease is to be deleted, whatever was decided before.
    pub(super) async fn condemn(&self, lease: &Lease, why: &'static str) -> Result<Lease, StoreError> {
        let mut change = self.taking(lease, State::PendingCleanup, format!("to be deleted: {why}"));
        change.learned = Learned {
            goal: Some(Goal::Delete),
            why: Some(why),
            attempts: Attempts::Anew,
            escalated: Some(false),
            due_ms: Some(self.now_ms()),
            ..Learned::default()
        };
        self.inner.store.change(Step::BeginDestroy, change).await
    }

    /// Ends, in the background, what was written down to be deleted.
    pub(super) async fn end_condemned(&self, id: &LeaseId) {
        let _work = self.inner.working.begin(id);
        let ended = match self.get(id).await {
            Ok(lease) => self.finish(lease).await.map(|_| ()),
            Err(error) => Err(error.into()),
        };
        if let Err(error) = ended {
            tracing::debug!(lease = %id, %error, "a lease to be deleted is left to reconciling");
        }
    }

    /// Works towards the goal of a lease that is this owner's.
    async fn finish(&self, lease: Lease) -> Result<Released, LeaseError> {
        let (id, stops) = (lease.id.clone(), lease.goal == Some(Goal::Stop));
        let unproved = |why: String| match stops {
            true => LeaseError::NotStopped { id: id.clone(), why },
            false => LeaseError::Unconfirmed { id: id.clone(), why },
        };
        let ended = match self.provider(&lease).await {
            Ok(provider) => self.tear_down(&provider, lease).await?,
            Err(unready) => {
                let mut change = self.mine(&lease, State::PendingCleanup, format!("put off: {unready}"));
                change.learned.error = Some(unready.to_string());
                self.inner.store.change(Step::PutOff, change).await?;
                return Err(unproved(unready.to_string()));
            }
        };
        match (ended.state, ended.disposition) {
            (State::Released | State::Retained, Some(disposition)) => {
                Ok(Released { lease: ended, disposition })
            }
            // Nothing was ever made under its name.
            (State::Failed, _) => Ok(Released { lease: ended, disposition: Disposition::AlreadyGone }),
            _ => Err(unproved(ended.last_error.unwrap_or_default())),
        }
    }

    /// Of a lease that is being cleaned up by another living process one keeps off.
    fn refuse_busy(&self, lease: &Lease) -> Result<(), LeaseError> {
        let busy = |owner: &&crate::Owner| **owner != self.inner.me && owner.standing() == Standing::Alive;
        match lease.owner.as_ref().filter(busy) {
            Some(owner) if lease.state != State::Active => {
                Err(LeaseError::Busy { id: lease.id.clone(), pid: owner.pid })
            }
            _ => Ok(()),
        }
    }
}
