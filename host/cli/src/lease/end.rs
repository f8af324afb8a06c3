//! `leasehold lease release`, `stop` and `destroy`: three ways in which a use ends.

use super::{id, json};
use crate::host::Format;
use crate::table::print;
use clap::Args;
use leasehold::{LeaseId, Leasehold, Released, Releasing};
use std::process::ExitCode;

#[derive(Args)]
pub(super) struct End {
    /// The lease.
    #[arg(value_parser = id)]
    id: LeaseId,
    #[command(flatten)]
    format: Format,
}

impl End {
    /// What has ended already cannot end in another way.
    async fn still_there(&self, runtime: &Leasehold) -> anyhow::Result<()> {
        let lease = runtime.leases().get(&self.id).await?;
        let became = lease.disposition.map_or(lease.state.word(), |disposition| disposition.word());
        anyhow::ensure!(
            !lease.state.is_final(),
            "lease {id} has ended already, it is {became}; `leasehold lease show {id}` says what happened to it",
            id = self.id,
        );
        Ok(())
    }

    pub(super) async fn release(self, runtime: &Leasehold) -> anyhow::Result<ExitCode> {
        self.still_there(runtime).await?;
        let how = Releasing { failed: false, cancel_active_work: true };
        let released = runtime.leases().release(&self.id, how).await?;
        self.told(&released)
    }

    pub(super) async fn stop(self, runtime: &Leasehold) -> anyhow::Result<ExitCode> {
        self.still_there(runtime).await?;
        let released = runtime.leases().stop(&self.id, "asked_for").await?;
        self.told(&released)
    }

    pub(super) async fn destroy(self, runtime: &Leasehold) -> anyhow::Result<ExitCode> {
        self.still_there(runtime).await?;
        let released = runtime.leases().destroy(&self.id, "asked_for").await?;
        self.told(&released)
    }

    fn told(&self, released: &Released) -> anyhow::Result<ExitCode> {
        if self.format.json {
            print(&format!("{}\n", json::lease(&released.lease)))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
