//! `leasehold.toml`: where leases are kept, environments, and providers with what they are granted.
//!
//! It is read strictly: a key that nobody reads is an error that names it and whose it would be.

use anyhow::Context;
use leasehold::{Builder, Environment, Grant, HttpSettings, ProviderFiles, Proxy, ProxySettings, StoreAt};
use serde_json::{Map, Value};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use toml::{Table, Value as Toml};

/// The file that is read when none is named.
pub(crate) const FILE: &str = "leasehold.toml";

/// How an address of a PostgreSQL server begins.
const SERVER: [&str; 2] = ["postgres://", "postgresql://"];

/// What the file says.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    file: PathBuf,
    store: Option<String>,
    environments: Vec<Environment>,
    providers: Vec<ProviderSettings>,
    network: Network,
}

/// How the network is reached.
#[derive(Debug, Default)]
struct Network {
    /// Files of certificates, from the folder of the settings.
    certificates: Vec<PathBuf>,
    proxy: ProxySettings,
}

#[derive(Debug)]
struct ProviderSettings {
    name: String,
    /// The component's file or the provider's folder, from the folder of the settings.
    component: PathBuf,
    declaration: Option<PathBuf>,
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
        let parsed = text.parse::<Table>().map_err(anyhow::Error::from).and_then(|table| parse(&table, file));
        parsed.with_context(|| format!("{} cannot be used", file.display()))
    }

    /// Tells the builder everything the file says.
    pub(crate) fn apply(self, mut builder: Builder) -> anyhow::Result<Builder> {
        let folder = self.file.parent().unwrap_or(Path::new("")).to_owned();
        if let Some(store) = &self.store {
            builder = builder.store(store_at(store, &folder)?);
        }
        let certificates = self.network.certificates.into_iter().map(|file| folder.join(file)).collect();
        builder = builder.network(HttpSettings { certificates, proxy: self.network.proxy });
        let place = self.file.display().to_string();
        for environment in self.environments {
            builder = builder.environment(environment, place.clone());
        }
        for ProviderSettings { name, component, declaration, grants } in self.providers {
            let declaration = declaration.map(|file| folder.join(file));
            let files = ProviderFiles::at(&folder.join(component), declaration.as_deref());
            let mut files = files.with_context(|| format!("provider `{name}`"))?;
            files.name = name;
            builder = builder.provider_files(files, grants);
        }
        Ok(builder)
    }
}

fn store_at(store: &str, folder: &Path) -> anyhow::Result<StoreAt> {
    if !SERVER.iter().any(|scheme| store.starts_with(scheme)) {
        return Ok(StoreAt::File(folder.join(store)));
    }
    #[cfg(feature = "postgres")]
    return Ok(StoreAt::Server(store.to_owned()));
    #[cfg(not(feature = "postgres"))]
    anyhow::bail!(
        "`store` names a PostgreSQL server, which this build cannot use; build with `--features postgres`, or name a file"
    )
}

fn parse(table: &Table, file: &Path) -> anyhow::Result<Settings> {
    only(table, "the file itself", &["store", "environments", "providers", "network"])?;
    let mut settings = Settings { file: file.to_owned(), ..Settings::default() };
    settings.store = table.get("store").map(|value| text(value, "`store`")).transpose()?;
    for (name, value) in tables(table, "environments")? {
        let owner = format!("[environments.{name}]");
        let entry = only(inner(value, &owner)?, &owner, &["provider", "config"])?;
        let provider = entry.get("provider").with_context(|| format!("{owner} has no `provider`"))?;
        let provider = text(provider, &format!("`provider` in {owner}"))?;
        let config = match entry.get("config") {
            Some(config) => json(inner(config, &format!("`config` in {owner}"))?)?,
            None => Map::new(),
        };
        settings.environments.push(Environment { name: name.clone(), provider, config });
    }
    for (name, value) in tables(table, "providers")? {
        let owner = format!("[providers.{name}]");
        let entry = only(inner(value, &owner)?, &owner, &["component", "declaration", "grants"])?;
        let path = |key: &str| {
            let said = entry.get(key).map(|value| text(value, &format!("`{key}` in {owner}")));
            said.transpose().map(|text| text.map(PathBuf::from))
        };
        let component = path("component")?.with_context(|| format!("{owner} has no `component`"))?;
        let grants = entry.get("grants").map_or(Ok(Vec::new()), |value| grants(value, &owner))?;
        let (name, declaration) = (name.clone(), path("declaration")?);
        settings.providers.push(ProviderSettings { name, component, declaration, grants });
    }
    if let Some(network) = table.get("network") {
        settings.network = read_network(network)?;
    }
    Ok(settings)
}

fn read_network(value: &Toml) -> anyhow::Result<Network> {
    let owner = "[network]";
    let entry = only(inner(value, owner)?, owner, &["certificates", "proxy"])?;
    let certificates =
        entry.get("certificates").map_or(Ok(Vec::new()), |value| texts(value, "certificates", owner))?;
    let proxy = match entry.get("proxy") {
        None => ProxySettings::default(),
        // The variables of the environment count only for whoever says so.
        Some(Toml::String(word)) if word == "environment" => ProxySettings::of_environment()?,
        Some(Toml::String(_)) => anyhow::bail!("`proxy` in {owner} is \"environment\" or a table"),
        Some(table) => {
            let owner = "[network.proxy]";
            let entry = only(inner(table, owner)?, owner, &["http", "https", "except"])?;
            let proxy = |key: &str| -> anyhow::Result<Option<Proxy>> {
                let Some(value) = entry.get(key) else { return Ok(None) };
                let text = text(value, &format!("`{key}` in {owner}"))?;
                Ok(Some(text.parse().with_context(|| format!("`{key}` in {owner}"))?))
            };
            let except = entry.get("except").map_or(Ok(Vec::new()), |value| texts(value, "except", owner))?;
            ProxySettings { http: proxy("http")?, https: proxy("https")?, except }
        }
    };
    Ok(Network { certificates: certificates.into_iter().map(PathBuf::from).collect(), proxy })
}

fn texts(value: &Toml, key: &str, owner: &str) -> anyhow::Result<Vec<String>> {
    let list = value.as_array().with_context(|| format!("`{key}` in {owner} must be a list"))?;
    list.iter().map(|value| text(value, &format!("each of `{key}` in {owner}"))).collect()
}

/// The table, when every key in it is read by somebody.
fn only<'a>(table: &'a Table, owner: &str, known: &[&str]) -> anyhow::Result<&'a Table> {
    match table.keys().find(|key| !known.contains(&key.as_str())) {
        None => Ok(table),
        Some(key) => anyhow::bail!("`{key}` in {owner} is read by nobody; known there: {}", known.join(", ")),
    }
}

fn tables<'a>(
    table: &'a Table,
    key: &str,
) -> anyhow::Result<impl Iterator<Item = (&'a String, &'a Toml)> + use<'a>> {
    let inside = table.get(key).map(|value| inner(value, &format!("[{key}]"))).transpose()?;
    Ok(inside.into_iter().flatten())
}

fn inner<'a>(value: &'a Toml, what: &str) -> anyhow::Result<&'a Table> {
    value.as_table().with_context(|| format!("{what} must be a table, and is {}", value.type_str()))
}

fn text(value: &Toml, what: &str) -> anyhow::Result<String> {
    let text =
        value.as_str().with_context(|| format!("{what} must be a text, and is {}", value.type_str()))?;
    Ok(text.to_owned())
}

fn grants(value: &Toml, owner: &str) -> anyhow::Result<Vec<Grant>> {
    let list = value.as_array().with_context(|| format!("`grants` in {owner} must be a list"))?;
    let one = |value: &Toml| {
        let name = text(value, &format!("each of `grants` in {owner}"))?;
        name.parse().map_err(|error| anyhow::anyhow!("`grants` in {owner}: {error}"))
    };
    list.iter().map(one).collect()
}

/// A configuration is the provider's own; only times of day have no form in it.
fn json(table: &Table) -> anyhow::Result<Map<String, Value>> {
    match serde_json::to_value(table)? {
        Value::Object(config) => Ok(config),
        _ => anyhow::bail!("a configuration is a table"),
    }
}
