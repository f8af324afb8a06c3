//! `leasehold:host/log`: a guest's lines in the host's own log, attributed, bounded, and harmless to a
//! terminal.

use crate::call::CallState;
use leasehold_bindings::imports::log::{Host, Level};
use leasehold_contract::text::plain;

/// Fields of one line that are kept; a line with more is a payload, not a line.
const FIELDS_MAX: usize = 32;

impl Host for CallState {
    async fn write(
        &mut self,
        level: Level,
        message: String,
        fields: Vec<(String, String)>,
    ) -> wasmtime::Result<()> {
        self.log.lines += 1;
        let size: usize =
            message.len() + fields.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>();
        if self.log.lines_left == 0 || size as u64 > self.log.bytes_left {
            return Ok(());
        }
        self.log.lines_left -= 1;
        self.log.bytes_left -= size as u64;
        let message = plain(&message, self.log.message_bytes);
        let fields: Vec<_> = fields
            .iter()
            .take(FIELDS_MAX)
            .map(|(key, value)| format!("{}={}", plain(key, 100), plain(value, self.log.message_bytes)))
            .collect();
        let (method, invocation, fields) = (self.method.name(), self.invocation.as_str(), fields.join(" "));
        // The macro wants the level as a constant, so one arm for each.
        match level {
            Level::Trace => {
                tracing::trace!(target: "leasehold::guest", method, invocation, fields, "{message}")
            }
            Level::Debug => {
                tracing::debug!(target: "leasehold::guest", method, invocation, fields, "{message}")
            }
            Level::Info => {
                tracing::info!(target: "leasehold::guest", method, invocation, fields, "{message}")
            }
            Level::Warn => {
                tracing::warn!(target: "leasehold::guest", method, invocation, fields, "{message}")
            }
            Level::Error => {
                tracing::error!(target: "leasehold::guest", method, invocation, fields, "{message}")
            }
        }
        Ok(())
    }
}
