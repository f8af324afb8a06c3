//! Clocks. Needs the permission `time`.

use crate::imports::wasi::clocks::{monotonic_clock, wall_clock};
pub use crate::imports::wasi::io::poll::Pollable;

/// Milliseconds since the Unix epoch.
pub fn now_ms() -> u64 {
    let now = wall_clock::now();
    now.seconds.saturating_mul(1_000).saturating_add(u64::from(now.nanoseconds) / 1_000_000)
}

/// Milliseconds of a clock that only goes forward.
pub fn ticks_ms() -> u64 {
    monotonic_clock::now() / 1_000_000
}

/// Ready after so many milliseconds.
pub fn after(ms: u64) -> Pollable {
    monotonic_clock::subscribe_duration(ms.saturating_mul(1_000_000))
}

/// Waits for so many milliseconds.
pub fn sleep(ms: u64) {
    after(ms).block();
}
