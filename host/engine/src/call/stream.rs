//! The host's ends of the byte streams a call is given.
//!
//! What a command writes is kept head and tail and counted whole; a caller that wants it as it comes gets
//! it through a channel, and a slow reader slows the command, not the host.

use crate::call::limiter::Hit;
use crate::call::scope::Filter;
use crate::limits::{Limit, Limits};
use bytes::Bytes;
use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use tokio::io::AsyncWrite;
use tokio::sync::mpsc;
use wasmtime_wasi::async_trait;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{
    DynInputStream, DynOutputStream, InputStream, OutputStream, Pollable, StreamError, StreamResult,
    pipe::MemoryInputPipe,
};

/// How much a guest may write at once. More saves nothing, less costs calls.
const CHUNK: usize = 64 << 10;

/// Input that is this text and then ends.
pub fn input_bytes(bytes: impl Into<Bytes>) -> DynInputStream {
    Box::new(MemoryInputPipe::new(bytes.into()))
}

/// Input that stays open and never brings a byte.
pub fn input_silent() -> DynInputStream {
    Box::new(Silent)
}

/// One output stream of a call: what to do with it, and afterwards what came.
#[derive(Clone, Debug)]
pub struct Output {
    kept: Arc<Mutex<Kept>>,
    live: Option<mpsc::Sender<Bytes>>,
}

impl Output {
    /// Keeps head and tail within the limits.
    pub fn new(limits: &Limits) -> Self {
        let kept = limits.size(Limit::OutputKept);
        Output { kept: Arc::new(Mutex::new(Kept::new(kept, limits.get(Limit::Output)))), live: None }
    }

    /// Also sends every piece on as it comes. A full channel makes the guest wait; a closed one closes the
    /// stream, as a pipe whose reader went away.
    pub fn with_live(mut self, live: mpsc::Sender<Bytes>) -> Self {
        self.live = Some(live);
        self
    }

    /// The bytes kept from the head, the bytes kept from the tail, and how many came in all.
    pub fn kept(&self) -> (Vec<u8>, Vec<u8>, u64) {
        let kept = self.lock();
        (kept.head.clone(), kept.tail.iter().copied().collect(), kept.total)
    }

    /// What was kept, as text, with a line that says how much is missing in the middle.
    pub fn text(&self) -> String {
        let (mut head, tail, total) = self.kept();
        let missing = total - (head.len() + tail.len()) as u64;
        if missing > 0 {
            head.extend_from_slice(format!("\n[… {missing} bytes left out …]\n").as_bytes());
        }
        head.extend_from_slice(&tail);
        String::from_utf8_lossy(&head).into_owned()
    }

    /// How many bytes came in all.
    pub fn total(&self) -> u64 {
        self.lock().total
    }

    /// The stream to write to, for a host that hands it to a guest by itself.
    pub fn into_stream(self) -> DynOutputStream {
        self.through(None)
    }

    /// The stream to write to; what a filter takes out is neither kept nor sent on.
    pub(crate) fn writer(&self, filter: Option<Box<dyn Filter>>) -> DynOutputStream {
        self.clone().through(filter)
    }

    fn through(self, filter: Option<Box<dyn Filter>>) -> DynOutputStream {
        Box::new(Writer { kept: self.kept, live: self.live, permit: None, gone: false, filter })
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Head and tail of a stream within a fixed space, and the count of all of it.
#[derive(Debug)]
struct Kept {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    half: usize,
    total: u64,
    total_max: u64,
}

impl Kept {
    fn new(space: usize, total_max: u64) -> Self {
        Kept { head: Vec::new(), tail: VecDeque::new(), half: space / 2, total: 0, total_max }
    }

    fn push(&mut self, bytes: &[u8]) -> Result<(), Hit> {
        self.total = self.total.saturating_add(bytes.len() as u64);
        let (head, rest) = bytes.split_at(bytes.len().min(self.half - self.head.len()));
        self.head.extend_from_slice(head);
        let rest = &rest[rest.len().saturating_sub(self.half)..];
        let over = (self.tail.len() + rest.len()).saturating_sub(self.half);
        self.tail.drain(..over);
        self.tail.extend(rest);
        match self.total > self.total_max {
            true => Err(Hit { limit: Limit::Output, allowed: self.total_max, at: self.total }),
            false => Ok(()),
        }
    }
}

struct Writer {
    kept: Arc<Mutex<Kept>>,
    live: Option<mpsc::Sender<Bytes>>,
    /// A place in the channel, taken before the guest may write.
    permit: Option<mpsc::OwnedPermit<Bytes>>,
    /// Nobody receives any more.
    gone: bool,
    /// Takes out what must not leave.
    filter: Option<Box<dyn Filter>>,
}

impl Writer {
    fn take(&mut self, bytes: Bytes) -> Result<(), Hit> {
        if bytes.is_empty() {
            return Ok(());
        }
        let pushed = self.kept.lock().unwrap_or_else(PoisonError::into_inner).push(&bytes);
        if let Some(permit) = self.permit.take() {
            permit.send(bytes);
        }
        pushed
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let Some(mut filter) = self.filter.take() else { return };
        let rest = filter.end();
        if self.permit.is_none()
            && let (Some(live), Ok(runtime)) = (self.live.take(), tokio::runtime::Handle::try_current())
        {
            // Nobody is there any more to wait for a place, so the rest waits by itself.
            let rest = rest.clone();
            runtime.spawn(async move { live.send(rest).await });
        }
        // The stream has ended; a limit that is hit now has nobody left to stop.
        let _ = self.take(rest);
    }
}

#[async_trait]
impl Pollable for Writer {
    async fn ready(&mut self) {
        if let (None, Some(live), false) = (&self.permit, &self.live, self.gone) {
            match live.clone().reserve_owned().await {
                Ok(permit) => self.permit = Some(permit),
                Err(_) => self.gone = true,
            }
        }
    }
}

impl OutputStream for Writer {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        if bytes.len() > CHUNK {
            return Err(StreamError::trap("wrote more than the stream had allowed"));
        }
        let bytes = match &mut self.filter {
            Some(filter) => filter.pass(bytes),
            None => bytes,
        };
        self.take(bytes).map_err(|hit| StreamError::Trap(hit.into()))
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        if let (None, Some(live), false) = (&self.permit, &self.live, self.gone) {
            match live.clone().try_reserve_owned() {
                Ok(permit) => self.permit = Some(permit),
                Err(mpsc::error::TrySendError::Full(_)) => return Ok(0),
                Err(mpsc::error::TrySendError::Closed(_)) => self.gone = true,
            }
        }
        if self.gone { Err(StreamError::Closed) } else { Ok(CHUNK) }
    }
}

struct Silent;

#[async_trait]
impl Pollable for Silent {
    async fn ready(&mut self) {
        std::future::pending().await
    }
}

impl InputStream for Silent {
    fn read(&mut self, _: usize) -> StreamResult<Bytes> {
        Ok(Bytes::new())
    }
}

/// Where a guest's own standard output and error go: the tail is kept for a trap's report.
#[derive(Clone, Debug)]
pub(crate) struct Said(Arc<Mutex<Kept>>);

/// Bytes kept of a guest's own output, as the contract keeps of a worker's; half head, half tail.
const SAID_BYTES: usize = 8_000;

impl Said {
    pub(crate) fn new(limits: &Limits) -> Self {
        Said(Arc::new(Mutex::new(Kept::new(SAID_BYTES, limits.get(Limit::Output)))))
    }

    /// The text, with everything a terminal could act on escaped.
    pub(crate) fn text(&self) -> String {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = kept.head.iter().chain(&kept.tail).copied().collect();
        String::from_utf8_lossy(&bytes).trim_end().escape_debug().to_string()
    }
}

impl IsTerminal for Said {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Said {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(Writer { kept: self.0.clone(), live: None, permit: None, gone: false, filter: None })
    }
}

impl AsyncWrite for Said {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let pushed = self.0.lock().unwrap_or_else(PoisonError::into_inner).push(bytes);
        Poll::Ready(pushed.map(|()| bytes.len()).map_err(io::Error::other))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(space: usize, pieces: &[&str]) -> (String, String, u64) {
        let mut kept = Kept::new(space, u64::MAX);
        for piece in pieces {
            kept.push(piece.as_bytes()).unwrap();
        }
        let tail: Vec<u8> = kept.tail.iter().copied().collect();
        (String::from_utf8(kept.head).unwrap(), String::from_utf8(tail).unwrap(), kept.total)
    }

    #[test]
    fn head_and_tail_are_kept_and_all_is_counted() {
        for (pieces, head, tail, total) in [
            (&["abc"][..], "abc", "", 3),
            (&["abcdef"], "abcd", "ef", 6),
            (&["abcdefgh"], "abcd", "efgh", 8),
            (&["ab", "cd", "ef", "gh", "ij"], "abcd", "ghij", 10),
            (&["abcdefghijklmnop", "q"], "abcd", "nopq", 17),
        ] {
            assert_eq!(kept(8, pieces), (head.into(), tail.into(), total), "{pieces:?}");
        }
    }

    #[test]
    fn text_says_how_much_is_missing() {
        let limits = Limits::default().with(Limit::OutputKept, 4).unwrap();
        let output = Output::new(&limits);
        output.writer(None).write(Bytes::from_static(b"abcdefgh")).unwrap();
        assert_eq!(output.text(), "ab\n[… 4 bytes left out …]\ngh");
    }

    #[test]
    fn the_byte_above_the_limit_ends_the_stream() {
        let limits = Limits::default().with(Limit::Output, 4).unwrap();
        let mut writer = Output::new(&limits).writer(None);
        writer.write(Bytes::from_static(b"abcd")).unwrap();
        let Err(StreamError::Trap(error)) = writer.write(Bytes::from_static(b"e")) else { panic!() };
        assert_eq!(*error.downcast_ref::<Hit>().unwrap(), Hit { limit: Limit::Output, allowed: 4, at: 5 });
    }

    #[tokio::test]
    async fn a_full_channel_makes_the_writer_wait_and_a_closed_one_closes_the_stream() {
        let (sender, mut receiver) = mpsc::channel(1);
        let mut writer = Output::new(&Limits::default()).with_live(sender).writer(None);
        assert_eq!(writer.check_write().unwrap(), CHUNK);
        writer.write(Bytes::from_static(b"a")).unwrap();
        assert_eq!(writer.check_write().unwrap(), 0);
        assert_eq!(receiver.recv().await.unwrap(), "a");
        writer.ready().await;
        assert_eq!(writer.check_write().unwrap(), CHUNK);
        drop(receiver);
        writer.write(Bytes::from_static(b"b")).unwrap();
        writer.ready().await;
        assert!(matches!(writer.check_write(), Err(StreamError::Closed)));
    }
}
