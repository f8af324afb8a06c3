//! A provider as the lease crate calls it: each method a hook of the engine.

pub(crate) mod components;
pub(crate) mod convert;
pub(crate) mod embedded;
mod grants;
pub(crate) mod installing;
pub(crate) mod package;
pub(crate) mod registry;
pub(crate) mod shelf;

pub use components::EngineFault;
pub use embedded::LOCAL_PROVIDER;
pub use grants::Granted;
pub use package::ProviderFiles;

use leasehold_authority::secret::resolve::{Consumer, Purpose};
use leasehold_authority::{Reach, Services};
use leasehold_contract::Method;
use leasehold_contract::authority::{Permission, Policy};
use leasehold_engine::bindings::types::Context as CallContext;
use leasehold_engine::hook::{
    AcquireLease, DestroyLease, FindLease, Hook, ReleaseLease, ResumeLease, StopLease,
};
use leasehold_engine::{Bill, CallError, CallOptions, Finished, Limit, Limits, Provider};
use leasehold_lease::{
    AcquireFailure, AcquireRequest, Answer, Context, DestroyFailure, DestroyTarget, Fault, Finding, Offers,
    ProviderLease, Receipt, ReleaseRequest, Reply, ResumeRequest, StopFailure, StopReason,
};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// An installed provider, ready to be called.
#[derive(Clone, Debug)]
pub(crate) struct Installed {
    pub(crate) provider: Provider,
    pub(crate) limits: Limits,
    pub(crate) policy: Arc<Policy>,
    pub(crate) services: Services,
}

impl Installed {
    /// Whether the component really has this method.
    pub(crate) fn has(&self, method: Method) -> bool {
        self.provider.inspection().verification().has(method)
    }

    /// The same for a call whose arguments and variables have this many bytes: they reach a sandbox through the
    /// provider, which passes them on in one piece. The sandbox has a limit of its own and says so more
    /// clearly.
    pub(crate) fn with_arguments(&self, bytes: u64) -> Installed {
        let mut larger = self.clone();
        let space = larger.limits.get(Limit::Returned).saturating_add(bytes);
        let ceiling = Limit::Returned.info().ceiling;
        if let Ok(limits) = larger.limits.clone().with(Limit::Returned, space.min(ceiling)) {
            larger.limits = limits;
        }
        larger
    }

    /// Calls a method within this time.
    pub(crate) async fn call<H: Hook>(
        &self,
        hook: H,
        context: CallContext,
        time: Duration,
        lease: Option<String>,
        cancel: CancellationToken,
    ) -> Finished<H::Answer> {
        let ceiling = Limit::Wall.info().ceiling;
        let wall = u64::try_from(time.as_millis()).unwrap_or(ceiling).clamp(1, ceiling);
        let limits = self.limits.clone().with(Limit::Wall, wall).unwrap_or_else(|_| self.limits.clone());
        let consumer = Consumer {
            tenant: context.tenant.clone(),
            environment: context.environment_id.clone(),
            run: context.run_id.clone(),
            purpose: purpose(H::METHOD),
        };
        let (policy, services) = (self.policy.clone(), self.services.clone());
        let opening = Reach::open(policy, services, &context.config, &consumer);
        let (config, reach) = match tokio::time::timeout(time, opening).await {
            Ok(Ok(opened)) => opened,
            Ok(Err(error)) => return not_started(error.to_string()),
            Err(_) => return not_started("its secrets were not there in time".into()),
        };
        let context = CallContext { config, ..context };
        let options = CallOptions { limits, cancel, lease, authority: Some(reach) };
        self.provider.call(hook, context, &options).await
    }

    /// Whether it may reach anything beyond this machine.
    fn reaches_network(&self) -> bool {
        let permissions = self.provider.inspection().imports().iter().flat_map(package::wants);
        permissions
            .into_iter()
            .any(|it| matches!(it, Permission::Http | Permission::Tcp | Permission::UnixHttp))
    }

    /// Calls a method for the lease crate: what the guest answered, or the fault that ended the call; and
    /// what the call used.
    async fn answered<H: Hook>(
        &self,
        hook: H,
        context: Context,
    ) -> (Result<H::Answer, Fault>, Option<String>) {
        let time = context.remaining;
        let finished = self.call(hook, call_context(context), time, None, CancellationToken::new()).await;
        let bill = bill_json(&finished.bill);
        (finished.answer.map_err(|error| convert::ended(&error)), bill)
    }
}

impl leasehold_lease::Provider for Installed {
    fn offers(&self) -> Offers {
        Offers {
            find: self.has(Method::FindLease),
            resume: self.has(Method::ResumeLease),
            release: self.has(Method::ReleaseLease),
            destroy: self.has(Method::DestroyLease),
            stop: self.has(Method::StopLease),
            network: self.reaches_network(),
        }
    }

    fn acquire(
        &self,
        context: Context,
        request: AcquireRequest,
    ) -> Answer<'_, Result<ProviderLease, AcquireFailure>> {
        Box::pin(async move {
            let hook = AcquireLease { request: convert::acquire_request(request) };
            let (answered, bill) = self.answered(hook, context).await;
            let answer = match answered {
                Ok(answer) => answer.map(convert::provider_lease).map_err(convert::acquire_failure),
                Err(fault) => Err(AcquireFailure { fault, diagnostic: None, cleanup: None, answered: false }),
            };
            Reply { answer, bill }
        })
    }

    fn find(&self, context: Context, creation_name: String) -> Answer<'_, Result<Finding, Fault>> {
        Box::pin(async move {
            let (answered, bill) = self.answered(FindLease { creation_name }, context).await;
            let answer = answered.and_then(|answer| answer.map(convert::finding).map_err(convert::fault));
            Reply { answer, bill }
        })
    }

    fn resume(&self, context: Context, request: ResumeRequest) -> Answer<'_, Result<ProviderLease, Fault>> {
        Box::pin(async move {
            let hook = ResumeLease { request: convert::resume_request(request) };
            let (answered, bill) = self.answered(hook, context).await;
            let answer =
                answered.and_then(|answer| answer.map(convert::provider_lease).map_err(convert::fault));
            Reply { answer, bill }
        })
    }

    fn release(&self, context: Context, request: ReleaseRequest) -> Answer<'_, Result<Receipt, Fault>> {
        Box::pin(async move {
            let hook = ReleaseLease { request: convert::release_request(request) };
            let (answered, bill) = self.answered(hook, context).await;
            let answer = answered.and_then(|answer| answer.map(convert::receipt).map_err(convert::fault));
            Reply { answer, bill }
        })
    }

    fn destroy(
        &self,
        context: Context,
        target: DestroyTarget,
    ) -> Answer<'_, Result<Receipt, DestroyFailure>> {
        Box::pin(async move {
            let hook = DestroyLease { target: convert::destroy_target(target) };
            let (answered, bill) = self.answered(hook, context).await;
            let answer = match answered {
                Ok(answer) => answer.map(convert::receipt).map_err(convert::destroy_failure),
                Err(fault) => Err(DestroyFailure { fault, cleanup: None }),
            };
            Reply { answer, bill }
        })
    }

    fn stop(&self, context: Context, lease: ProviderLease) -> Answer<'_, Result<Receipt, StopFailure>> {
        Box::pin(async move {
            let hook = StopLease { lease: convert::wit_lease(lease) };
            let (answered, bill) = self.answered(hook, context).await;
            let answer = match answered {
                Ok(answer) => answer.map(convert::receipt).map_err(convert::stop_failure),
                Err(fault) => Err(StopFailure { fault, reason: StopReason::Unconfirmed }),
            };
            Reply { answer, bill }
        })
    }
}

/// What secrets are resolved for. Ending what was made goes on when its environment is edited or gone.
fn purpose(method: Method) -> Purpose {
    match method {
        Method::ReleaseLease | Method::DestroyLease | Method::StopLease | Method::FindLease => {
            Purpose::Teardown
        }
        _ => Purpose::Use,
    }
}

fn not_started<T>(reason: String) -> Finished<T> {
    Finished { answer: Err(CallError::NotStarted { reason }), bill: Bill::default() }
}

/// What a call used, as it is kept in the history of a lease.
pub(crate) fn bill_json(bill: &Bill) -> Option<String> {
    serde_json::to_string(bill).ok()
}

/// The context of one call. Every call has an id of its own; the engine says how much time is left.
fn call_context(context: Context) -> CallContext {
    let Context { driver, tenant, environment, run, config, .. } = context;
    CallContext {
        driver_key: driver,
        tenant,
        environment_id: environment,
        run_id: run,
        invocation_id: crate::id::random("call"),
        config,
        remaining_ms: 0,
        trace_parent: None,
    }
}
