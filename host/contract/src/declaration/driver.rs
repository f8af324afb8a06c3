//! One driver of a provider.

use super::reader::{Faults, Object};
use super::{Fault, REMOVED_CAPABILITIES, rules};
use crate::budget::MAX_DECLARED_ACQUIRE_MS;
use crate::capability::{Capability, Declared};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What a driver is. A driver that does not say is a plain one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DriverKind {
    /// A driver that makes environments of its own sort.
    #[default]
    EnvironmentDriver,
    /// A driver whose environments are sandboxes with leases.
    SandboxProvider,
}

impl DriverKind {
    /// Every kind.
    pub const ALL: [DriverKind; 2] = [DriverKind::EnvironmentDriver, DriverKind::SandboxProvider];

    /// The name in JSON and in messages.
    pub const fn name(self) -> &'static str {
        match self {
            DriverKind::EnvironmentDriver => "environment_driver",
            DriverKind::SandboxProvider => "sandbox_provider",
        }
    }

    /// The kind of this name. Case matters.
    pub fn by_name(name: &str) -> Option<DriverKind> {
        DriverKind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// Where a captured template goes in an environment's configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TemplateConfigBinding {
    /// The field that takes the template's name.
    pub field: String,
    /// Fields that are removed, because they would contradict the template.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unset_fields: Vec<String>,
}

/// A driver as its provider declares it, found valid. Older fields are folded into their successors.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DriverDeclaration {
    /// The key environments name. Unique in one manifest, not across plugins.
    pub driver_key: String,
    /// What it is.
    pub kind: DriverKind,
    /// The name people see.
    pub display_name: String,
    /// A sentence or two for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// JSON Schema of an environment's configuration.
    pub config_schema: Map<String, Value>,
    /// What it says of each capability.
    #[serde(rename = "sandboxCapabilities", skip_serializing_if = "Declared::is_empty")]
    pub capabilities: Declared,
    /// Milliseconds a fresh acquisition may take when the configuration sets no time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_acquire_timeout_ms: Option<u64>,
    /// Whether an agent has to be set up for its environments.
    pub requires_agent: bool,
    /// Whether people can prepare a sandbox by hand.
    pub supports_interactive_setup: bool,
    /// Whether a prepared sandbox can become a template.
    pub supports_template_capture: bool,
    /// Whether templates can be deleted.
    pub supports_template_delete: bool,
    /// Whether it opens a terminal for logging in.
    pub supports_login_pty: bool,
    /// How people reach a sandbox they prepare, preferred first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub interactive_setup_connection_types: Vec<String>,
    /// What a template's name refers to, for example `snapshot`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template_ref_kind: Option<String>,
    /// Where a captured template goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template_config_binding: Option<TemplateConfigBinding>,
    /// Dotted paths of configuration values that a template depends on; when one changes, the template no
    /// longer fits.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub template_identity_paths: Vec<String>,
}

/// Every key a driver declaration may have.
pub const DRIVER_KEYS: &[&str] = &[
    "driverKey",
    "kind",
    "displayName",
    "description",
    "configSchema",
    "supportsReusableLeases",
    "sandboxCapabilities",
    "defaultAcquireTimeoutMs",
    "requiresAgent",
    "supportsInteractiveSetup",
    "supportsTemplateCapture",
    "supportsTemplateDelete",
    "supportsLoginPty",
    "supportsSetupTokenLogin",
    "interactiveSetupConnectionTypes",
    "templateRefKind",
    "templateConfigBinding",
    "templateIdentityPaths",
];

/// Reads one driver declaration. Fails with every fault in it.
pub fn driver(value: &Value) -> Result<DriverDeclaration, Vec<Fault>> {
    let mut faults = Faults::default();
    let read = read(value, "$", &mut faults);
    faults.conclude(read)
}

/// Reads the driver declaration at `path`. A value may come back with faults; the caller looks at both.
pub(super) fn read(value: &Value, path: &str, faults: &mut Faults) -> Option<DriverDeclaration> {
    let object = Object::open(value, path, DRIVER_KEYS, |_| None, faults)?;
    let name = rules::text(1..=100);
    let driver_key = object.required("driverKey", rules::KEY, faults, rules::key);
    let display_name = object.required("displayName", "a string of 1 to 100 characters", faults, &name);
    let config_schema = object.required("configSchema", "an object (a JSON Schema)", faults, rules::object);
    let kind = object.optional("kind", faults, kind).unwrap_or_default();
    let flag = |key, faults: &mut Faults| object.optional(key, faults, rules::flag);
    let legacy_reuse = flag("supportsReusableLeases", faults);
    let capabilities = object.optional("sandboxCapabilities", faults, capabilities).unwrap_or_default();
    let supports_login_pty = login_pty(&object, faults);
    let acquire_time = rules::positive_integer(MAX_DECLARED_ACQUIRE_MS);
    Some(DriverDeclaration {
        kind,
        description: object.optional("description", faults, rules::text(0..=500)),
        capabilities: capabilities.with_legacy_reuse(legacy_reuse),
        default_acquire_timeout_ms: object.optional("defaultAcquireTimeoutMs", faults, acquire_time),
        requires_agent: flag("requiresAgent", faults).unwrap_or_default(),
        supports_interactive_setup: flag("supportsInteractiveSetup", faults).unwrap_or_default(),
        supports_template_capture: flag("supportsTemplateCapture", faults).unwrap_or_default(),
        supports_template_delete: flag("supportsTemplateDelete", faults).unwrap_or_default(),
        supports_login_pty,
        interactive_setup_connection_types: object
            .optional("interactiveSetupConnectionTypes", faults, rules::list(0..=10, &name))
            .unwrap_or_default(),
        template_ref_kind: object.optional("templateRefKind", faults, &name),
        template_config_binding: object.optional("templateConfigBinding", faults, binding),
        template_identity_paths: object
            .optional("templateIdentityPaths", faults, rules::list(0..=20, rules::dotted_path))
            .unwrap_or_default(),
        // Last, so that a missing one does not hide the faults of the others.
        driver_key: driver_key?,
        display_name: display_name?,
        config_schema: config_schema?,
    })
}

fn kind(value: &Value, path: &str, faults: &mut Faults) -> Option<DriverKind> {
    match value.as_str().and_then(DriverKind::by_name) {
        Some(kind) => Some(kind),
        None => {
            let known = DriverKind::ALL.map(DriverKind::name).join(" or ");
            faults.refuse(path, format!("expected {known}, found {}", super::reader::found(value)))
        }
    }
}

fn capabilities(value: &Value, path: &str, faults: &mut Faults) -> Option<Declared> {
    let names = Capability::ALL.map(Capability::name);
    let removed = |key: &str| {
        REMOVED_CAPABILITIES
            .contains(&key)
            .then_some("removed from the contract, it never had an effect; leave it out")
    };
    let object = Object::open(value, path, &names, removed, faults)?;
    let said = Capability::ALL.into_iter().filter_map(|capability| {
        object.optional(capability.name(), faults, rules::flag).map(|value| (capability, value))
    });
    Some(said.collect())
}

/// `supportsLoginPty`, or its older name. Two names that disagree are a fault: either reading would surprise.
fn login_pty(object: &Object<'_>, faults: &mut Faults) -> bool {
    let current = object.optional("supportsLoginPty", faults, rules::flag);
    let older = object.optional("supportsSetupTokenLogin", faults, rules::flag);
    if let (Some(current), Some(older)) = (current, older)
        && current != older
    {
        let message = format!(
            "says {older}, but supportsLoginPty, its newer name, says {current}; keep supportsLoginPty only"
        );
        faults.add(&object.path_of("supportsSetupTokenLogin"), message);
    }
    current.or(older).unwrap_or_default()
}

fn binding(value: &Value, path: &str, faults: &mut Faults) -> Option<TemplateConfigBinding> {
    let object = Object::open(value, path, &["field", "unsetFields"], |_| None, faults)?;
    let field = object.required("field", rules::FIELD_NAME, faults, rules::field_name);
    let unset = object.optional("unsetFields", faults, |value, path, faults| {
        rules::unique(value, path, faults, rules::whole);
        for (i, name) in value.as_array().into_iter().flatten().enumerate() {
            if field.is_some() && name.as_str() == field.as_deref() {
                faults.add(&format!("{path}[{i}]"), "the template's own field cannot be unset");
            }
        }
        rules::list(0..=20, rules::field_name)(value, path, faults)
    });
    Some(TemplateConfigBinding { field: field?, unset_fields: unset.unwrap_or_default() })
}
