//! The command's streams are this process's own.

use bytes::Bytes;
use leasehold::Streams;
use std::io::IsTerminal as _;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Pieces of output that wait to be written; the command waits when there are more.
const WAITING: usize = 16;

/// Writes output as it comes.
pub(super) struct Output {
    tasks: [JoinHandle<()>; 2],
}

impl Output {
    /// Waits until everything was written.
    pub(super) async fn finished(self) {
        for task in self.tasks {
            let _ = task.await;
        }
    }
}

/// Standard output and error as they are; standard input unless it is a terminal, which belongs to the
/// person and not to a sandbox.
pub(super) fn ours() -> (Streams, Output) {
    let (output, to_output) = mpsc::channel(WAITING);
    let (error, to_error) = mpsc::channel(WAITING);
    let tasks = [
        tokio::spawn(write(to_output, tokio::io::stdout())),
        tokio::spawn(write(to_error, tokio::io::stderr())),
    ];
    let input: Box<dyn tokio::io::AsyncRead + Send + Unpin> = match std::io::stdin().is_terminal() {
        true => Box::new(tokio::io::empty()),
        false => Box::new(tokio::io::stdin()),
    };
    (Streams { input, output, error }, Output { tasks })
}

/// A reader that went away ends the channel, and the command learns of it as it would from a pipe.
async fn write(mut pieces: mpsc::Receiver<Bytes>, mut to: impl AsyncWrite + Unpin) {
    while let Some(piece) = pieces.recv().await {
        if to.write_all(&piece).await.is_err() || to.flush().await.is_err() {
            return;
        }
    }
}
