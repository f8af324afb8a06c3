//! Probing an environment: what its provider finds is the answer, whatever it is.

use super::Named;
use crate::table::{columns, print};
use leasehold::{Leasehold, Probed};
use serde_json::{Value, json};
use std::process::ExitCode;

pub(super) async fn probe(runtime: &Leasehold, named: &Named) -> anyhow::Result<ExitCode> {
    let environment = runtime.environment(&named.name).await?;
    let probed = environment.probe(runtime).await?;
    print(&match named.format.json {
        true => format!("{}\n", as_json(&probed)),
        false => as_text(&probed),
    })?;
    Ok(if probed.ok { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn as_json(probed: &Probed) -> Value {
    let diagnostics: Vec<_> = probed
        .diagnostics
        .iter()
        .map(|it| {
            json!({"severity": it.severity, "message": it.message, "code": it.code, "details": it.details})
        })
        .collect();
    json!({"ok": probed.ok, "summary": probed.summary, "diagnostics": diagnostics})
}

fn as_text(probed: &Probed) -> String {
    let word = if probed.ok { "ready" } else { "not ready" };
    let summary = probed.summary.as_ref().map_or_else(String::new, |summary| format!(": {summary}"));
    let mut text = format!("{}\n", leasehold::contract::text::plain(&format!("{word}{summary}"), 4_096));
    let rows = probed
        .diagnostics
        .iter()
        .map(|it| vec![it.severity.to_owned(), it.code.clone().unwrap_or_default(), it.message.clone()]);
    text.push_str(&columns(Vec::new(), rows.collect()));
    text
}
