//! Lines for whoever follows the work. The host attributes them to provider, lease and call.

pub use crate::imports::leasehold::host::log::Level;

/// Writes one line. Never fails; what is too much is counted by the host and dropped.
pub fn write(level: Level, message: &str, fields: &[(String, String)]) {
    crate::imports::leasehold::host::log::write(level, message, fields);
}

/// A line for following the work.
pub fn info(message: &str) {
    write(Level::Info, message, &[]);
}

/// A line that is worth a look.
pub fn warn(message: &str) {
    write(Level::Warn, message, &[]);
}
