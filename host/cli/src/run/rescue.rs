//! What a sandbox holds, kept when it cannot be brought back: an archive that nobody has looked into.

use anyhow::Context;
use leasehold::{Command, Exit, Session, Streams};
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Pieces of the archive that wait to be written.
const WAITING: usize = 16;

/// Writes the workspace as it is to an archive in this directory; gives the archive's path.
pub(super) async fn rescue(session: &Session, directory: &Path) -> anyhow::Result<PathBuf> {
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
    made.with_context(|| format!("cannot make {}", directory.display()))?;
    let path = directory.join(format!("{}.tar", session.id()));
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    let mut file = file.with_context(|| format!("cannot write {}", path.display()))?;

    let (output, mut pieces) = mpsc::channel::<bytes::Bytes>(WAITING);
    let (error, mut said) = mpsc::channel::<bytes::Bytes>(WAITING);
    let writing = tokio::task::spawn_blocking(move || {
        while let Some(piece) = pieces.blocking_recv() {
            file.write_all(&piece)?;
        }
        file.sync_all()
    });
    let ignoring = tokio::spawn(async move { while said.recv().await.is_some() {} });
    let argv = ["tar", "-C", "/workspace", "-cf", "-", "."].map(str::to_owned).to_vec();
    let command = Command { argv, ..Command::default() };
    let streams = Streams { input: Box::new(tokio::io::empty()), output, error };
    let packed = session.execute(command, streams, CancellationToken::new()).await;
    let written = writing.await;
    ignoring.abort();
    let complete = matches!(packed, Ok((Exit::Exited(0), _))) && matches!(written, Ok(Ok(())));
    if !complete {
        // Half an archive would be taken for a whole one.
        let _ = std::fs::remove_file(&path);
        anyhow::bail!("what the sandbox holds could not be packed either");
    }
    Ok(path)
}
