//! `leasehold reconcile`: ends what hosts that died have left.

mod report;

use crate::host::{Format, Host, complete};
use crate::run::{cancel::Cancel, duration};
use crate::table::print;
use clap::Args;
use leasehold::{Leasehold, Report};
use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

/// Ends the leases and jails that processes which died have left
///
/// Says nothing when nothing was left. Exit code 1 when something could not be ended. With --watch it goes on
/// until it is interrupted, and exits with 0.
#[derive(Args)]
pub(crate) struct Reconcile {
    /// Go on, and end what is left later as well.
    #[arg(long)]
    watch: bool,
    /// Pause between two looks while watching.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "30s", requires = "watch")]
    every: Duration,
    #[command(flatten)]
    format: Format,
    #[command(flatten)]
    host: Host,
}

impl Reconcile {
    /// Reconciles once, or until somebody asks for an end.
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        complete(async {
            let runtime = self.host.open().await?;
            match self.watch {
                true => self.watch(&runtime).await,
                false => {
                    let report = runtime.reconcile().await?;
                    runtime.idle().await;
                    self.tell(&report)?;
                    Ok(if report::is_clean(&report) { ExitCode::SUCCESS } else { ExitCode::from(1) })
                }
            }
        })
    }

    async fn watch(&self, runtime: &Leasehold) -> anyhow::Result<ExitCode> {
        let end = Cancel::on_signals()?;
        loop {
            // What is under way is finished; only the pause is cut short.
            match runtime.reconcile().await {
                Ok(report) => self.tell(&report)?,
                // A store that cannot be reached now may be there the next time.
                Err(error) => {
                    let _ = writeln!(std::io::stderr().lock(), "leasehold: {}", crate::told(&error.into()));
                }
            }
            tokio::select! {
                () = tokio::time::sleep(self.every) => {}
                () = end.token.cancelled() => break,
            }
        }
        runtime.idle().await;
        Ok(ExitCode::SUCCESS)
    }

    fn tell(&self, report: &Report) -> anyhow::Result<()> {
        print(&match self.format.json {
            true => format!("{}\n", report::json(report)),
            false => report::text(report),
        })
    }
}
