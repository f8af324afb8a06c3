//! What one jail may use.

use super::JailError;
use serde::{Deserialize, Serialize};

/// Bounds of one jail; none leaves the host's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// Memory of all its processes together, in bytes.
    pub memory_bytes: Option<u64>,
    /// Processes and threads at one time.
    pub processes: Option<u32>,
    /// Processor time, in thousandths of one processor.
    pub cpu_millis: Option<u32>,
    /// Bytes its writable directories may hold.
    pub disk_bytes: Option<u64>,
}

/// Less memory than this and the first process of the jail itself would not fit; creation is refused.
pub(super) const LEAST_MEMORY: u64 = 4 << 20;
/// The kernel gives a control group at least 1 ms of each 100 ms; less is refused.
pub(super) const LEAST_CPU: u64 = 10;
/// Three empty directories already take blocks; less is refused.
pub(super) const LEAST_DISK: u64 = 64 << 10;

impl Bounds {
    pub(super) fn check(&self) -> Result<(), JailError> {
        let rows = [
            ("memory-bytes", self.memory_bytes, LEAST_MEMORY),
            ("processes", self.processes.map(u64::from), 1),
            ("cpu-millis", self.cpu_millis.map(u64::from), LEAST_CPU),
            ("disk-bytes", self.disk_bytes, LEAST_DISK),
        ];
        for (bound, value, least) in rows {
            if let Some(value) = value.filter(|value| *value < least) {
                return Err(JailError::Bound { bound, least, value });
            }
        }
        Ok(())
    }
}

/// Who holds a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Enforcement {
    /// The bound is not set.
    Unbounded,
    /// The kernel: it cannot be passed.
    Kernel,
    /// The host looks several times a second: it can be passed for a moment.
    Sampled,
    /// The kernel holds it, at the level of a user: passed by one at most.
    UserLimit,
    /// Set and not held, because the layer that holds it was given up.
    NotHeld,
}
