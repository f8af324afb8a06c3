//! `leasehold lease show`: one lease and everything that happened to it.

use super::{id, json};
use crate::host::Format;
use crate::table::{bytes, grouped, print, section};
use crate::when;
use clap::Args;
use leasehold::{Event, Lease, LeaseId, Leasehold};
use serde_json::Value;
use std::process::ExitCode;
use std::time::Duration;

/// Shows a lease and its history, with times, reasons and what each call used
#[derive(Args)]
pub(super) struct Show {
    /// The lease.
    #[arg(value_parser = id)]
    id: LeaseId,
    #[command(flatten)]
    format: Format,
}

impl Show {
    pub(super) async fn run(self, runtime: &Leasehold) -> anyhow::Result<ExitCode> {
        let lease = runtime.leases().get(&self.id).await?;
        let history = runtime.leases().history(&self.id).await?;
        print(&match self.format.json {
            true => {
                let mut value = json::lease(&lease);
                value["history"] = Value::Array(history.iter().map(json::event).collect());
                format!("{value}\n")
            }
            false => text(&lease, &history),
        })?;
        Ok(ExitCode::SUCCESS)
    }
}

fn text(lease: &Lease, history: &[Event]) -> String {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut row = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            rows.push(vec![name.to_owned(), value]);
        }
    };
    let pins = &lease.pins;
    row("state", Some(lease.state.word().replace('_', " ")));
    row("environment", Some(lease.environment.clone()));
    row("provider", Some(format!("{}:{}", pins.provider, pins.driver)));
    row("component", Some(pins.digest.clone()));
    row("sandbox", lease.allocation.as_ref().map(|allocation| allocation.id.clone()));
    row("policy", Some(lease.policy.word().replace('_', " ")));
    row("run", lease.run.clone());
    row("holds work", lease.unexported.then(|| "not brought back yet".into()));
    row("acquired", lease.acquired_ms.map(when::at));
    row("ends", lease.ends_ms.map(when::at));
    row("ended", lease.released_ms.map(when::at));
    row("became", lease.disposition.map(|disposition| disposition.word().to_owned()));
    row("tries", (lease.attempts > 0).then(|| lease.attempts.to_string()));
    row("last error", lease.last_error.clone());
    let events: Vec<_> = history.iter().map(event).collect();
    format!("{}\n{}", section(lease.id.as_str(), &rows), section("history", &events))
}

fn event(event: &Event) -> Vec<String> {
    let (from, to) = (event.from.map(|state| state.word()), event.to.word());
    let change = match from {
        Some(from) if from == to => to.to_owned(),
        Some(from) => format!("{from} → {to}"),
        None => to.to_owned(),
    };
    let used = event.bill.as_deref().map(bill).unwrap_or_default();
    vec![when::at(event.at_ms), change.replace('_', " "), event.reason.clone(), used]
}

/// What a call used, in a few words.
fn bill(text: &str) -> String {
    let value: Value = serde_json::from_str(text).unwrap_or_default();
    let number = |key: &str| value.get(key).and_then(Value::as_u64).unwrap_or(0);
    let wall = Duration::from_micros(number("wallUs"));
    let mut used = vec![
        format!("{:.1} ms", wall.as_secs_f64() * 1e3),
        format!("{} fuel", grouped(number("fuel"))),
        bytes(number("peakMemoryBytes")),
    ];
    for (key, word) in [("bytesIn", "in"), ("bytesOut", "out")] {
        if number(key) > 0 {
            used.push(format!("{} {word}", bytes(number(key))));
        }
    }
    used.join(", ")
}
