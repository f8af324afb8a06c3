//! `leasehold lease ls`.

use super::json;
use crate::host::Format;
use crate::table::{columns, print};
use crate::when;
use clap::Args;
use leasehold::{Filter, Leasehold, Outline, State};
use serde_json::Value;
use std::process::ExitCode;

/// Lists leases, oldest first
///
/// Those that have ended are left out.
#[derive(Args)]
pub(super) struct List {
    /// Only those that could not be cleaned up and wait for a person.
    #[arg(long)]
    stuck: bool,
    /// Those that have ended as well.
    #[arg(long)]
    all: bool,
    /// Only those of this environment.
    #[arg(long, value_name = "NAME")]
    environment: Option<String>,
    #[command(flatten)]
    format: Format,
}

impl List {
    pub(super) async fn run(self, runtime: &Leasehold) -> anyhow::Result<ExitCode> {
        let states = match self.all {
            true => Vec::new(),
            false => State::ALL.into_iter().filter(|state| !state.is_final()).collect(),
        };
        let (environment, stuck) = (self.environment, self.stuck);
        let filter = Filter { states, environment, stuck, ..Filter::default() };
        let leases = runtime.leases();
        print(&match self.format.json {
            true => {
                format!("{}\n", Value::Array(leases.list(filter).await?.iter().map(json::lease).collect()))
            }
            false => text(&leases.store().outlines(&filter).await?, self.stuck),
        })?;
        Ok(ExitCode::SUCCESS)
    }
}

fn text(leases: &[Outline], stuck: bool) -> String {
    let headings = match stuck {
        true => ["LEASE", "ENVIRONMENT", "PROVIDER", "TRIES", "AGE", "LAST ERROR"],
        false => ["LEASE", "STATE", "ENVIRONMENT", "PROVIDER", "HELD BY", "AGE"],
    };
    let row = |lease: &Outline| {
        let age = when::ago(lease.created_ms);
        let (environment, provider) = (lease.environment.clone(), lease.provider.clone());
        let id = lease.id.as_str().to_owned();
        match stuck {
            true => {
                let error = lease.last_error.clone().unwrap_or_default();
                vec![id, environment, provider, lease.attempts.to_string(), age, error]
            }
            false => vec![id, state(lease), environment, provider, holder(lease), age],
        }
    };
    columns(headings.map(String::from).to_vec(), leases.iter().map(row).collect())
}

fn state(lease: &Outline) -> String {
    match (lease.state, lease.escalated) {
        (State::PendingCleanup, true) => "stuck".into(),
        (State::Retained, _) => "kept".into(),
        (state, _) => state.word().replace('_', " "),
    }
}

/// Who holds it: a person, or a process.
fn holder(lease: &Outline) -> String {
    match &lease.owner {
        _ if lease.held => "you".into(),
        Some(owner) => format!("process {}", owner.pid),
        None => String::new(),
    }
}
