//! `leasehold env`: configured providers.

mod add;
mod list;
mod probe;

use crate::host::{Format, Host};
use crate::table::print;
use clap::{Args, Subcommand};
use serde_json::json as object;
use std::process::ExitCode;

/// Adds, lists, probes and removes environments
///
/// An environment is a provider and its configuration under a name. It is written into leasehold.toml or
/// added here, not both.
#[derive(Args)]
pub(crate) struct Env {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    host: Host,
}

#[derive(Subcommand)]
enum Verb {
    /// Adds an environment to the store
    Add(add::Add),
    /// Lists environments and where they are written down
    Ls(Format),
    /// Asks the provider whether a lease could be acquired now
    ///
    /// Exit code 1 when not.
    Probe(Named),
    /// Removes an environment from the store
    ///
    /// Refused while it has leases that are kept or not cleaned up.
    Rm(Named),
}

#[derive(Args)]
struct Named {
    /// The environment's name.
    name: String,
    #[command(flatten)]
    format: Format,
}

impl Env {
    pub(crate) async fn run(self) -> anyhow::Result<ExitCode> {
        let runtime = self.host.open().await?;
        match self.verb {
            Verb::Add(add) => add.run(&runtime).await,
            Verb::Ls(format) => list::list(&runtime, &format).await,
            Verb::Probe(named) => probe::probe(&runtime, &named).await,
            Verb::Rm(named) => {
                runtime.remove_environment(&named.name).await?;
                if named.format.json {
                    print(&format!("{}\n", object!({"removed": named.name})))?;
                }
                Ok(ExitCode::SUCCESS)
            }
        }
    }
}
