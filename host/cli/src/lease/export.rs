//! `leasehold lease export`: the files of a lease, also of one that was stopped.

use super::id;
use crate::host::Format;
use crate::table::print;
use anyhow::Context;
use clap::Args;
use leasehold::{LeaseId, Leasehold};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Brings the files of a sandbox into a folder
///
/// Also from a sandbox that was stopped with its files kept: it is started for it and stopped again. The
/// folder is made when it is not there, and must be empty.
#[derive(Args)]
pub(super) struct Export {
    /// The lease.
    #[arg(value_parser = id)]
    id: LeaseId,
    /// Folder to bring them into.
    dir: PathBuf,
    #[command(flatten)]
    format: Format,
}

impl Export {
    pub(super) async fn run(self, runtime: &Leasehold) -> anyhow::Result<ExitCode> {
        let made = empty(&self.dir)?;
        let exported = runtime.export(&self.id, &self.dir).await;
        if exported.is_err() && made {
            // Made for nothing; what is in it, if anything is, stays.
            let _ = std::fs::remove_dir(&self.dir);
        }
        let report = exported?;
        if self.format.json {
            let value = serde_json::json!({"lease": self.id.as_str(), "entries": report.added.len()});
            print(&format!("{value}\n"))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Makes the folder, or sees that it is empty: whether it was made.
fn empty(dir: &Path) -> anyhow::Result<bool> {
    match std::fs::read_dir(dir) {
        Ok(mut entries) => {
            let shown = dir.display();
            anyhow::ensure!(
                entries.next().is_none(),
                "{shown} is not empty; name a folder that is, or a new one"
            );
            Ok(false)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            std::fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
            Ok(true)
        }
        Err(error) => Err(error).with_context(|| format!("cannot use {}", dir.display())),
    }
}
