//! A provider's manifest: who it is, which drivers it has, what it wants to reach.

use super::driver::{self, DriverDeclaration};
use super::reader::{Faults, Object, found};
use super::{Fault, rules};
use crate::authority::{Ask, GrantError};
use serde::Serialize;
use serde_json::Value;

/// The host's capability that lets a plugin have drivers at all.
pub const REGISTER_DRIVERS: &str = "environment.drivers.register";

/// A provider as it declares itself, found valid.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProviderManifest {
    /// The plugin's key.
    pub plugin_key: String,
    /// Its version. A stored manifest is refreshed only when this changes.
    pub version: String,
    /// The name people see.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// What the plugin asks of the host; [`REGISTER_DRIVERS`] is always among them.
    pub capabilities: Vec<String>,
    /// Its drivers, at least one, no key twice.
    pub environment_drivers: Vec<DriverDeclaration>,
    /// What its component asks to reach.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub permissions: Vec<Ask>,
}

/// Every key a manifest may have.
pub const MANIFEST_KEYS: &[&str] =
    &["pluginKey", "version", "displayName", "capabilities", "environmentDrivers", "permissions"];

/// Reads a provider's manifest. Fails with every fault in it and in its drivers.
pub fn manifest(value: &Value) -> Result<ProviderManifest, Vec<Fault>> {
    let mut faults = Faults::default();
    let read = read(value, &mut faults);
    faults.conclude(read)
}

fn read(value: &Value, faults: &mut Faults) -> Option<ProviderManifest> {
    let object = Object::open(value, "$", MANIFEST_KEYS, |_| None, faults)?;
    let name = rules::text(1..=100);
    let plugin_key = object.required("pluginKey", rules::KEY, faults, rules::key);
    let version = object.required("version", "a string of 1 to 100 characters", faults, &name);
    let display_name = object.optional("displayName", faults, &name);
    let register =
        format!("an array of strings with {REGISTER_DRIVERS:?}, without which no driver is accepted");
    let capabilities = object.required("capabilities", &register, faults, capabilities);
    let drivers = object.required("environmentDrivers", "an array of one or more entries", faults, drivers);
    let permissions = object.optional("permissions", faults, permissions);
    Some(ProviderManifest {
        plugin_key: plugin_key?,
        version: version?,
        display_name,
        capabilities: capabilities?,
        environment_drivers: drivers?,
        permissions: permissions.unwrap_or_default(),
    })
}

fn capabilities(value: &Value, path: &str, faults: &mut Faults) -> Option<Vec<String>> {
    let names = rules::list(0..=usize::MAX, rules::text(1..=usize::MAX))(value, path, faults)?;
    if !names.iter().any(|name| name == REGISTER_DRIVERS) {
        faults.add(path, format!("must contain {REGISTER_DRIVERS:?}, without which no driver is accepted"));
    }
    Some(names)
}

fn drivers(value: &Value, path: &str, faults: &mut Faults) -> Option<Vec<DriverDeclaration>> {
    let drivers = rules::list(1..=usize::MAX, driver::read)(value, path, faults);
    rules::unique(value, path, faults, |entry| Some((entry.get("driverKey")?.as_str()?, ".driverKey")));
    drivers
}

fn permissions(value: &Value, path: &str, faults: &mut Faults) -> Option<Vec<Ask>> {
    rules::unique(value, path, faults, rules::whole);
    rules::list(0..=PERMISSIONS_MAX, permission)(value, path, faults)
}

fn permission(value: &Value, path: &str, faults: &mut Faults) -> Option<Ask> {
    match value.as_str().map(str::parse) {
        Some(Ok(ask)) => Some(ask),
        Some(Err(error)) => faults.refuse(path, GrantError::to_string(&error)),
        None => faults.refuse(path, format!("expected a permission as text, found {}", found(value))),
    }
}

/// Asks of one provider. Each costs time in every decision; more is no declaration but a list of addresses.
const PERMISSIONS_MAX: usize = 200;
