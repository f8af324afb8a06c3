//! A bounded pipe between a blocking thread and an asynchronous stream, one for each direction.
//!
//! An end that was not announced is an error, never a short stream: a sender that dies or is cancelled
//! leaves no archive that looks whole.

use crate::limits::{CHUNK, CHUNKS_WAITING};
use bytes::{Buf as _, Bytes, BytesMut};
use std::io::{self, BufRead, Read, Write};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncReadExt as _, ReadBuf};
use tokio::sync::mpsc;

/// Room below which a buffer is replaced rather than read into: small reads share one allocation.
const SMALLEST: usize = 16 << 10;

/// A chunk, or the announced end.
pub(crate) type Piece = Option<Bytes>;

pub(crate) fn channel() -> (mpsc::Sender<io::Result<Piece>>, mpsc::Receiver<io::Result<Piece>>) {
    mpsc::channel(CHUNKS_WAITING)
}

/// The thread's end of an outgoing pipe.
pub(crate) struct ChunkWriter {
    sender: mpsc::Sender<io::Result<Piece>>,
    chunk: BytesMut,
}

impl ChunkWriter {
    pub(crate) fn new(sender: mpsc::Sender<io::Result<Piece>>) -> Self {
        Self { sender, chunk: BytesMut::with_capacity(CHUNK) }
    }

    fn send(&self, piece: io::Result<Piece>) -> io::Result<()> {
        self.sender.blocking_send(piece).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    /// Sends what is left and announces the end, or the error that ended the stream.
    pub(crate) fn finish(mut self, result: Result<(), String>) -> io::Result<()> {
        match result {
            Ok(()) => {
                self.flush()?;
                self.send(Ok(None))
            }
            Err(message) => self.send(Err(io::Error::other(message))),
        }
    }
}

impl Write for ChunkWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(CHUNK - self.chunk.len());
        self.chunk.extend_from_slice(bytes.get(..taken).unwrap_or_default());
        if self.chunk.len() == CHUNK {
            self.flush()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.chunk.is_empty() {
            return Ok(());
        }
        let full = std::mem::replace(&mut self.chunk, BytesMut::with_capacity(CHUNK));
        self.send(Ok(Some(full.freeze())))
    }
}

/// Reads the asynchronous end of an outgoing pipe.
pub(crate) fn poll_read(
    receiver: &mut mpsc::Receiver<io::Result<Piece>>,
    current: &mut Piece,
    context: &mut Context<'_>,
    buffer: &mut ReadBuf<'_>,
) -> Poll<io::Result<()>> {
    while let Some(chunk) = current {
        if chunk.has_remaining() {
            let taken = chunk.split_to(chunk.len().min(buffer.remaining()));
            buffer.put_slice(&taken);
            return Poll::Ready(Ok(()));
        }
        match receiver.poll_recv(context) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Some(Ok(next))) => *current = next,
            Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(error)),
            Poll::Ready(None) => return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
        }
    }
    Poll::Ready(Ok(()))
}

/// Fills an incoming pipe from a stream until the stream or the thread has had enough.
pub(crate) async fn pump(reader: impl AsyncRead, sender: mpsc::Sender<io::Result<Piece>>) {
    let mut reader = std::pin::pin!(reader);
    let mut buffer = BytesMut::new();
    loop {
        if buffer.capacity() < SMALLEST {
            buffer.reserve(CHUNK);
        }
        let read = tokio::select! {
            // A thread that refused must be heard even if the stream never goes on.
            () = sender.closed() => return,
            read = reader.read_buf(&mut buffer) => read,
        };
        let piece = read.map(|length| (length > 0).then(|| buffer.split().freeze()));
        let more = matches!(piece, Ok(Some(_)));
        if sender.send(piece).await.is_err() || !more {
            return;
        }
    }
}

/// The thread's end of an incoming pipe.
pub(crate) struct ChunkReader {
    receiver: mpsc::Receiver<io::Result<Piece>>,
    current: Bytes,
    ended: bool,
}

/// How a [`ChunkReader`] says that nobody fills it any more.
pub(crate) const CANCELLED: io::ErrorKind = io::ErrorKind::ConnectionAborted;

impl ChunkReader {
    pub(crate) fn new(receiver: mpsc::Receiver<io::Result<Piece>>) -> Self {
        Self { receiver, current: Bytes::new(), ended: false }
    }
}

impl BufRead for ChunkReader {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.current.is_empty() && !self.ended {
            match self.receiver.blocking_recv() {
                Some(Ok(Some(chunk))) => self.current = chunk,
                Some(Ok(None)) => self.ended = true,
                Some(Err(error)) => return Err(error),
                None => return Err(CANCELLED.into()),
            }
        }
        Ok(&self.current)
    }

    fn consume(&mut self, amount: usize) {
        self.current.advance(amount);
    }
}

impl Read for ChunkReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let available = self.fill_buf()?;
        let taken = available.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..taken), available.get(..taken)) {
            to.copy_from_slice(from);
        }
        self.consume(taken);
        Ok(taken)
    }
}
