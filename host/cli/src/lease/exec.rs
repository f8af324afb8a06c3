//! `leasehold lease exec`: a command in a lease, with this process's own streams.

use super::id;
use crate::host::{Host, complete};
use crate::run::cancel::Cancel;
use crate::run::ending::{self, Ending};
use crate::run::{duration, streams, text, variable};
use clap::Args;
use leasehold::{Command, LeaseId};
use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

/// Runs a command in a lease
///
/// The exit code is the command's; 124 after a timeout, 127 when the program is not there, 126 when it
/// cannot be executed, 128 plus the signal when a signal ended it, 125 when Leasehold itself failed.
#[derive(Args)]
pub(super) struct Exec {
    /// The lease.
    #[arg(value_parser = id)]
    id: LeaseId,
    /// Directory to run it in [default: the workspace].
    #[arg(long, value_name = "DIR")]
    cwd: Option<String>,
    /// Variable for the command.
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = variable)]
    env: Vec<(String, String)>,
    /// Time the command may take, for example 90s, 10m, 2h [default: 4h].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    timeout: Option<Duration>,
    /// The command and its arguments.
    #[arg(required = true, last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl Exec {
    pub(super) fn run(self, host: &Host) -> anyhow::Result<ExitCode> {
        Ok(match complete(self.execute(host)) {
            Ok(ending) => ending.code(),
            Err(error) => {
                let _ = writeln!(std::io::stderr().lock(), "leasehold: {}", crate::told(&error));
                ExitCode::from(ending::OURS)
            }
        })
    }

    async fn execute(self, host: &Host) -> anyhow::Result<Ending> {
        let argv = self.command.iter().map(text).collect::<anyhow::Result<Vec<_>>>()?;
        let runtime = host.open().await?;
        let session = runtime.session(&self.id).await?;
        let cancel = Cancel::on_signals()?;
        let command = Command { argv, cwd: self.cwd, env: self.env, timeout: self.timeout };
        let (streams, output) = streams::ours();
        let executed = session.execute(command, streams, cancel.token.clone()).await;
        output.finished().await;
        runtime.idle().await;
        ending::of(executed, &cancel)
    }
}
