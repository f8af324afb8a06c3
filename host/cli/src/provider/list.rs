//! The installed providers, in columns or as JSON.

use crate::host::Format;
use crate::table::print;
use crate::when;
use leasehold::{Leasehold, ProviderRecord};
use serde_json::{Value, json as object};
use std::process::ExitCode;

/// Characters of a digest that are shown; as many as tell components of one provider apart.
const DIGEST_SHOWN: usize = 12;

pub(super) async fn list(runtime: &Leasehold, format: &Format) -> anyhow::Result<ExitCode> {
    let providers = runtime.providers().await?;
    if format.json {
        let all: Vec<_> = providers.iter().map(json).collect();
        print(&format!("{}\n", Value::Array(all)))?;
        return Ok(ExitCode::SUCCESS);
    }
    let rows: Vec<_> = providers.iter().map(row).collect();
    let headings = ["KEY", "VERSION", "DRIVERS", "STATUS", "COMPONENT", "GRANTS"].map(String::from).to_vec();
    print(&crate::table::columns(headings, rows))?;
    Ok(ExitCode::SUCCESS)
}

fn row(record: &ProviderRecord) -> Vec<String> {
    vec![
        record.key.clone(),
        record.version.clone(),
        drivers(record).join(", "),
        record.status.to_string(),
        record.digest.chars().take(DIGEST_SHOWN).collect(),
        grants(record).join(", "),
    ]
}

/// A provider as programs read it.
pub(super) fn json(record: &ProviderRecord) -> Value {
    object!({
        "id": record.id,
        "key": record.key,
        "version": record.version,
        "drivers": drivers(record),
        "status": record.status.word(),
        "digest": record.digest,
        "grants": grants(record),
        "order": record.position,
        "source": record.source,
        "installedAt": when::at(record.installed_ms),
        "updatedAt": when::at(record.updated_ms),
    })
}

fn drivers(record: &ProviderRecord) -> Vec<String> {
    let drivers = record.manifest().map(|manifest| manifest.environment_drivers).unwrap_or_default();
    drivers.into_iter().map(|driver| driver.driver_key).collect()
}

fn grants(record: &ProviderRecord) -> Vec<String> {
    serde_json::from_str(&record.grants).unwrap_or_default()
}
