//! Trees as the content behind a guest's handles: one archive stream each way.

use leasehold_engine::bindings::imports::transfer::{Entry, TransferError};
use leasehold_engine::bindings::port::{SinkContent, SourceContent};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::io::{AsyncRead, AsyncWrite};
use wasmtime_wasi::async_trait;
use wasmtime_wasi::p2::pipe::{AsyncReadStream, AsyncWriteStream};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream};

/// How much of an archive waits between the host and a guest.
const PENDING: usize = 64 << 10;

/// An archive for a guest to read.
pub(crate) struct Archive<R>(pub(crate) Option<R>);

#[async_trait]
impl<R: AsyncRead + Send + Unpin + 'static> SourceContent for Archive<R> {
    async fn tar(&mut self) -> Result<DynInputStream, TransferError> {
        let archive = self.0.take().ok_or(TransferError::Closed)?;
        Ok(Box::new(AsyncReadStream::new(archive)))
    }

    async fn next(&mut self) -> Result<Option<(Entry, Option<DynInputStream>)>, TransferError> {
        Err(one_way())
    }
}

/// A place for a guest to write an archive to.
pub(crate) struct Taken<W> {
    pub(crate) into: Option<W>,
    /// Set when the guest says that everything was written.
    pub(crate) finished: Arc<AtomicBool>,
}

#[async_trait]
impl<W: AsyncWrite + Send + Unpin + 'static> SinkContent for Taken<W> {
    async fn tar(&mut self) -> Result<DynOutputStream, TransferError> {
        let into = self.into.take().ok_or(TransferError::Closed)?;
        Ok(Box::new(AsyncWriteStream::new(PENDING, into)))
    }

    async fn put(&mut self, _: Entry) -> Result<Option<DynOutputStream>, TransferError> {
        Err(one_way())
    }

    async fn finish(&mut self) -> Result<(), TransferError> {
        self.finished.store(true, Ordering::Release);
        Ok(())
    }
}

fn one_way() -> TransferError {
    TransferError::Failed("entries one by one are not offered by this host yet; use `tar`".into())
}
