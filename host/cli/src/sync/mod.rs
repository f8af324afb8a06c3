//! `leasehold sync`: files and folders between this machine and a lease.

use crate::host::{Format, Host};
use crate::progress::{shown, summary};
use crate::table::print;
use anyhow::Context;
use clap::{Args, Subcommand};
use leasehold::{
    LeaseId, Leasehold, Mapping, MappingKind, Moved, Operation, Progress, Roots, Session, Transfer, Tree,
    WalkOptions,
};
use leasehold_sync::Excludes;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

/// Moves files and folders into a lease or out of it
///
/// A folder replaces all that its target holds; a file replaces its target at once. Nothing of a folder that comes
/// out is put in place before all of it has arrived and was checked.
#[derive(Args)]
pub(crate) struct Sync {
    #[command(subcommand)]
    direction: Direction,
    #[command(flatten)]
    host: Host,
}

#[derive(Subcommand)]
enum Direction {
    /// From this machine into the lease
    In(Between),
    /// From the lease to this machine
    Out(Between),
}

#[derive(Args)]
struct Between {
    /// The lease.
    #[arg(value_parser = crate::lease::id)]
    lease: LeaseId,
    /// File or folder to move.
    source: PathBuf,
    /// Where it goes; a path in the lease is absolute.
    target: PathBuf,
    /// Pattern of paths to leave out of a folder, as tar's --exclude means it; may be given again.
    #[arg(long, value_name = "PATTERN")]
    exclude: Vec<String>,
    /// Take what links lead to instead of the links.
    #[arg(long, short = 'L')]
    follow_symlinks: bool,
    /// Mode of the target of a file, in octal.
    #[arg(long, value_name = "MODE", value_parser = mode)]
    mode: Option<u32>,
    /// Use the lease's commands, whatever faster way its provider has.
    #[arg(long)]
    over_commands: bool,
    /// Only list what would be moved, and what would not and why.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    format: Format,
}

impl Sync {
    /// Moves what was named.
    pub(crate) async fn run(self) -> anyhow::Result<ExitCode> {
        let runtime = self.host.open().await?;
        let code = match self.direction {
            Direction::In(between) => between.inward(&runtime).await?,
            Direction::Out(between) => between.outward(&runtime).await?,
        };
        runtime.idle().await;
        Ok(code)
    }
}

impl Between {
    async fn inward(self, runtime: &Leasehold) -> anyhow::Result<ExitCode> {
        let source = std::path::absolute(&self.source)?;
        let metadata = source.metadata().with_context(|| format!("cannot use {}", source.display()))?;
        let kind = if metadata.is_dir() { MappingKind::Directory } else { MappingKind::File };
        if self.dry_run {
            return self.would_send(&source, kind);
        }
        let session = self.session(runtime).await?;
        // The folder itself for a folder; for a file the folder that holds it.
        let root = if kind == MappingKind::Directory {
            source.as_path()
        } else {
            source.parent().unwrap_or(&source)
        };
        let root = root.to_owned();
        let transfer = self.transfer(kind, source, self.target.clone(), &root, Path::new("/"))?;
        let began = Instant::now();
        let moved = shown("sending", &transfer.progress, session.transfer_in(&transfer)).await?;
        self.told("sent", &moved, began)
    }

    async fn outward(self, runtime: &Leasehold) -> anyhow::Result<ExitCode> {
        let target = std::path::absolute(&self.target)?;
        let session = self.session(runtime).await?;
        let kind = kind_of(&session, &self.source).await?;
        if self.dry_run {
            let kind = if kind == MappingKind::Directory { "folder" } else { "file" };
            let there = if target.symlink_metadata().is_ok() { "replaces what is there" } else { "is new" };
            print(&format!(
                "would fetch the {kind} {} to {}, which {there}\n",
                self.source.display(),
                target.display()
            ))?;
            return Ok(ExitCode::SUCCESS);
        }
        let root = target.parent().unwrap_or(&target).to_owned();
        let transfer = self.transfer(kind, self.source.clone(), target, Path::new("/"), &root)?;
        let began = Instant::now();
        let moved = shown("fetching", &transfer.progress, session.transfer_out(&transfer)).await?;
        self.told("fetched", &moved, began)
    }

    async fn session(&self, runtime: &Leasehold) -> anyhow::Result<Session> {
        let session = runtime.session(&self.lease).await?;
        Ok(if self.over_commands { session.without_native_transfer() } else { session })
    }

    fn transfer(
        &self,
        kind: MappingKind,
        source: PathBuf,
        target: PathBuf,
        sources: &Path,
        targets: &Path,
    ) -> anyhow::Result<Transfer> {
        let mapping = Mapping {
            mode: self.mode,
            exclude: self.exclude.clone(),
            follow_symlinks: self.follow_symlinks,
            ..Mapping::new(kind, source, target)
        };
        one(mapping, sources, targets)
    }

    fn would_send(&self, source: &Path, kind: MappingKind) -> anyhow::Result<ExitCode> {
        let mut options = WalkOptions::everything();
        options.exclude = Excludes::new(&self.exclude);
        options.follow_symlinks = self.follow_symlinks;
        options.max_entries = usize::MAX;
        let text = match kind {
            MappingKind::Directory => would_send(source, options, self.format.json)?,
            MappingKind::File => format!("send  {}\n", source.display()),
        };
        print(&text)?;
        Ok(ExitCode::SUCCESS)
    }

    fn told(&self, what: &str, moved: &[Moved], began: Instant) -> anyhow::Result<ExitCode> {
        let all = moved.iter().fold(Moved::default(), |mut all, more| {
            all += *more;
            all
        });
        summary(what, all, began.elapsed());
        if self.format.json {
            print(&format!("{}\n", json!({"files": all.files, "bytes": all.bytes})))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// A transfer of one mapping.
pub(crate) fn one(mapping: Mapping, sources: &Path, targets: &Path) -> anyhow::Result<Transfer> {
    let operation = Operation { id: "sync-op-1".into(), mappings: vec![mapping], post_upload: vec![] };
    Ok(Transfer {
        operations: vec![operation],
        sources: Roots::new("source", [sources])?,
        targets: Roots::new("target", [targets])?,
        progress: Progress::default(),
    })
}

/// What stands at a path of a lease.
pub(crate) async fn kind_of(session: &Session, path: &Path) -> anyhow::Result<MappingKind> {
    let text = path.to_str().context("the path is no text, which a lease cannot be given")?;
    let kind = session.kind_of(text).await?;
    kind.with_context(|| {
        format!("{} is no file and no folder in the lease (links are not followed)", path.display())
    })
}

/// What a walk would send and leave out, a line each.
pub(crate) fn would_send(folder: &Path, mut options: WalkOptions, as_json: bool) -> anyhow::Result<String> {
    options.remember_left_out = true;
    let tree = Tree::walk(folder, options)?;
    let mut text = String::new();
    for (path, bytes) in tree.entries() {
        text.push_str(&match as_json {
            true => format!("{}\n", json!({"send": path.to_string_lossy(), "bytes": bytes})),
            false => format!("send  {} ({bytes} bytes)\n", plain_path(path)),
        });
    }
    for (path, why) in tree.left_out() {
        text.push_str(&match as_json {
            true => format!("{}\n", json!({"leaveOut": path.to_string_lossy(), "why": why.to_string()})),
            false => format!("leave {}: {why}\n", plain_path(path)),
        });
    }
    let (files, bytes) = tree.totals();
    let skipped = tree.skipped();
    text.push_str(&match as_json {
        true => format!("{}\n", json!({"files": files, "bytes": bytes, "skipped": skipped})),
        false => {
            format!("{files} files of {bytes} bytes; {skipped} sockets, pipes and devices passed over\n")
        }
    });
    Ok(text)
}

fn plain_path(path: &Path) -> String {
    leasehold_contract::text::plain(&path.to_string_lossy(), 1_000)
}

fn mode(text: &str) -> Result<u32, String> {
    u32::from_str_radix(text, 8)
        .ok()
        .filter(|mode| *mode <= 0o777)
        .ok_or_else(|| format!("`{text}` is no mode; give permissions in octal, such as 600 or 755"))
}
