//! `leasehold.toml`: environments, and providers with what they are granted.

use anyhow::Context;
use leasehold::{Builder, Environment, Grant};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The file that is read when none is named.
const FILE: &str = "leasehold.toml";

/// What the file says. A key that nobody reads is an error.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    #[serde(skip)]
    file: PathBuf,
    #[serde(default)]
    environments: BTreeMap<String, EnvironmentSettings>,
    #[serde(default)]
    providers: BTreeMap<String, ProviderSettings>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct EnvironmentSettings {
    provider: String,
    #[serde(default)]
    config: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProviderSettings {
    /// The component's file, from the folder of the settings.
    component: PathBuf,
    #[serde(default)]
    grants: Vec<Grant>,
}

impl Settings {
    /// Reads the named file, or the usual one when it is there.
    pub(crate) fn read(named: Option<&Path>) -> anyhow::Result<Settings> {
        let file = named.unwrap_or(Path::new(FILE));
        let text = match std::fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) if named.is_none() && error.kind() == ErrorKind::NotFound => {
                return Ok(Settings::default());
            }
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", file.display())),
        };
        let mut settings: Settings =
            toml::from_str(&text).with_context(|| format!("{} cannot be used", file.display()))?;
        settings.file = file.to_owned();
        Ok(settings)
    }

    /// The environment of this name, else the plain one of a provider.
    pub(crate) fn environment(&self, name: Option<&str>, provider: &str) -> anyhow::Result<Environment> {
        let Some(name) = name else { return Ok(Environment::of(provider)) };
        let found = self.environments.get(name).with_context(|| {
            let known: Vec<_> = self.environments.keys().map(String::as_str).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            format!(
                "there is no environment `{name}` (there are: {known}); add [environments.{name}] to {FILE}"
            )
        })?;
        Ok(Environment { name: name.into(), provider: found.provider.clone(), config: found.config.clone() })
    }

    /// Installs the providers of the file.
    pub(crate) fn install(&self, mut builder: Builder) -> anyhow::Result<Builder> {
        for (name, settings) in &self.providers {
            let file = self.file.parent().unwrap_or(Path::new("")).join(&settings.component);
            let component = std::fs::read(&file)
                .with_context(|| format!("provider `{name}`: cannot read {}", file.display()))?;
            builder = builder.provider(name, component, settings.grants.iter().cloned());
        }
        Ok(builder)
    }
}
