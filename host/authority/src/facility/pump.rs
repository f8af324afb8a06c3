//! Moves bytes between a guest's streams and the host's.

use bytes::Bytes;
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::mpsc;
use tokio_util::io::StreamReader;
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

/// Moves everything to a guest's stream. When the guest's side closes, so does the other, and whoever writes
/// learns of it as from a pipe.
pub(super) async fn to_guest(
    from: &mut (impl AsyncRead + Unpin),
    mut stream: DynOutputStream,
) -> Result<(), Broken> {
    let mut buffer = vec![0; CHUNK];
    loop {
        let read = from.read(&mut buffer).await.map_err(Broken::Io)?;
        if read == 0 {
            return flushed(stream).await;
        }
        let mut rest = &buffer[..read];
        while !rest.is_empty() {
            match write_some(&mut stream, rest).await {
                Ok(written) => rest = &rest[written..],
                Err(StreamError::Closed) => return Ok(()),
                Err(error) => return Err(of_stream(error)),
            }
        }
    }
}

async fn write_some(stream: &mut DynOutputStream, bytes: &[u8]) -> Result<usize, StreamError> {
    let allowed = stream.write_ready().await?.min(bytes.len());
    stream.write(bytes[..allowed].to_vec().into())?;
    Ok(allowed)
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
