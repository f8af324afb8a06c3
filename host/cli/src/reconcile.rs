//! `leasehold reconcile`: ends what hosts that died have left.

use crate::home;
use crate::settings::Settings;
use crate::table::print;
use clap::Args;
use leasehold::{Lease, Leasehold};
use std::path::PathBuf;
use std::process::ExitCode;

/// Ends the leases and jails that processes which died have left
///
/// Says nothing when nothing was left. Exit code 1 when something could not be ended.
#[derive(Args)]
pub(crate) struct Reconcile {
    /// Settings file [default: leasehold.toml, when it is there].
    #[arg(long, value_name = "FILE")]
    settings: Option<PathBuf>,
}

impl Reconcile {
    /// Reconciles once.
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let report = runtime.block_on(async {
            let settings = Settings::read(self.settings.as_deref())?;
            let runtime = settings.install(Leasehold::builder(home::state()?))?.build().await?;
            let report = runtime.reconcile().await?;
            runtime.idle().await;
            anyhow::Ok(report)
        })?;
        let mut text = String::new();
        let mut say = |what: &str, lease: &Lease, why: &str| {
            text.push_str(&format!("{what} {} ({}){why}\n", lease.id, lease.environment));
        };
        report.settled.iter().for_each(|lease| say("ended", lease, ""));
        let why =
            |lease: &Lease| format!(": {}", lease.last_error.as_deref().unwrap_or("no reason was recorded"));
        report.unsettled.iter().for_each(|lease| say("not ended", lease, &why(lease)));
        report.put_off.iter().for_each(|(lease, unready)| say("put off", lease, &format!(": {unready}")));
        report.stuck.iter().for_each(|lease| say("stuck", lease, &why(lease)));
        report.out_of_sight.iter().for_each(|lease| say("out of sight", lease, ""));
        report
            .store_failed
            .iter()
            .for_each(|(id, error)| text.push_str(&format!("not written {id}: {error}\n")));
        print(&text)?;
        let clean = report.unsettled.is_empty() && report.stuck.is_empty() && report.store_failed.is_empty();
        Ok(if clean { ExitCode::SUCCESS } else { ExitCode::from(1) })
    }
}
