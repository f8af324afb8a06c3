//! Installing, upgrading, removing, taking out of use.

use super::{Named, Source};
use crate::provider::list::json;
use crate::table::print;
use anyhow::Context;
use leasehold::{Change, Leasehold, ProviderFiles};
use serde_json::json as object;
use std::io::Write as _;
use std::process::ExitCode;

pub(super) async fn install(runtime: &Leasehold, source: Source) -> anyhow::Result<ExitCode> {
    let (files, grants) = files(&source)?;
    let change = runtime.install(files, grants).await?;
    told(&change, source.format.json)
}

pub(super) async fn upgrade(runtime: &Leasehold, source: Source) -> anyhow::Result<ExitCode> {
    let (files, grants) = files(&source)?;
    let change = runtime.upgrade(files, grants).await?;
    told(&change, source.format.json)
}

pub(super) async fn remove(runtime: &Leasehold, named: Named) -> anyhow::Result<ExitCode> {
    let removed = runtime.remove(&named.key).await?;
    if named.format.json {
        let live = removed.live;
        print(&format!("{}\n", object!({"removed": json(&removed.record), "liveLeases": live})))?;
    } else {
        note_live(removed.live, &named.key);
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn set_ready(runtime: &Leasehold, named: Named, ready: bool) -> anyhow::Result<ExitCode> {
    let changed = runtime.set_ready(&named.key, ready).await?;
    if named.format.json {
        print(&format!("{}\n", object!({"key": named.key, "ready": ready, "changed": changed})))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn files(source: &Source) -> anyhow::Result<(ProviderFiles, Vec<leasehold::Grant>)> {
    let files = ProviderFiles::at(&source.path, source.declaration.as_deref());
    let mut files = files.with_context(|| format!("cannot install {}", source.path.display()))?;
    if let Some(name) = &source.name {
        anyhow::ensure!(
            files.manifest.is_none(),
            "--name is for a component without a declaration; this one declares its key itself"
        );
        files.name.clone_from(name);
    }
    Ok((files, source.grants.clone()))
}

fn told(change: &Change, as_json: bool) -> anyhow::Result<ExitCode> {
    let word = match change {
        Change::Installed(_) => "installed",
        Change::Unchanged(_) => "unchanged",
        Change::Upgraded { .. } => "upgraded",
    };
    let live = match change {
        Change::Upgraded { live, .. } => *live,
        _ => 0,
    };
    if as_json {
        let record = json(change.record());
        print(&format!("{}\n", object!({"change": word, "provider": record, "liveLeases": live})))?;
    } else {
        note_live(live, &change.record().key);
    }
    Ok(ExitCode::SUCCESS)
}

/// What goes on for a while is worth a line.
fn note_live(live: u64, key: &str) {
    if live > 0 {
        let leases = if live == 1 { "1 lease goes on".into() } else { format!("{live} leases go on") };
        let _ = writeln!(
            std::io::stderr().lock(),
            "leasehold: {leases} with the component `{key}` had; `leasehold lease ls` shows them"
        );
    }
}
