//! `leasehold audit`: what providers reached, and what they were refused.

use crate::host::{Format, Host};
use crate::table::{bytes, columns, print};
use crate::when;
use clap::Args;
use leasehold::AuditFilter;
use std::process::ExitCode;

/// Lists what providers reached and what they were refused, the newest first
///
/// Every request, connection, and write of state is one line: who, for whom, to where, how much, and why it
/// was refused when it was.
#[derive(Args)]
pub(crate) struct Audit {
    /// Only of this provider.
    #[arg(long)]
    provider: Option<String>,
    /// Only of this environment.
    #[arg(long)]
    environment: Option<String>,
    /// Only for this tenant.
    #[arg(long)]
    tenant: Option<String>,
    /// Only what was refused.
    #[arg(long)]
    denied: bool,
    /// At most this many.
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: u32,
    #[command(flatten)]
    format: Format,
    #[command(flatten)]
    host: Host,
}

impl Audit {
    pub(crate) async fn run(self) -> anyhow::Result<ExitCode> {
        let runtime = self.host.open().await?;
        let Audit { provider, environment, tenant, .. } = self;
        // What is picked here must not be cut off before.
        let most = if self.denied { None } else { Some(self.limit) };
        let mut found = runtime.audit(AuditFilter { provider, environment, tenant, limit: most }).await?;
        if self.denied {
            found.retain(|entry| entry.verdict == "denied");
            found.truncate(self.limit as usize);
        }
        if self.format.json {
            for entry in &found {
                print(&format!("{}\n", serde_json::to_string(entry)?))?;
            }
            return Ok(ExitCode::SUCCESS);
        }
        let rows = found.into_iter().map(|entry| {
            vec![
                when::at(entry.at_ms),
                entry.verdict,
                entry.provider,
                entry.environment.unwrap_or_default(),
                entry.tenant.unwrap_or_default(),
                entry.kind,
                entry.bytes.map(bytes).unwrap_or_default(),
                entry.what,
            ]
        });
        let headings = ["WHEN", "VERDICT", "PROVIDER", "ENVIRONMENT", "TENANT", "KIND", "MOVED", "WHAT"];
        print(&columns(headings.map(String::from).to_vec(), rows.collect()))?;
        Ok(ExitCode::SUCCESS)
    }
}
