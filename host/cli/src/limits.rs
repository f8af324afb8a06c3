//! `leasehold limits`: every limit, what is in force, and why.

use crate::table::{bytes, grouped, print, section};
use clap::Args;
use leasehold_engine::limits::{ENGINE_LIMITS, LIMITS, LimitInfo};
use leasehold_engine::{Allocation, Engine, EngineOptions};
use leasehold_sync::SYNC_LIMITS;
use serde_json::json;
use std::process::ExitCode;

/// Shows every limit of a call, of the engine and of transfers, what is in force, and why
#[derive(Args)]
pub(crate) struct Limits {
    /// Print JSON for machines.
    #[arg(long)]
    json: bool,
}

impl Limits {
    /// Prints the tables. Fails when no engine runs on this machine.
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let allocation = match Engine::new(EngineOptions::default())?.allocation() {
            Allocation::Pooled => "pooled",
            Allocation::OnDemand => "on-demand",
        };
        print(&match self.json {
            true => {
                let transfer: Vec<_> = SYNC_LIMITS
                    .iter()
                    .map(|limit| {
                        json!({
                            "name": limit.name, "unit": limit.unit, "value": limit.value, "whenHit": limit.when_hit,
                        })
                    })
                    .collect();
                let all = json!({
                    "call": LIMITS, "engine": ENGINE_LIMITS, "transfer": transfer, "allocation": allocation,
                });
                format!("{all:#}\n")
            }
            false => text(allocation),
        })?;
        Ok(ExitCode::SUCCESS)
    }
}

fn text(allocation: &str) -> String {
    let mut text = String::from("limits of a call\n");
    for info in LIMITS {
        let LimitInfo { name, unit, default, ceiling, reason, when_hit, .. } = *info;
        let (value, ceiling) = (amount(default, unit), amount(ceiling, unit));
        text.push_str(&format!(
            "\n  {name}  {value} (at most {ceiling})\n    {reason}\n    Hit: {when_hit}.\n"
        ));
    }
    let mut rows = vec![vec!["allocation".to_owned(), allocation.to_owned()]];
    rows.extend(ENGINE_LIMITS.iter().map(|fixed| {
        vec![fixed.name.to_owned(), amount(fixed.value, fixed.unit), format!("Hit: {}.", fixed.when_hit)]
    }));
    text.push('\n');
    text.push_str(&section("limits of the engine", &rows));
    let rows: Vec<_> = SYNC_LIMITS
        .iter()
        .map(|limit| {
            vec![limit.name.to_owned(), amount(limit.value, limit.unit), format!("Hit: {}.", limit.when_hit)]
        })
        .collect();
    text.push('\n');
    text.push_str(&section("limits of files that come out of a sandbox", &rows));
    text
}

fn amount(value: u64, unit: &str) -> String {
    if unit == "bytes" { bytes(value) } else { format!("{} {unit}", grouped(value)) }
}
