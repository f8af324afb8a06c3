//! The command's streams are this process's own.

use bytes::Bytes;
use leasehold::Streams;
use std::fs::File;
use std::io::{IsTerminal as _, Write as _};
use std::os::fd::AsFd;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Pieces of output that wait to be written; the command waits when there are more.
const WAITING: usize = 16;

/// Writes output as it comes, each stream on a thread of its own: writing to a pipe or a terminal waits.
pub(crate) struct Output {
    threads: [JoinHandle<()>; 2],
}

impl Output {
    /// Waits until everything was written.
    pub(crate) async fn finished(self) {
        for thread in self.threads {
            let _ = thread.await;
        }
    }
}

/// Standard output and error as they are; standard input unless it is a terminal, which belongs to the
/// person and not to a sandbox.
pub(crate) fn ours() -> (Streams, Output) {
    let (output, to_output) = mpsc::channel(WAITING);
    let (error, to_error) = mpsc::channel(WAITING);
    let threads = [
        tokio::task::spawn_blocking(move || write(to_output, std::io::stdout())),
        tokio::task::spawn_blocking(move || write(to_error, std::io::stderr())),
    ];
    let input: Box<dyn tokio::io::AsyncRead + Send + Unpin> = match std::io::stdin().is_terminal() {
        true => Box::new(tokio::io::empty()),
        false => Box::new(tokio::io::stdin()),
    };
    (Streams { input, output, error }, Output { threads })
}

/// A reader that went away ends the channel, and the command learns of it as it would from a pipe.
fn write(mut pieces: mpsc::Receiver<Bytes>, to: impl AsFd) {
    // Past the standard library, which looks for the last line in each piece and keeps the rest of it back.
    let Ok(handle) = to.as_fd().try_clone_to_owned() else { return };
    let mut to = File::from(handle);
    while let Some(piece) = pieces.blocking_recv() {
        if to.write_all(&piece).is_err() {
            return;
        }
    }
}
