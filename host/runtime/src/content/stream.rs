//! The two ends of a pipe as streams of a guest.

use bytes::Bytes;
use leasehold_sync::{Inlet, Outlet};
use wasmtime_wasi::async_trait;
use wasmtime_wasi::p2::{InputStream, OutputStream, Pollable, StreamError, StreamResult};

/// What the host sends, for a guest to read.
pub(super) struct Reading(pub(super) Outlet);

#[async_trait]
impl Pollable for Reading {
    async fn ready(&mut self) {
        self.0.ready().await;
    }
}

impl InputStream for Reading {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        match self.0.pull(size) {
            Ok(Some(chunk)) => Ok(chunk),
            Ok(None) => Err(StreamError::Closed),
            Err(error) => Err(StreamError::LastOperationFailed(error.into())),
        }
    }
}

/// What the host takes, for a guest to write.
pub(super) struct Writing(pub(super) Inlet);

#[async_trait]
impl Pollable for Writing {
    async fn ready(&mut self) {
        self.0.ready().await;
    }
}

impl OutputStream for Writing {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.0.give(bytes).map_err(|_| StreamError::Closed)
    }

    fn flush(&mut self) -> StreamResult<()> {
        // Whether it is on the disk is asked by finishing, which waits for the whole.
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        self.0.room().map_err(|_| StreamError::Closed)
    }
}
