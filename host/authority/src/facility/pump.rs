//! Moves bytes between a guest's streams and the host's.

use bytes::Bytes;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio_util::io::StreamReader;
use tokio_util::sync::PollSender;
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, StreamError};

/// How much is moved at once, and held between the two sides: as much as the jail moves at once.
pub(super) const CHUNK: usize = 256 << 10;

/// How moving ended when it did not end well.
pub(super) enum Broken {
    /// The guest's stream ends the call: a limit was hit.
    Trap(wasmtime::Error),
    /// One of the two sides failed.
    Io(io::Error),
}

/// A reader of what [`from_guest`] sends. A stream that breaks off ends it with an error, not with the end:
/// half a file must never pass for a whole one.
pub(super) fn reader() -> (mpsc::Sender<io::Result<Bytes>>, impl AsyncRead + Send + Unpin) {
    let (sender, mut receiver) = mpsc::channel(1);
    let pieces = futures_util::stream::poll_fn(move |context| receiver.poll_recv(context));
    (sender, StreamReader::new(pieces))
}

/// Moves everything that a guest's stream brings. A reader that went away is no fault.
pub(super) async fn from_guest(
    mut stream: DynInputStream,
    to: mpsc::Sender<io::Result<Bytes>>,
) -> Result<(), Broken> {
    loop {
        match stream.blocking_read(CHUNK).await {
            Ok(bytes) => {
                if to.send(Ok(bytes)).await.is_err() {
                    return Ok(());
                }
            }
            Err(StreamError::Closed) => return Ok(()),
            Err(error) => {
                let _ = to.send(Err(io::Error::other("the stream broke off"))).await;
                return Err(of_stream(error));
            }
        }
    }
}

/// A writer whose pieces [`to_guest`] takes: copied once, and passed on without being copied again.
pub(super) fn writer() -> (impl AsyncWrite + Send + Unpin, mpsc::Receiver<Bytes>) {
    let (sender, receiver) = mpsc::channel(1);
    (Pieces(PollSender::new(sender)), receiver)
}

struct Pieces(PollSender<Bytes>);

impl AsyncWrite for Pieces {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let closed = |_| io::Error::from(io::ErrorKind::BrokenPipe);
        std::task::ready!(self.0.poll_reserve(context)).map_err(closed)?;
        let piece = &bytes[..bytes.len().min(CHUNK)];
        self.0.send_item(Bytes::copy_from_slice(piece)).map_err(closed)?;
        Poll::Ready(Ok(piece.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.close();
        Poll::Ready(Ok(()))
    }
}

/// Moves everything to a guest's stream. When the guest's side closes, so does the other, and whoever writes
/// learns of it as from a pipe.
pub(super) async fn to_guest(
    from: &mut mpsc::Receiver<Bytes>,
    mut stream: DynOutputStream,
) -> Result<(), Broken> {
    while let Some(mut piece) = from.recv().await {
        while !piece.is_empty() {
            match write_some(&mut stream, &mut piece).await {
                Ok(()) => {}
                Err(StreamError::Closed) => return Ok(()),
                Err(error) => return Err(of_stream(error)),
            }
        }
    }
    flushed(stream).await
}

async fn write_some(stream: &mut DynOutputStream, piece: &mut Bytes) -> Result<(), StreamError> {
    let allowed = stream.write_ready().await?.min(piece.len());
    stream.write(piece.split_to(allowed))
}

async fn flushed(mut stream: DynOutputStream) -> Result<(), Broken> {
    match stream.flush() {
        Ok(()) | Err(StreamError::Closed) => {}
        Err(error) => return Err(of_stream(error)),
    }
    match stream.write_ready().await {
        Ok(_) | Err(StreamError::Closed) => Ok(()),
        Err(error) => Err(of_stream(error)),
    }
}

fn of_stream(error: StreamError) -> Broken {
    match error {
        StreamError::Trap(error) => Broken::Trap(error),
        StreamError::LastOperationFailed(error) => Broken::Io(io::Error::other(format!("{error:#}"))),
        StreamError::Closed => Broken::Io(io::ErrorKind::BrokenPipe.into()),
    }
}
