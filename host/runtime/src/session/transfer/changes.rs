//! Only what changed since the last sync of a lease.
//!
//! Both sides are compared with what the last sync recorded of them: the host's folder by walking it, the
//! sandbox's by its own listing. What cannot be compared is sent whole; the result is the same.

use super::workspace::WORKSPACE;
use crate::error::Error;
use crate::session::Session;
use leasehold_contract::Method;
use leasehold_lease::Retention;
use leasehold_sync::fallback::{Line, Shell as _, quote};
use leasehold_sync::{
    Baseline, Delta, LIST, Listing, Manifest, Progress, Stamp, SyncRecord, Tree, WalkOptions,
};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Longer than a tick of any kernel's clock, so that what changes after a listing has another time than what is
/// listed.
const TICK: &str = "sleep 0.03";

impl Session {
    /// Sends what changed. None when nothing is recorded of this lease, or sending all is the better way.
    pub(super) async fn send_changes(
        &self,
        folder: &Path,
        options: &WalkOptions,
        about: &[u8],
        progress: &Progress,
    ) -> Result<Option<Baseline>, Error> {
        let Some(path) = self.record_path() else { return Ok(None) };
        let (walked, options, wanted) = (folder.to_owned(), options.clone(), about.to_vec());
        let host = super::blocking("listing the folder", move || {
            let Some(record) = std::fs::read(path).ok().and_then(|bytes| SyncRecord::from_bytes(&bytes))
            else {
                return Ok(None);
            };
            if record.about != wanted {
                return Ok(None);
            }
            Ok(Some((Tree::walk(&walked, options)?, record)))
        });
        if !self.record_path().is_some_and(|path| path.exists()) {
            return Ok(None);
        }
        let (host, sandbox) = tokio::join!(host, self.list(""));
        let (Some((tree, record)), Some(sandbox)) = (host?, sandbox) else { return Ok(None) };
        let Some(delta) = tree.delta(&record, &sandbox) else { return Ok(None) };
        let stamps = tree.stamps();
        let (rules, skipped) = (tree.rules().clone(), tree.skipped());
        if delta.is_empty() {
            let manifest = tree.manifest(&Manifest::default(), &record.manifest);
            return Ok(manifest.map(|manifest| Baseline { manifest, rules, skipped }));
        }
        let Some(placing) = placing(&delta) else { return Ok(None) };
        let staged = format!("{WORKSPACE}/.leasehold-delta-{}", crate::id::random("sync"));
        let changed = tree.only(&delta).map_err(|source| Error::Directory { path: folder.into(), source })?;
        let sent = self.send(changed, &staged, progress).await?;
        let Some(manifest) = tree.manifest(&sent.manifest, &record.manifest) else { return Ok(None) };
        let script = placing.script(&staged, &manifest);
        let line = Line {
            text: format!("cd -- {} && sh -e", quote(WORKSPACE)),
            input: script.into(),
            ..Line::default()
        };
        match self.run(line).await {
            Ok(ran) if ran.code == Some(0) => {}
            // Half a change is mended by sending all.
            _ => return Ok(None),
        }
        let baseline = Baseline { manifest, rules, skipped };
        self.remember(about.to_vec(), &baseline, stamps).await;
        Ok(Some(baseline))
    }

    /// Records what both sides hold after a sync. Without a record the next sync sends all, so a fault is nobody's.
    pub(super) async fn remember(&self, about: Vec<u8>, baseline: &Baseline, host: BTreeMap<PathBuf, Stamp>) {
        let Some(path) = self.record_path() else { return };
        let Some(sandbox) = self.list(TICK).await else {
            let _ = std::fs::remove_file(path);
            return;
        };
        let manifest = baseline.manifest.clone();
        let _ = super::blocking("recording a sync", move || {
            let sandbox = sandbox.of_sent(&manifest);
            let bytes = SyncRecord { about, manifest, host, sandbox }.to_bytes();
            let temporary = path.with_extension("new");
            let written = path.parent().map_or(Ok(()), std::fs::create_dir_all);
            let written = written.and_then(|()| std::fs::write(&temporary, bytes));
            if written.and_then(|()| std::fs::rename(&temporary, &path)).is_err() {
                let _ = std::fs::remove_file(&temporary);
                let _ = std::fs::remove_file(&path);
            }
            Ok(())
        })
        .await;
    }

    /// What the workspace holds now. None when the sandbox cannot say.
    async fn list(&self, before: &str) -> Option<Listing> {
        let first = if before.is_empty() { String::new() } else { format!("{before}; ") };
        let text = format!("{first}cd -- {} && {LIST}", quote(WORKSPACE));
        let ran = self.run(Line { text, ..Line::default() }).await.ok()?;
        if ran.code == Some(0) { Listing::parse(&ran.output) } else { None }
    }

    /// Where the record of this lease lies. None for a lease that ends with its use, which nobody syncs again.
    fn record_path(&self) -> Option<PathBuf> {
        let used_again = self.lease.retention() == Retention::Reuse || self.lease.held;
        (used_again && self.needs(&[Method::Execute]).is_ok())
            .then(|| self.state.join("synced").join(self.lease.id.as_str()))
    }
}

/// How a delta that was staged is put in place.
struct Placing<'a> {
    send: Vec<&'a str>,
    remove: Vec<&'a str>,
}

/// None when a path is no text, which a script cannot name.
fn placing(delta: &Delta) -> Option<Placing<'_>> {
    Some(Placing { send: texts(&delta.send)?, remove: texts(&delta.remove)? })
}

fn texts(paths: &[PathBuf]) -> Option<Vec<&str>> {
    paths.iter().map(|path| path.to_str()).collect()
}

impl Placing<'_> {
    fn script(&self, staged: &str, manifest: &Manifest) -> String {
        let mut script = String::new();
        let at = |path: &str| quote(&format!("./{path}"));
        for path in &self.remove {
            let path = at(path);
            let _ = writeln!(
                script,
                "rm -rf -- {path} 2>/dev/null || {{ chmod -R u+rwx {path}; rm -rf -- {path}; }}"
            );
        }
        let mut directories = std::collections::BTreeSet::new();
        for path in &self.send {
            directories
                .extend(Path::new(path).ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()));
            let (to, from) = (at(path), quote(&format!("{staged}/{path}")));
            if manifest.get(Path::new(path)).is_some_and(leasehold_sync::Entry::is_directory) {
                directories.insert(Path::new(path));
                let _ = writeln!(script, "[ -d {to} ] || mkdir -- {to}; chmod u+rwx {to}");
            } else {
                let _ = writeln!(script, "mv -f -- {from} {to}");
            }
        }
        let _ = writeln!(script, "rm -rf -- {}", quote(staged));
        // Inner ones first: a directory may end up closed to its owner. What was put in it changed its time.
        for path in directories.into_iter().rev() {
            let (Some(entry), Some(text)) = (manifest.get(path), path.to_str()) else { continue };
            let (seconds, nanoseconds) = (entry.mtime.seconds, entry.mtime.nanoseconds);
            let _ = writeln!(script, "touch -m -d @{seconds}.{nanoseconds:09} -- {}", at(text));
            let _ = writeln!(script, "chmod {:o} {}", entry.mode, at(text));
        }
        script
    }
}
