//! A folder as a stream.
//!
//! Memory stays flat: a file is read once, in pieces, and digested on its way. The stream is a POSIX tar
//! archive with relative names, without an entry for the folder itself.

mod error;
mod sending;

pub use error::SendError;

use crate::manifest::{Baseline, Manifest};
use crate::pipe::{self, ChunkWriter, Piece};
use crate::tree::Tree;
use sending::Sending;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::{mpsc, oneshot};

/// The archive of a folder. Dropping it ends the work.
#[derive(Debug)]
pub struct Outgoing {
    receiver: mpsc::Receiver<io::Result<Piece>>,
    current: Piece,
}

impl AsyncRead for Outgoing {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { receiver, current } = &mut *self;
        pipe::poll_read(receiver, current, context, buffer)
    }
}

/// What is known of a folder once its stream was read to the end.
#[derive(Debug)]
pub struct Summary {
    receiver: oneshot::Receiver<Result<Baseline, SendError>>,
    folder: PathBuf,
}

impl Summary {
    /// What was sent, or the typed reason why the stream failed.
    pub async fn finish(self) -> Result<Baseline, SendError> {
        let Self { receiver, folder } = self;
        receiver.await.unwrap_or(Err(SendError::Dropped { path: folder }))
    }
}

/// Starts to stream a folder. Wants a tokio runtime around it; the work waits while nobody reads.
#[must_use]
pub fn outgoing(tree: Tree) -> (Outgoing, Summary) {
    let (sender, receiver) = pipe::channel();
    let (done, summary) = oneshot::channel();
    let folder = tree.path.clone();
    tokio::task::spawn_blocking(move || {
        let mut sending = Sending::new(tree.path, tree.root, ChunkWriter::new(sender));
        let manifest = tree.found.into_iter().try_fold(Manifest::default(), |mut manifest, found| {
            let entry = sending.entry(&found)?;
            manifest.insert(found.path, entry);
            Ok(manifest)
        });
        let sent = sending.end(manifest);
        // Nobody may be waiting.
        let _ =
            done.send(sent.map(|manifest| Baseline { manifest, rules: tree.rules, skipped: tree.skipped }));
    });
    (Outgoing { receiver, current: Some(bytes::Bytes::new()) }, Summary { receiver: summary, folder })
}
