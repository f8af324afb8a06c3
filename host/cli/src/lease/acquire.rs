//! `leasehold lease acquire`.

use super::json;
use crate::host::Format;
use crate::run::duration;
use crate::table::print;
use clap::Args;
use leasehold::{Environment, For, Leasehold, Terms};
use std::process::ExitCode;
use std::time::Duration;

/// Leases a sandbox and prints the id of the lease
#[derive(Args)]
pub(super) struct Acquire {
    /// Provider to lease from.
    #[arg(long, value_name = "NAME", default_value = leasehold::LOCAL_PROVIDER, conflicts_with = "environment")]
    provider: String,
    /// Environment to lease from.
    #[arg(long, value_name = "NAME")]
    environment: Option<String>,
    /// How long it may be held in all, for example 30m or 8h [default: 24h].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    lifetime: Option<Duration>,
    #[command(flatten)]
    format: Format,
}

impl Acquire {
    pub(super) async fn run(self, runtime: &Leasehold) -> anyhow::Result<ExitCode> {
        let environment = match &self.environment {
            Some(name) => runtime.environment(name).await?,
            None => Environment::of(&self.provider),
        };
        // What a person does in it is not lost because the person is late.
        let terms = Terms { held: true, preserve: true, lifetime: self.lifetime, ..Terms::default() };
        let session = environment.acquire_as(runtime, For::default(), terms).await?;
        print(&match self.format.json {
            true => format!("{}\n", json::lease(session.lease())),
            false => format!("{}\n", session.id()),
        })?;
        Ok(ExitCode::SUCCESS)
    }
}
