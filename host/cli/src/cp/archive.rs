//! Copies as tar archives on the standard streams. What a lease gives is checked whole before any of it is written.

use crate::run::streams;
use crate::sync::{kind_of, one};
use anyhow::Context;
use leasehold::{Command, Exit, Mapping, Session, Streams, Tree, WalkOptions};
use leasehold_sync::{Limits, incoming, outgoing};
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// Writes what is at a path as an archive, its names beginning with the last of the path.
pub(super) async fn out(session: &Session, path: &Path, follow: bool) -> anyhow::Result<()> {
    let kind = kind_of(session, path).await?;
    let holder =
        tempfile::Builder::new().prefix("leasehold-cp-").tempdir().context("cannot stage the archive")?;
    let target = holder.path().join(super::name(path)?);
    let mapping = Mapping { follow_symlinks: follow, ..Mapping::new(kind, path, target) };
    session.transfer_out(&one(mapping, Path::new("/"), holder.path())?).await?;
    let mut options = WalkOptions::everything();
    options.max_entries = usize::MAX;
    let tree = Tree::walk(holder.path(), options)?;
    let (mut archive, summary) = outgoing(tree);
    tokio::io::copy(&mut archive, &mut tokio::io::stdout()).await.context("cannot write the archive")?;
    tokio::io::AsyncWriteExt::flush(&mut tokio::io::stdout()).await?;
    summary.finish().await?;
    Ok(())
}

/// Unpacks an archive into a folder of the lease, beside what is there. It is checked whole first.
pub(super) async fn into(session: &Session, path: &Path) -> anyhow::Result<()> {
    let holder =
        tempfile::Builder::new().prefix("leasehold-cp-").tempdir().context("cannot stage the archive")?;
    let received = incoming(tokio::io::stdin(), holder.path(), Limits::default(), None).await?;
    received.place(Path::new("tree"))?;
    let mut options = WalkOptions::everything();
    options.max_entries = usize::MAX;
    let (archive, summary) = outgoing(Tree::walk(&holder.path().join("tree"), options)?);
    let path = path.to_str().context("the path is no text")?;
    let argv = ["tar", "-xpof", "-", "-C", path].map(str::to_owned).to_vec();
    let (ours, output) = streams::ours();
    let streams = Streams { input: Box::new(archive), output: ours.output, error: ours.error };
    let command = Command { argv, ..Command::default() };
    let ended = session.execute(command, streams, CancellationToken::new()).await;
    output.finished().await;
    let (exit, _) = ended?;
    summary.finish().await?;
    anyhow::ensure!(
        matches!(exit, Exit::Exited(0)),
        "the archive could not be unpacked in the lease; is {path} a folder there?"
    );
    Ok(())
}
