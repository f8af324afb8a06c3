//! `leasehold cp`: copies between this machine and a lease, as `docker cp` does.

mod archive;

use crate::host::Host;
use crate::progress::shown;
use crate::sync::{kind_of, one};
use anyhow::Context;
use clap::Args;
use leasehold::{LeaseId, Mapping, MappingKind, Session};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Copies a file or folder out of a lease or into it
///
/// `leasehold cp LEASE:PATH DIR` copies into DIR when it is a folder, and else to that name. With `-` as the target
/// a tar archive goes to standard output; with `-` as the source one is read from standard input and unpacked into a
/// folder of the lease. A folder does not replace one that is there and not empty.
#[derive(Args)]
pub(crate) struct Copy {
    /// What to copy: a path, LEASE:PATH, or `-`.
    source: String,
    /// Where to: a path, LEASE:PATH, or `-`.
    target: String,
    /// Take what links lead to instead of the links.
    #[arg(long, short = 'L')]
    follow_link: bool,
    #[command(flatten)]
    host: Host,
}

/// One side of a copy.
enum Side {
    Lease(LeaseId, PathBuf),
    Here(PathBuf),
    Stream,
}

impl Copy {
    /// Copies.
    pub(crate) async fn run(self) -> anyhow::Result<ExitCode> {
        let (source, target) = (side(&self.source)?, side(&self.target)?);
        let runtime = self.host.open().await?;
        match (source, target) {
            (Side::Lease(lease, path), Side::Here(to)) => {
                self.fetch(&runtime.session(&lease).await?, path, &to).await?;
            }
            (Side::Lease(lease, path), Side::Stream) => {
                archive::out(&runtime.session(&lease).await?, &path, self.follow_link).await?;
            }
            (Side::Here(from), Side::Lease(lease, path)) => {
                self.put(&runtime.session(&lease).await?, &from, path).await?;
            }
            (Side::Stream, Side::Lease(lease, path)) => {
                archive::into(&runtime.session(&lease).await?, &path).await?;
            }
            _ => anyhow::bail!("one side has to be a lease: write it as LEASE:PATH"),
        }
        runtime.idle().await;
        Ok(ExitCode::SUCCESS)
    }

    async fn fetch(&self, session: &Session, path: PathBuf, to: &Path) -> anyhow::Result<()> {
        let kind = kind_of(session, &path).await?;
        let mut to = std::path::absolute(to)?;
        if to.is_dir() {
            to.push(name(&path)?);
        }
        if kind == MappingKind::Directory && to.symlink_metadata().is_ok() {
            // What is there may be somebody's work.
            let empty = std::fs::read_dir(&to).is_ok_and(|mut entries| entries.next().is_none());
            anyhow::ensure!(
                empty,
                "{} is there already; name another place, or use `leasehold sync out`",
                to.display()
            );
        }
        let root = to.parent().unwrap_or(&to).to_owned();
        let mapping = Mapping { follow_symlinks: self.follow_link, ..Mapping::new(kind, path, to) };
        let transfer = one(mapping, Path::new("/"), &root)?;
        shown("copying", &transfer.progress, session.transfer_out(&transfer)).await?;
        Ok(())
    }

    async fn put(&self, session: &Session, from: &Path, mut path: PathBuf) -> anyhow::Result<()> {
        let from = std::path::absolute(from)?;
        let metadata = from.metadata().with_context(|| format!("cannot use {}", from.display()))?;
        let kind = if metadata.is_dir() { MappingKind::Directory } else { MappingKind::File };
        let text = |path: &Path| path.to_str().map(str::to_owned).context("the path is no text");
        if session.kind_of(&text(&path)?).await? == Some(MappingKind::Directory) {
            path.push(name(&from)?);
            if kind == MappingKind::Directory {
                let there = session.kind_of(&text(&path)?).await?;
                anyhow::ensure!(
                    there.is_none(),
                    "{} is there already; use `leasehold sync in`",
                    path.display()
                );
            }
        }
        let root =
            if kind == MappingKind::Directory { from.as_path() } else { from.parent().unwrap_or(&from) };
        let root = root.to_owned();
        let mapping = Mapping { follow_symlinks: self.follow_link, ..Mapping::new(kind, from, path) };
        let transfer = one(mapping, &root, Path::new("/"))?;
        shown("copying", &transfer.progress, session.transfer_in(&transfer)).await?;
        Ok(())
    }
}

fn name(path: &Path) -> anyhow::Result<&std::ffi::OsStr> {
    path.file_name().with_context(|| format!("{} ends in no name", path.display()))
}

fn side(text: &str) -> anyhow::Result<Side> {
    if text == "-" {
        return Ok(Side::Stream);
    }
    // A path with a colon is told from a lease by how it begins, as elsewhere.
    match text.split_once(':') {
        Some((lease, path)) if !text.starts_with(['/', '.']) => {
            let lease = crate::lease::id(lease).map_err(anyhow::Error::msg)?;
            anyhow::ensure!(path.starts_with('/'), "{path}: a path in a lease is given from `/` on");
            Ok(Side::Lease(lease, path.into()))
        }
        _ => Ok(Side::Here(text.into())),
    }
}
