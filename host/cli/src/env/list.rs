//! The environments, in columns or as JSON.

use crate::host::Format;
use crate::table::{columns, print};
use leasehold::{Environment, Leasehold};
use serde_json::{Value, json as object};
use std::process::ExitCode;

pub(super) async fn list(runtime: &Leasehold, format: &Format) -> anyhow::Result<ExitCode> {
    let all = runtime.environments().await?;
    if format.json {
        let all = all.iter().map(|(environment, place)| json(environment, &place.to_string())).collect();
        print(&format!("{}\n", Value::Array(all)))?;
        return Ok(ExitCode::SUCCESS);
    }
    let rows = all.into_iter().map(|(environment, place)| {
        let config = match environment.config.is_empty() {
            true => String::new(),
            false => Value::Object(environment.config).to_string(),
        };
        vec![environment.name, environment.provider, place.to_string(), config]
    });
    let headings = ["NAME", "PROVIDER", "WRITTEN IN", "CONFIGURATION"].map(String::from).to_vec();
    print(&columns(headings, rows.collect()))?;
    Ok(ExitCode::SUCCESS)
}

/// An environment as programs read it.
pub(super) fn json(environment: &Environment, place: &str) -> Value {
    let Environment { name, provider, config } = environment;
    object!({"name": name, "provider": provider, "config": config, "place": place})
}
