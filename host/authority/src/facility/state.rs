//! `leasehold:host/state` over [`crate::state`].

use crate::reach::Reach;
use crate::state::{KEY_MAX, Owner, Quota, StateError as Fault, Write};
use leasehold_contract::authority::Permission;
use leasehold_engine::bindings::imports::state::{Host, StateError, Versioned, add_to_linker};
use leasehold_engine::call::CallState;
use leasehold_engine::{Facility, Limit, Scope};
use std::sync::Arc;
use std::time::Duration;
use wasmtime::component::{HasData, Linker};

/// The interface, for denials.
const STATE: &str = "leasehold:host/state";

/// State for guests that were granted it.
#[derive(Clone, Copy, Debug, Default)]
pub struct StateFacility;

impl Facility for StateFacility {
    fn interfaces(&self) -> &'static [&'static str] {
        &[STATE]
    }

    fn link(&self, linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
        add_to_linker::<_, Views>(linker, |state| View(state.counted_scope()))
    }
}

struct Views;

impl HasData for Views {
    type Data<'a> = View;
}

struct View(Arc<Scope>);

impl View {
    /// The call's reach and whose state it is, when the call may have any. What is refused is told as
    /// unavailable: the interface has no other word, and the reason is in the log and the audit.
    fn opened(&self) -> Result<(Arc<Reach>, Owner), StateError> {
        let reach = self.0.authority::<Reach>().ok_or(StateError::Unavailable)?;
        if let Err(denial) = reach.policy().allows(Permission::State, STATE) {
            reach.denied(&self.0, &denial);
            return Err(StateError::Unavailable);
        }
        let owner = Owner {
            provider: reach.policy().provider().to_owned(),
            tenant: self.0.tenant.clone(),
            environment: self.0.environment.clone(),
        };
        Ok((reach, owner))
    }

    async fn write(
        &self,
        key: String,
        value: Vec<u8>,
        expected: Option<u64>,
        ttl: Option<u64>,
    ) -> Result<u64, StateError> {
        let (reach, owner) = self.opened()?;
        let limits = &self.0.limits;
        let quota = Quota { keys: limits.get(Limit::StateKeys), bytes: limits.get(Limit::StateBytes) };
        let size = value.len() as u64;
        let allowed = limits.get(Limit::StateValue);
        if key.is_empty() || key.len() > KEY_MAX {
            let message = format!("a key has 1 to {KEY_MAX} bytes, not {}", key.len());
            return Err(StateError::Quota(message));
        }
        if size > allowed {
            let message = format!("limit `{}` hit: {size} of at most {allowed} bytes", Limit::StateValue);
            return Err(StateError::Quota(message));
        }
        // What a guest may see it may also keep, but never where the host stores it in the clear.
        let value = match reach.secrets().scrubber() {
            Some(scrubber) => scrubber.bytes(value.into()).to_vec(),
            None => value,
        };
        let target = format!("set {}", leasehold_contract::text::plain(&key, 100));
        let write = Write { key, value, expected, ttl: ttl.map(Duration::from_millis), quota };
        let version = reach.state().set(&owner, write).await.map_err(told)?;
        reach.used(&self.0, Permission::State, target, (size, 0));
        Ok(version)
    }
}

impl Host for View {
    async fn get(&mut self, key: String) -> wasmtime::Result<Result<Option<Versioned>, StateError>> {
        let (reach, owner) = match self.opened() {
            Ok(opened) => opened,
            Err(error) => return Ok(Err(error)),
        };
        if key.len() > KEY_MAX {
            return Ok(Ok(None));
        }
        let found = reach.state().get(&owner, &key).await.map_err(told);
        if let Ok(found) = &found {
            let size = found.as_ref().map_or(0, |found| found.value.len() as u64);
            let target = format!("get {}", leasehold_contract::text::plain(&key, 100));
            reach.used(&self.0, Permission::State, target, (0, size));
        }
        Ok(found.map(|found| found.map(|found| Versioned { value: found.value, version: found.version })))
    }

    async fn set(
        &mut self,
        key: String,
        value: Vec<u8>,
        expected: Option<u64>,
        ttl_ms: Option<u64>,
    ) -> wasmtime::Result<Result<u64, StateError>> {
        Ok(self.write(key, value, expected, ttl_ms).await)
    }

    async fn remove(
        &mut self,
        key: String,
        expected: Option<u64>,
    ) -> wasmtime::Result<Result<bool, StateError>> {
        let (reach, owner) = match self.opened() {
            Ok(opened) => opened,
            Err(error) => return Ok(Err(error)),
        };
        if key.len() > KEY_MAX {
            return Ok(Ok(false));
        }
        let removed = reach.state().remove(&owner, &key, expected).await.map_err(told);
        if removed.is_ok() {
            let target = format!("remove {}", leasehold_contract::text::plain(&key, 100));
            reach.used(&self.0, Permission::State, target, (0, 0));
        }
        Ok(removed)
    }
}

fn told(fault: Fault) -> StateError {
    match fault {
        Fault::Conflict { current } => StateError::Conflict(current),
        quota @ Fault::Quota { .. } => StateError::Quota(quota.to_string()),
        Fault::Unavailable(reason) => {
            tracing::warn!(reason, "the state of providers cannot be reached");
            StateError::Unavailable
        }
    }
}
