//! `leasehold lease`: leases by hand.

mod acquire;
mod end;
mod exec;
mod export;
pub(crate) mod json;
mod list;
mod show;

use crate::host::Host;
use clap::{Args, Subcommand};
use leasehold::LeaseId;
use std::process::ExitCode;

/// Acquires leases, works in them, looks at them and ends them
///
/// A lease acquired here belongs to no process: it stays until it is released, or its lifetime is over.
#[derive(Args)]
pub(crate) struct Lease {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    host: Host,
}

#[derive(Subcommand)]
enum Verb {
    Acquire(acquire::Acquire),
    Ls(list::List),
    Show(show::Show),
    Exec(exec::Exec),
    /// Ends the use of a lease: by its policy the sandbox is deleted or kept
    Release(end::End),
    /// Stops a sandbox and keeps its files, whatever its policy says
    ///
    /// `leasehold lease export` brings the files out of it. Refused when the provider cannot stop without
    /// deleting.
    Stop(end::End),
    /// Deletes a sandbox and its files, whatever its policy says
    Destroy(end::End),
    Export(export::Export),
}

impl Lease {
    /// Runs the command. Those that run something in a sandbox have exit codes of their own.
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let Lease { verb, host } = self;
        match verb {
            Verb::Exec(exec) => exec.run(&host),
            verb => crate::host::complete(async {
                let runtime = host.open().await?;
                let code = match verb {
                    Verb::Acquire(acquire) => acquire.run(&runtime).await?,
                    Verb::Ls(list) => list.run(&runtime).await?,
                    Verb::Show(show) => show.run(&runtime).await?,
                    Verb::Release(end) => end.release(&runtime).await?,
                    Verb::Stop(end) => end.stop(&runtime).await?,
                    Verb::Destroy(end) => end.destroy(&runtime).await?,
                    Verb::Export(export) => export.run(&runtime).await?,
                    Verb::Exec(_) => ExitCode::SUCCESS,
                };
                runtime.idle().await;
                Ok(code)
            }),
        }
    }
}

/// Reads the id of a lease.
pub(crate) fn id(text: &str) -> Result<LeaseId, String> {
    LeaseId::parse(text).ok_or_else(|| {
        format!("`{text}` is no id of a lease; type `leasehold lease ls` to see which there are")
    })
}
