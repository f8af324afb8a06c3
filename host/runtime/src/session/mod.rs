//! One lease in use: files in, commands, files out, and the end.

mod execute;
mod transfer;

pub use execute::{Command, Streams};
pub use transfer::Synced;

use crate::environment::Environment;
use crate::error::Error;
use crate::installed::{Installed, convert};
use leasehold_contract::Method;
use leasehold_contract::budget::{BudgetRequest, budget};
use leasehold_contract::declaration::DriverKind;
use leasehold_engine::Finished;
use leasehold_engine::bindings::types::Context as CallContext;
use leasehold_lease::{Lease, LeaseId, Leases, Released, Releasing};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A lease in use. Dropping it does not end it: [`Session::release`] does, and what a host that died has
/// left is ended by [`crate::Leasehold::reconcile`].
#[derive(Debug)]
pub struct Session {
    pub(crate) environment: Environment,
    pub(crate) provider: Arc<Installed>,
    pub(crate) leases: Leases,
    pub(crate) lease: Lease,
}

impl Session {
    /// The lease's id.
    pub fn id(&self) -> &LeaseId {
        &self.lease.id
    }

    /// Ends the lease: what is still running in it ends, and by its retention the sandbox is kept or deleted.
    ///
    /// # Errors
    /// When the provider could not confirm it. The lease is then ended by a later reconcile.
    pub async fn release(self) -> Result<Released, Error> {
        let how = Releasing { failed: false, cancel_active_work: true };
        Ok(self.leases.release(&self.lease.id, how).await?)
    }

    fn needs(&self, methods: &[Method]) -> Result<(), Error> {
        match methods.iter().find(|method| !self.provider.has(**method)) {
            None => Ok(()),
            Some(method) => {
                Err(Error::MissingMethod { provider: self.environment.provider.clone(), method: *method })
            }
        }
    }

    fn provider_lease(&self) -> leasehold_engine::bindings::types::Lease {
        // An active lease has its allocation; the name is what it was asked for by.
        let unseen = || leasehold_lease::ProviderLease {
            id: self.lease.id.as_str().to_owned(),
            metadata: None,
            expires_at_ms: None,
        };
        convert::wit_lease(self.lease.allocation.clone().unwrap_or_else(unseen))
    }

    async fn call<H: leasehold_engine::Hook>(
        &self,
        method: Method,
        requested: Option<Duration>,
        hook: H,
        cancel: CancellationToken,
    ) -> Finished<H::Answer> {
        let request = BudgetRequest {
            requested_ms: requested.map(|time| time.as_secs_f64() * 1e3),
            config: &self.environment.config,
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
        self.provider.call(hook, context, time, cancel).await
    }
}
