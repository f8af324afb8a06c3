//! A configuration before it is kept: what its schema says of it, then what its provider says.

use crate::environment::{Environment, For};
use crate::error::Error;
use crate::installed::convert;
use crate::runtime::Leasehold;
use leasehold_authority::config::{HOST_KEYS, checked};
use leasehold_contract::Method;
use leasehold_contract::budget::{BudgetRequest, budget};
use leasehold_contract::declaration::{DriverDeclaration, DriverKind};
use leasehold_engine::bindings::types::Context as CallContext;
use leasehold_engine::hook::ValidateConfig;
use serde_json::{Map, Value};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A key that a provider's validation may leave out, and the host needs.
const STREAM_RUN_LOGS: &str = "streamRunLogs";

/// A configuration that its provider accepted.
#[derive(Clone, Debug, PartialEq)]
pub struct Accepted {
    /// As the provider normalised it, with references where secrets are; as it was where it did not.
    pub config: Map<String, Value>,
    /// What the provider found worth saying.
    pub warnings: Vec<String>,
}

impl Environment {
    /// The configuration as leases store it: checked by the driver's schema, secrets as references.
    ///
    /// # Errors
    /// Every place where it does not fit.
    pub(crate) fn checked(&self, driver: &DriverDeclaration) -> Result<Map<String, Value>, Error> {
        checked(&driver.config_schema, &self.config).map_err(|faults| Error::Config {
            environment: self.name.clone(),
            faults: faults.iter().map(ToString::to_string).collect(),
        })
    }

    /// Checks the configuration: by the driver's schema, and where the provider validates, by the provider.
    ///
    /// # Errors
    /// When it does not fit the schema, with every place; when the provider refuses it; when there is no such
    /// provider.
    pub async fn validate(&self, runtime: &Leasehold) -> Result<Accepted, Error> {
        let resolved = runtime.resolve(&self.provider).await?;
        let stored = self.checked(&resolved.driver)?;
        if !resolved.component.has(Method::ValidateConfig) {
            return Ok(Accepted { config: self.own(self.config.clone()), warnings: Vec::new() });
        }
        let context = CallContext {
            driver_key: resolved.driver.driver_key,
            tenant: For::default().tenant,
            environment_id: self.name.clone(),
            run_id: None,
            invocation_id: crate::id::random("call"),
            config: Value::Object(stored).to_string(),
            remaining_ms: 0,
            trace_parent: None,
        };
        let request = BudgetRequest {
            requested_ms: None,
            config: &self.config,
            declared_acquire_ms: None,
            kind: DriverKind::SandboxProvider,
        };
        let time = Duration::from_millis(budget(Method::ValidateConfig, &request).timeout_ms);
        let call = resolved.component.call(ValidateConfig {}, context, time, None, CancellationToken::new());
        let accepted = call.await.answer?.map_err(convert::fault)?;
        let normalized = accepted.normalized.and_then(|text| serde_json::from_str(&text).ok());
        let config = self.own(normalized.unwrap_or_else(|| self.config.clone()));
        Ok(Accepted { config, warnings: accepted.warnings })
    }

    /// The configuration without keys a provider may not set, and with what the host needs of its own.
    fn own(&self, mut config: Map<String, Value>) -> Map<String, Value> {
        for key in HOST_KEYS {
            config.shift_remove(key);
        }
        if let Some(value) = self.config.get(STREAM_RUN_LOGS) {
            config.insert(STREAM_RUN_LOGS.into(), value.clone());
        }
        config
    }
}
