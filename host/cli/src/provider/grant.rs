//! What providers are granted.

use crate::host::Format;
use crate::table::{columns, print};
use clap::Args;
use leasehold::{Grant, Granted, Leasehold, Permission};
use serde_json::{Value, json};
use std::io::Write as _;
use std::process::ExitCode;

/// Grants to add.
#[derive(Args)]
pub(super) struct Granting {
    /// The provider's key.
    key: String,
    /// What it may have: time, random, jail, state, http=https://HOST, tcp=NAME=HOST:PORT,
    /// unix-http=NAME=/PATH or secrets.reveal=FIELD.
    #[arg(required = true, value_name = "GRANT")]
    grants: Vec<Grant>,
    #[command(flatten)]
    format: Format,
}

/// Grants to take back.
#[derive(Args)]
pub(super) struct Revoking {
    /// The provider's key.
    key: String,
    /// A grant as `leasehold provider grants` shows it, or a permission alone for all of it.
    #[arg(required = true, value_name = "GRANT")]
    grants: Vec<String>,
    #[command(flatten)]
    format: Format,
}

pub(super) async fn grant(runtime: &Leasehold, granting: Granting) -> anyhow::Result<ExitCode> {
    let granted = runtime.grant(&granting.key, granting.grants.clone()).await?;
    if granting.format.json {
        return shown(&granted);
    }
    for (grant, used) in &granted.grants {
        if !used && granting.grants.contains(grant) {
            note(&format!("nothing comes of `{grant}`: {}", unused(&granted, grant)));
        }
    }
    refused(&granted);
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn revoke(runtime: &Leasehold, revoking: Revoking) -> anyhow::Result<ExitCode> {
    let before = runtime.grants(&revoking.key).await?;
    let meant = |grant: &Grant, text: &str| grant.to_string() == text || grant.permission().name() == text;
    for text in &revoking.grants {
        // The same grant may be written in another way than it is shown.
        let read = text.parse::<Grant>().ok();
        let found = before.grants.iter().any(|(grant, _)| meant(grant, text) || read.as_ref() == Some(grant));
        anyhow::ensure!(
            found,
            "`{}` is not granted `{text}`; `leasehold provider grants {}` shows what it is granted",
            revoking.key,
            revoking.key
        );
    }
    let read: Vec<_> = revoking.grants.iter().filter_map(|text| text.parse::<Grant>().ok()).collect();
    let taken = |grant: &Grant| read.contains(grant) || revoking.grants.iter().any(|text| meant(grant, text));
    let granted = runtime.revoke(&revoking.key, taken).await?;
    if revoking.format.json {
        return shown(&granted);
    }
    refused(&granted);
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn grants(runtime: &Leasehold, key: &str, format: &Format) -> anyhow::Result<ExitCode> {
    let granted = runtime.grants(key).await?;
    if format.json {
        return shown(&granted);
    }
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (grant, used) in &granted.grants {
        let what = if *used { "granted".to_owned() } else { format!("granted, {}", unused(&granted, grant)) };
        rows.push(vec![grant.to_string(), what]);
    }
    for ask in &granted.declared {
        if !granted.grants.iter().any(|(grant, _)| grant.permission() == ask.permission()) {
            rows.push(vec![ask.to_string(), "declared, not granted".into()]);
        }
    }
    print(&columns(vec!["GRANT".into(), "STANDING".into()], rows))?;
    refused(&granted);
    Ok(ExitCode::SUCCESS)
}

fn unused(granted: &Granted, grant: &Grant) -> String {
    let permission = grant.permission();
    match granted.declared.iter().any(|ask| ask.permission() == permission) {
        false => format!("its declaration does not ask for `{permission}`"),
        true if permission == Permission::RevealSecret => "its declaration asks for another field".into(),
        true => "its declaration asks for something else, or its component does not import it".into(),
    }
}

fn shown(granted: &Granted) -> anyhow::Result<ExitCode> {
    let grants = granted.grants.iter().map(|(grant, used)| json!({"grant": grant, "used": used}));
    let grants: Vec<Value> = grants.collect();
    let output = json!({
        "key": granted.key, "grants": grants, "declared": granted.declared, "refused": granted.refused,
    });
    print(&format!("{output}\n"))?;
    Ok(ExitCode::SUCCESS)
}

fn refused(granted: &Granted) {
    if let Some(reason) = &granted.refused {
        note(&format!("`{}` cannot be used with what it is granted: {reason}", granted.key));
    }
}

fn note(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "leasehold: {text}");
}
