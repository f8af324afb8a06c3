//! A bounded pipe between a blocking thread and an asynchronous stream, one for each direction.
//!
//! An end that was not announced is an error, never a short stream: a sender that dies or is cancelled
//! leaves nothing that looks whole. Chunks change hands without being copied.

use crate::limits::{CHUNK, CHUNKS_WAITING};
use bytes::{Buf as _, Bytes, BytesMut};
use rustix::buffer::spare_capacity;
use std::fs::File;
use std::io::{self, BufRead, Read, Write};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncReadExt as _, ReadBuf};
use tokio::sync::mpsc;

/// Room below which a buffer is replaced rather than read into: small reads share one allocation.
const SMALLEST: usize = 16 << 10;

/// A chunk, or the announced end.
type Piece = io::Result<Option<Bytes>>;

/// A pipe whose thread is the sender.
pub(crate) fn outward() -> (ChunkWriter, Outlet) {
    let (sender, receiver) = mpsc::channel(CHUNKS_WAITING);
    (ChunkWriter { sender, chunk: Vec::new() }, Outlet { receiver, current: Bytes::new(), ended: false })
}

/// A pipe whose thread is the receiver.
pub(crate) fn inward() -> (Inlet, ChunkReader) {
    let (sender, receiver) = mpsc::channel(CHUNKS_WAITING);
    (Inlet { sender, permit: None }, ChunkReader { receiver, current: Bytes::new(), ended: false })
}

/// The thread's end of an outward pipe.
pub(crate) struct ChunkWriter {
    sender: mpsc::Sender<Piece>,
    chunk: Vec<u8>,
}

impl ChunkWriter {
    fn send(&self, piece: Piece) -> io::Result<()> {
        self.sender.blocking_send(piece).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    /// Makes room for more bytes: at least one, and for so many if they fit into a chunk.
    fn room_for(&mut self, wanted: usize) -> io::Result<()> {
        if CHUNK - self.chunk.len() < wanted.clamp(1, SMALLEST) {
            self.flush()?;
        }
        if self.chunk.capacity() == 0 {
            self.chunk = Vec::with_capacity(CHUNK);
        }
        Ok(())
    }

    /// Reads once from a file of which so many bytes are expected, straight into the chunk. Returns what was
    /// read; nothing at the end of the file.
    pub(crate) fn read_from(&mut self, file: &File, expected: u64) -> io::Result<Result<&[u8], io::Error>> {
        self.room_for(usize::try_from(expected).unwrap_or(usize::MAX))?;
        let before = self.chunk.len();
        Ok(match rustix::io::retry_on_intr(|| rustix::io::read(file, spare_capacity(&mut self.chunk))) {
            Ok(_) => Ok(self.chunk.get(before..).unwrap_or_default()),
            Err(errno) => Err(errno.into()),
        })
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
        self.room_for(bytes.len())?;
        let taken = bytes.len().min(CHUNK - self.chunk.len());
        self.chunk.extend_from_slice(bytes.get(..taken).unwrap_or_default());
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.chunk.is_empty() {
            return Ok(());
        }
        let full = std::mem::take(&mut self.chunk);
        self.send(Ok(Some(full.into())))
    }
}

/// The asynchronous end of an outward pipe. Dropping it ends the work behind it.
#[derive(Debug)]
pub struct Outlet {
    receiver: mpsc::Receiver<Piece>,
    current: Bytes,
    ended: bool,
}

impl Outlet {
    /// At most so many bytes, without waiting: none when there are none yet, and nothing at all at the end.
    ///
    /// # Errors
    /// When what is behind it failed.
    pub fn pull(&mut self, most: usize) -> io::Result<Option<Bytes>> {
        while self.current.is_empty() && !self.ended {
            match self.receiver.try_recv() {
                Ok(piece) => self.took(Some(piece))?,
                Err(mpsc::error::TryRecvError::Empty) => return Ok(Some(Bytes::new())),
                Err(mpsc::error::TryRecvError::Disconnected) => self.took(None)?,
            }
        }
        if self.current.is_empty() {
            return Ok(None);
        }
        Ok(Some(self.current.split_to(most.min(self.current.len()))))
    }

    /// Waits until [`Outlet::pull`] has something to say. What failed is kept for it.
    pub async fn ready(&mut self) {
        while self.current.is_empty() && !self.ended {
            let piece = self.receiver.recv().await;
            match piece {
                Some(Ok(Some(_) | None)) => {
                    let _ = self.took(piece);
                }
                // Put behind a closed channel of its own, so that it is told and not lost.
                failed => {
                    let (sender, receiver) = mpsc::channel(1);
                    if let Some(failed) = failed {
                        let _ = sender.try_send(failed);
                    }
                    self.receiver = receiver;
                    return;
                }
            }
        }
    }

    fn took(&mut self, piece: Option<Piece>) -> io::Result<()> {
        match piece {
            Some(Ok(Some(chunk))) => self.current = chunk,
            Some(Ok(None)) => self.ended = true,
            Some(Err(error)) => return Err(error),
            None => return Err(io::ErrorKind::UnexpectedEof.into()),
        }
        Ok(())
    }
}

impl AsyncRead for Outlet {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.current.is_empty() && !self.ended {
            match self.receiver.poll_recv(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(piece) => self.took(piece)?,
            }
        }
        let length = self.current.len().min(buffer.remaining());
        buffer.put_slice(&self.current.split_to(length));
        Poll::Ready(Ok(()))
    }
}

/// The asynchronous end of an inward pipe. Dropping all of its clones without [`Inlet::finish`] says that the
/// sender was cancelled.
#[derive(Debug)]
pub struct Inlet {
    sender: mpsc::Sender<Piece>,
    /// A place for the next chunk, taken before it is promised.
    permit: Option<mpsc::OwnedPermit<Piece>>,
}

/// The receiver refused what came, or has all it wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("nobody takes any more of it")]
pub struct Closed;

impl Inlet {
    pub(crate) fn again(&self) -> Self {
        Self { sender: self.sender.clone(), permit: None }
    }

    /// How many bytes [`Inlet::give`] takes now: none while chunks are waiting.
    ///
    /// # Errors
    /// When nothing more is taken.
    pub fn room(&mut self) -> Result<usize, Closed> {
        if self.permit.is_none() {
            match self.sender.clone().try_reserve_owned() {
                Ok(permit) => self.permit = Some(permit),
                Err(mpsc::error::TrySendError::Full(_)) => return Ok(0),
                Err(mpsc::error::TrySendError::Closed(_)) => return Err(Closed),
            }
        }
        Ok(CHUNK)
    }

    /// Waits until there is room, or nothing more is taken.
    pub async fn ready(&mut self) {
        if self.permit.is_none() {
            self.permit = self.sender.clone().reserve_owned().await.ok();
        }
    }

    /// Gives a chunk for which there is room. Without room it is refused, as if nobody took it.
    ///
    /// # Errors
    /// When it is not taken.
    pub fn give(&mut self, chunk: Bytes) -> Result<(), Closed> {
        if chunk.is_empty() {
            return Ok(());
        }
        if self.room()? == 0 {
            return Err(Closed);
        }
        // Nobody hears whether a receiver went away meanwhile; the next question does.
        self.permit.take().ok_or(Closed)?.send(Ok(Some(chunk)));
        Ok(())
    }

    /// Announces the end.
    ///
    /// # Errors
    /// When nobody listens any more.
    pub async fn finish(self) -> Result<(), Closed> {
        drop(self.permit);
        self.sender.send(Ok(None)).await.map_err(|_| Closed)
    }

    /// Fills the pipe from a stream until the stream or the thread has had enough.
    pub(crate) async fn pump(self, reader: impl AsyncRead) {
        let mut reader = std::pin::pin!(reader);
        let mut buffer = BytesMut::new();
        loop {
            if buffer.capacity() < SMALLEST {
                buffer.reserve(CHUNK);
            }
            let read = tokio::select! {
                // A thread that refused must be heard even if the stream never goes on.
                () = self.sender.closed() => return,
                read = reader.read_buf(&mut buffer) => read,
            };
            let piece = read.map(|length| (length > 0).then(|| buffer.split().freeze()));
            let more = matches!(piece, Ok(Some(_)));
            if self.sender.send(piece).await.is_err() || !more {
                return;
            }
        }
    }
}

/// The thread's end of an inward pipe.
#[derive(Debug)]
pub(crate) struct ChunkReader {
    receiver: mpsc::Receiver<Piece>,
    current: Bytes,
    ended: bool,
}

/// How a [`ChunkReader`] says that nobody fills it any more.
pub(crate) const CANCELLED: io::ErrorKind = io::ErrorKind::ConnectionAborted;

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
        let (into, from) = (buffer.get_mut(..taken), available.get(..taken));
        if let (Some(into), Some(from)) = (into, from) {
            into.copy_from_slice(from);
        }
        self.consume(taken);
        Ok(taken)
    }
}
