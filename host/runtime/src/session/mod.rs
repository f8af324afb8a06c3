//! One lease in use: files in, commands, files out, and the end.

mod capabilities;
mod execute;
mod transfer;

pub use execute::{Command, Streams};
pub use transfer::{Synced, Transfer};

use crate::error::Error;
use crate::installed::{Installed, bill_json, convert};
use crate::runtime::Leasehold;
use leasehold_contract::Method;
use leasehold_contract::budget::{BudgetRequest, budget};
use leasehold_contract::capability::{Effective, IdentityFailure};
use leasehold_contract::declaration::{DriverDeclaration, DriverKind};
use leasehold_engine::bindings::exports::resume_lease::ResumeRequest;
use leasehold_engine::bindings::types::{Context as CallContext, Lease as WitLease};
use leasehold_engine::hook::ResumeLease;
use leasehold_engine::{Bill, Finished, Hook};
use leasehold_lease::{Lease, LeaseId, Leases, Released, Releasing};
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A lease in use. Dropping it does not end it: [`Session::release`] does, and what a host that died has
/// left is ended by [`crate::Leasehold::reconcile`].
#[derive(Debug)]
pub struct Session {
    provider: Arc<Installed>,
    leases: Leases,
    lease: Lease,
    /// The configuration, as budgets read it.
    config: Map<String, Value>,
    capabilities: Effective,
    /// Where the runtime keeps what it knows.
    state: PathBuf,
    /// Whether the provider's own transfer may be used.
    native_transfer: bool,
}

impl Session {
    /// The use of a lease, by the component it pins and the declaration of the provider that made it.
    pub(crate) async fn of(runtime: &Leasehold, lease: Lease) -> Result<Session, Error> {
        let (registry, pins) = (&runtime.0.registry, &lease.pins);
        let provider = registry.pinned(&pins.plugin, &pins.digest).await?;
        let declaration = registry.declaration(&pins.plugin, &pins.driver).await?;
        Ok(Session::by(runtime, lease, provider, &declaration))
    }

    /// The same with what is known of it already.
    pub(crate) fn by(
        runtime: &Leasehold,
        lease: Lease,
        provider: Arc<Installed>,
        declaration: &Result<DriverDeclaration, IdentityFailure>,
    ) -> Session {
        let config = serde_json::from_str(&lease.config).unwrap_or_default();
        let verification = provider.provider.inspection().verification();
        let capabilities = capabilities::of(&lease, verification, declaration);
        Session {
            provider,
            leases: runtime.leases().clone(),
            lease,
            config,
            capabilities,
            state: runtime.0.state.clone(),
            native_transfer: true,
        }
    }

    /// The lease's id.
    pub fn id(&self) -> &LeaseId {
        &self.lease.id
    }
    /// The lease as it was when it was taken up.
    pub fn lease(&self) -> &Lease {
        &self.lease
    }

    /// Narrows this use: files then move over commands alone, whatever the provider offers.
    #[must_use]
    pub fn without_native_transfer(mut self) -> Self {
        self.native_transfer = false;
        self
    }

    /// What this lease has of its provider, and why not the rest. It does not change while it is in use.
    pub fn capabilities(&self) -> &Effective {
        &self.capabilities
    }

    /// Ends the use: what is still running in it ends, and by its policy the sandbox is kept or deleted.
    ///
    /// # Errors
    /// When the provider could not confirm it. The lease is then ended by a later reconcile.
    pub async fn release(self) -> Result<Released, Error> {
        self.release_as(Releasing { failed: false, cancel_active_work: true }).await
    }

    /// The same, saying how the run it was for has ended.
    ///
    /// # Errors
    /// As [`Session::release`].
    pub async fn release_as(self, how: Releasing) -> Result<Released, Error> {
        Ok(self.leases.release(&self.lease.id, how).await?)
    }

    /// Stops the sandbox and keeps its files, whatever its policy says.
    ///
    /// # Errors
    /// When the provider cannot stop without deleting, or could not confirm it. Nothing is deleted.
    pub async fn stop(self) -> Result<Released, Error> {
        Ok(self.leases.stop(&self.lease.id, "asked_for").await?)
    }

    /// Deletes the sandbox and its files, whatever its policy says.
    ///
    /// # Errors
    /// When the provider could not confirm it. The lease is then ended by a later reconcile.
    pub async fn destroy(self) -> Result<Released, Error> {
        Ok(self.leases.destroy(&self.lease.id, "asked_for").await?)
    }

    /// Has the provider start the sandbox if need be and prove that it is the same one. The lease stays what
    /// it is, whatever comes of it: another process may be at work in it.
    pub(crate) async fn wake(&self) -> Result<(), Error> {
        if !self.provider.has(Method::ResumeLease) {
            return Ok(());
        }
        let lease = self.allocation()?;
        let id = lease.id.clone();
        let hook = ResumeLease { request: ResumeRequest { lease, requested_cwd: None } };
        let finished = self.call(Method::ResumeLease, None, hook, CancellationToken::new()).await?;
        let resumed = finished.answer?.map_err(convert::fault)?;
        if resumed.id == id { Ok(()) } else { Err(Error::AnotherAllocation { asked: id, got: resumed.id }) }
    }

    fn needs(&self, methods: &[Method]) -> Result<(), Error> {
        match methods.iter().find(|method| !self.provider.has(**method)) {
            None => Ok(()),
            Some(method) => {
                Err(Error::MissingMethod { provider: self.lease.pins.provider.clone(), method: *method })
            }
        }
    }

    /// The allocation as the provider knows it. A call without one would be about nothing.
    fn allocation(&self) -> Result<WitLease, Error> {
        match &self.lease.allocation {
            Some(allocation) => Ok(convert::wit_lease(allocation.clone())),
            None => Err(Error::NoAllocation { id: self.lease.id.clone() }),
        }
    }

    /// Calls a method; meanwhile the lease is kept from expiring, and the call ends with its lifetime.
    async fn call<H: Hook>(
        &self,
        method: Method,
        requested: Option<Duration>,
        hook: H,
        cancel: CancellationToken,
    ) -> Result<Finished<H::Answer>, Error> {
        self.call_with(&self.provider, method, requested, hook, cancel).await
    }

    async fn call_with<H: Hook>(
        &self,
        provider: &Installed,
        method: Method,
        requested: Option<Duration>,
        hook: H,
        cancel: CancellationToken,
    ) -> Result<Finished<H::Answer>, Error> {
        let request = BudgetRequest {
            requested_ms: requested.map(|time| time.as_secs_f64() * 1e3),
            config: &self.config,
            declared_acquire_ms: None,
            kind: DriverKind::SandboxProvider,
        };
        let time = Duration::from_millis(budget(method, &request).timeout_ms);
        let context = CallContext {
            driver_key: self.lease.pins.driver.clone(),
            tenant: self.lease.tenant.clone(),
            environment_id: self.lease.environment.clone(),
            run_id: self.lease.run.clone(),
            invocation_id: crate::id::random("call"),
            config: self.lease.config.clone(),
            remaining_ms: 0,
            trace_parent: None,
        };
        let lease = Some(self.lease.id.to_string());
        let call = provider.call(hook, context, time, lease, cancel);
        Ok(self.leases.in_use(&self.lease, call).await?)
    }

    /// Writes into the lease's history what was done in it and what that used. It is for people: a store
    /// that does not take it is warned of and stops nobody.
    async fn record(&self, what: &str, bill: &Bill) {
        if let Err(error) = self.leases.record(&self.lease.id, what, bill_json(bill)).await {
            tracing::warn!(lease = %self.lease.id, %error, "what was done in it was not written down");
        }
    }
}
