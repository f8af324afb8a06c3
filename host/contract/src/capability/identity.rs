//! Which plugin's declaration counts for a kept lease.
//!
//! A lease names the plugin that made it. Another plugin with the same driver key may be installed earlier or
//! declare more, so the declaration is read from exactly the named one, and from nowhere when that fails.

use crate::declaration::{DriverDeclaration, DriverKind};

/// Why the declaration of a kept lease is not known. Every capability is then denied, see [`super::deny`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdentityFailure {
    /// The lease does not say which plugin made it.
    #[error("the lease names no plugin")]
    NoPlugin,
    /// The plugin that made the lease is not installed.
    #[error("plugin {plugin} is not installed")]
    UnknownPlugin {
        /// The plugin's id.
        plugin: String,
    },
    /// The plugin does not declare the driver as a sandbox provider any more.
    #[error("plugin {plugin} no longer declares {driver_key} as sandbox_provider")]
    NotDeclared {
        /// The plugin's id.
        plugin: String,
        /// The driver's key.
        driver_key: String,
    },
    /// A host application found it out by itself; the text is its own.
    #[error("{0}")]
    Reported(String),
}

/// One installed plugin, as far as identity needs it.
#[derive(Clone, Copy, Debug)]
pub struct InstalledPlugin<'a> {
    /// The id leases store.
    pub id: &'a str,
    /// What it declares now.
    pub drivers: &'a [DriverDeclaration],
}

/// The declaration that counts for a lease made by the plugin `plugin_id` with the driver `driver_key`.
///
/// Fails when the lease names no plugin (or a blank one), when the plugin is not installed, and when it no
/// longer declares the key as a sandbox provider.
pub fn identify<'a>(
    plugins: &[InstalledPlugin<'a>],
    plugin_id: Option<&str>,
    driver_key: &str,
) -> Result<&'a DriverDeclaration, IdentityFailure> {
    let id = plugin_id.filter(|id| !id.trim().is_empty()).ok_or(IdentityFailure::NoPlugin)?;
    let plugin = plugins
        .iter()
        .find(|plugin| plugin.id == id)
        .ok_or_else(|| IdentityFailure::UnknownPlugin { plugin: id.to_owned() })?;
    plugin
        .drivers
        .iter()
        .find(|driver| driver.driver_key == driver_key && driver.kind == DriverKind::SandboxProvider)
        .ok_or_else(|| IdentityFailure::NotDeclared {
            plugin: id.to_owned(),
            driver_key: driver_key.to_owned(),
        })
}
