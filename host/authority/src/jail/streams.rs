//! The standard streams of a command: piece by piece, with back-pressure, none kept.

use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::watch;
use tokio::time::Instant;

/// Bytes moved at a time, and what a pipe for output holds where the kernel lets it: a command that writes
/// much then waits for the host less often. Memory is taken only for what really is in it.
pub(super) const PIECE: usize = 256 << 10;

/// After a command ended, how long its output may stay open for children that are ending too. Whoever
/// keeps it open longer is a background process, and what it writes later is dropped.
const STRAGGLERS: Duration = Duration::from_millis(50);

/// Moves input into the command until either ends.
pub(super) async fn feed(mut from: impl AsyncRead + Unpin, mut to: Sender, mut end: watch::Receiver<bool>) {
    let feeding = async {
        let mut piece = vec![0; PIECE];
        loop {
            match from.read(&mut piece).await {
                // A source that fails looks like one that ended: the command sees the end of its input.
                Ok(0) | Err(_) => return,
                Ok(length) => {
                    // A command that closed its input has read enough; that is no fault.
                    if to.write_all(piece.get(..length).unwrap_or_default()).await.is_err() {
                        return;
                    }
                }
            }
        }
    };
    tokio::select! {
        () = feeding => {}
        _ = end.wait_for(|ended| *ended) => {}
    }
}

/// Moves output out of the command. After its end: all it wrote before, and then not for ever.
pub(super) async fn deliver(
    mut from: Receiver,
    mut to: impl AsyncWrite + Unpin,
    mut end: watch::Receiver<bool>,
) {
    let mut piece = vec![0; PIECE];
    loop {
        let read = tokio::select! {
            biased;
            _ = end.wait_for(|ended| *ended) => break,
            read = from.read(&mut piece) => read,
        };
        match read {
            Ok(0) | Err(_) => return,
            // A reader that is gone: the pipe is closed, and the command is told at its next write.
            Ok(length) if pass(&mut to, piece.get(..length)).await.is_err() => return,
            Ok(_) => {}
        }
    }
    // All that the command itself could have written is in the pipe now.
    let mut owed = rustix::io::ioctl_fionread(&from).unwrap_or(0);
    let deadline = Instant::now() + STRAGGLERS;
    loop {
        let read = if owed > 0 {
            from.read(&mut piece).await
        } else {
            match tokio::time::timeout_at(deadline, from.read(&mut piece)).await {
                Ok(read) => read,
                Err(_) => break,
            }
        };
        match read {
            Ok(0) | Err(_) => return,
            Ok(length) if pass(&mut to, piece.get(..length)).await.is_err() => return,
            Ok(length) => owed = owed.saturating_sub(length as u64),
        }
        if owed == 0 && Instant::now() >= deadline {
            break;
        }
    }
    // A background process holds it. Read on and drop it: a closed pipe would end that process.
    tokio::spawn(async move { while !matches!(from.read(&mut piece).await, Ok(0) | Err(_)) {} });
}

async fn pass(to: &mut (impl AsyncWrite + Unpin), piece: Option<&[u8]>) -> std::io::Result<()> {
    to.write_all(piece.unwrap_or_default()).await?;
    // Whoever watches sees each piece as it comes.
    to.flush().await
}
