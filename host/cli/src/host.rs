//! The runtime as the command line uses it.

use crate::home;
use crate::settings::Settings;
use clap::Args;
use leasehold::{Allocation, Builder, Leasehold, OwnMachine};
use std::path::PathBuf;
use std::sync::Arc;

/// Where a command finds what it works on.
#[derive(Args)]
pub(crate) struct Host {
    /// Settings file [default: leasehold.toml, when it is there].
    #[arg(long, value_name = "FILE", global = true)]
    settings: Option<PathBuf>,
}

/// How a command answers.
#[derive(Args)]
pub(crate) struct Format {
    /// Answer in JSON, for programs.
    #[arg(long)]
    pub(crate) json: bool,
}

impl Host {
    /// Opens the runtime. Nothing is loaded until it is used.
    pub(crate) async fn open(&self) -> anyhow::Result<Leasehold> {
        self.open_with(|builder| builder).await
    }

    /// The same with something of the caller's own.
    pub(crate) async fn open_with(&self, with: impl FnOnce(Builder) -> Builder) -> anyhow::Result<Leasehold> {
        // A handful of calls does not repay a pool.
        // A person's own settings may name what is on their own machine.
        let builder =
            Leasehold::builder(home::state()?).allocation(Allocation::OnDemand).secrets(Arc::new(OwnMachine));
        let settings = Settings::read(self.settings.as_deref())?;
        Ok(settings.apply(with(builder))?.build().await?)
    }
}

/// Runs a command to its end, and lets what it began in the background end too.
pub(crate) fn complete<T>(command: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ended = runtime.block_on(command);
    // A thread that still waits for standard input would hold the process up.
    runtime.shutdown_background();
    ended
}
