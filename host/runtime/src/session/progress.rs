//! How far a transfer is, for whoever watches.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, ReadBuf};

/// Bytes of the transfer that is under way in a session, as an archive: a little more than the files hold.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<Counters>);

#[derive(Debug, Default)]
struct Counters {
    moved: AtomicU64,
    expected: AtomicU64,
}

impl Progress {
    /// Bytes moved so far.
    pub fn moved(&self) -> u64 {
        self.0.moved.load(Ordering::Relaxed)
    }

    /// Bytes expected in all; none where only the sandbox knows.
    pub fn expected(&self) -> Option<u64> {
        Some(self.0.expected.load(Ordering::Relaxed)).filter(|bytes| *bytes > 0)
    }

    /// Begins another transfer.
    pub(super) fn begin(&self, expected: Option<u64>) {
        self.0.moved.store(0, Ordering::Relaxed);
        self.0.expected.store(expected.unwrap_or(0), Ordering::Relaxed);
    }

    /// A reader whose bytes are counted.
    pub(super) fn count<R>(&self, reader: R) -> Counted<R> {
        Counted { reader, progress: self.clone() }
    }
}

pub(super) struct Counted<R> {
    reader: R,
    progress: Progress,
}

impl<R: AsyncRead + Unpin> AsyncRead for Counted<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = into.filled().len();
        let read = Pin::new(&mut self.reader).poll_read(context, into);
        let moved = (into.filled().len() - before) as u64;
        self.progress.0.moved.fetch_add(moved, Ordering::Relaxed);
        read
    }
}
