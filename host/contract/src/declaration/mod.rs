//! What a provider says of itself, read strictly.
//!
//! A declaration is read once, by [`driver`] or [`manifest`], into a type that cannot hold a wrong one.
//! Reading never stops at the first fault: an author sees all of them, each with its place and with what is
//! accepted. Unknown keys are faults, because a mis-spelt key that is dropped in silence turns a feature
//! off.

mod driver;
mod manifest;
mod reader;
mod rules;
mod spelling;

pub use driver::{DRIVER_KEYS, DriverDeclaration, DriverKind, TemplateConfigBinding, driver};
pub use manifest::{MANIFEST_KEYS, ProviderManifest, REGISTER_DRIVERS, manifest};

use serde::Serialize;

/// One thing that is wrong with a declaration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// Where: `environmentDrivers[1].driverKey`; `$` for the whole value.
    pub path: String,
    /// What is accepted there and what was found.
    pub message: String,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// Keys of `sandboxCapabilities` that earlier drafts had. They never had an effect, so that a declaration
/// that still carries one is told so instead of being asked whether it mis-spelt another key.
const REMOVED_CAPABILITIES: [&str; 2] = ["concurrentSyncAndExec", "concurrentSyncOperations"];
