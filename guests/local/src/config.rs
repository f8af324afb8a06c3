//! The driver's configuration: how much one sandbox may use.

use crate::bindings::exports::leasehold::provider::validate_config::{self, AcceptedConfig};
use crate::bindings::leasehold::host::jail::Bounds;
use crate::bindings::leasehold::provider::types::{Context, Error, FieldError};
use crate::Local;
use serde::Deserialize;

/// The configuration as it is written. Everything may be left out; the host has bounds of its own.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Config {
    /// Memory of all processes together, in bytes.
    memory_bytes: Option<u64>,
    /// Processes and threads at one time.
    processes: Option<u32>,
    /// Processor time, in thousandths of one processor.
    cpu_millis: Option<u32>,
    /// Bytes that the writable directories may hold.
    disk_bytes: Option<u64>,
    /// The contract's own field: time for a call, which is the host's affair.
    #[serde(rename = "timeoutMs")]
    _timeout_ms: Option<serde_json::Value>,
    /// The contract's own field: the host decides on reuse and says so.
    #[serde(rename = "reuseLease")]
    _reuse_lease: Option<bool>,
}

impl validate_config::Guest for Local {
    fn validate_config(ctx: Context) -> Result<AcceptedConfig, Error> {
        bounds(&ctx.config)?;
        Ok(AcceptedConfig { normalized: None, warnings: vec![] })
    }
}

/// The bounds that a configuration asks for.
pub(crate) fn bounds(config: &str) -> Result<Bounds, Error> {
    let invalid =
        |path: &str, message: String| Error::InvalidConfig(vec![FieldError { path: path.into(), message }]);
    let config: Config = match config.trim() {
        "" => Config::default(),
        text => serde_json::from_str(text).map_err(|error| invalid("", error.to_string()))?,
    };
    for (path, zero) in [
        ("memoryBytes", config.memory_bytes == Some(0)),
        ("processes", config.processes == Some(0)),
        ("cpuMillis", config.cpu_millis == Some(0)),
        ("diskBytes", config.disk_bytes == Some(0)),
    ] {
        if zero {
            return Err(invalid(path, "must be at least 1; leave it out for the host's own bound".into()));
        }
    }
    Ok(Bounds {
        memory_bytes: config.memory_bytes,
        processes: config.processes,
        cpu_millis: config.cpu_millis,
        disk_bytes: config.disk_bytes,
    })
}
