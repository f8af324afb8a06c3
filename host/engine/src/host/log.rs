//! `leasehold:host/log`: a guest's lines in the host's own log, attributed, bounded, and harmless to a
//! terminal.

use crate::call::CallState;
use crate::limits::Limit;
use leasehold_bindings::imports::log::{Host, Level};
use leasehold_contract::text::plain;

/// Fields of one line that are kept; a line with more is a payload, not a line.
const FIELDS_MAX: usize = 32;

impl Host for CallState {
    async fn write(
        &mut self,
        level: Level,
        mut message: String,
        mut fields: Vec<(String, String)>,
    ) -> wasmtime::Result<()> {
        self.log.lines += 1;
        let size: usize =
            message.len() + fields.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>();
        if self.log.lines_left == 0 || size as u64 > self.log.bytes_left {
            return Ok(());
        }
        if !self.log.in_time(self.scope().limits.get(Limit::LogRate)) {
            return Ok(());
        }
        self.log.lines_left -= 1;
        self.log.bytes_left -= size as u64;
        let scope = self.scope().clone();
        if let Some(authority) = scope.authority.as_deref() {
            authority.scrub(&mut message);
            fields.iter_mut().for_each(|(key, value)| {
                authority.scrub(key);
                authority.scrub(value);
            });
        }
        let message = plain(&message, self.log.message_bytes);
        let fields: Vec<_> = fields
            .iter()
            .take(FIELDS_MAX)
            .map(|(key, value)| format!("{}={}", plain(key, 100), plain(value, self.log.message_bytes)))
            .collect();
        let (method, invocation, fields) = (scope.method.name(), scope.invocation.as_str(), fields.join(" "));
        let (provider, lease) = (scope.provider, scope.lease.as_deref());
        // The macro wants the level as a constant, so one arm for each.
        match level {
            Level::Trace => {
                tracing::trace!(target: "leasehold::guest", %provider, lease, method, invocation, fields, "{message}")
            }
            Level::Debug => {
                tracing::debug!(target: "leasehold::guest", %provider, lease, method, invocation, fields, "{message}")
            }
            Level::Info => {
                tracing::info!(target: "leasehold::guest", %provider, lease, method, invocation, fields, "{message}")
            }
            Level::Warn => {
                tracing::warn!(target: "leasehold::guest", %provider, lease, method, invocation, fields, "{message}")
            }
            Level::Error => {
                tracing::error!(target: "leasehold::guest", %provider, lease, method, invocation, fields, "{message}")
            }
        }
        Ok(())
    }
}
