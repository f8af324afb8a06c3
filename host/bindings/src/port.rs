//! What stands behind a resource that the host hands to a guest.
//!
//! A guest holds only a handle. The host crate that makes the content implements one of these traits and
//! boxes it; the engine moves the box into the call's resource table and drops it with the call.

use crate::generated::leasehold::host::connect::ConnectError;
use crate::generated::leasehold::host::transfer::{Entry, TransferError};
use wasmtime_wasi::async_trait;
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream};

/// Content the host provides: one mapping of an inbound operation.
#[async_trait]
pub trait SourceContent: Send + 'static {
    /// The whole content as one stream.
    async fn tar(&mut self) -> Result<DynInputStream, TransferError>;
    /// The next entry and, for a file, its bytes; none after the last.
    async fn next(&mut self) -> Result<Option<(Entry, Option<DynInputStream>)>, TransferError>;
    /// Regular files and content bytes it holds.
    fn totals(&self) -> (u64, u64);
}

/// Content the host takes: one mapping of an outbound operation.
#[async_trait]
pub trait SinkContent: Send + 'static {
    /// Takes a whole archive, or the bare bytes of a file.
    async fn tar(&mut self) -> Result<DynOutputStream, TransferError>;
    /// Announces an entry; a file's bytes go to the stream returned.
    async fn put(&mut self, entry: Entry) -> Result<Option<DynOutputStream>, TransferError>;
    /// Says that everything was written. Without it the content is thrown away.
    async fn finish(&mut self) -> Result<(), TransferError>;
    /// Regular files and content bytes it took so far.
    fn totals(&self) -> (u64, u64);
}

/// A connection to a granted endpoint.
#[async_trait]
pub trait ConnectionContent: Send + 'static {
    /// What arrives. None when it was taken before.
    fn incoming(&mut self) -> Option<DynInputStream>;
    /// What is sent. None when it was taken before.
    fn outgoing(&mut self) -> Option<DynOutputStream>;
    /// Closes the sending half.
    async fn finish(&mut self) -> Result<(), ConnectError>;
}

/// The host half of `leasehold:host/transfer.source`.
pub struct Source(pub Box<dyn SourceContent>);

/// The host half of `leasehold:host/transfer.sink`.
pub struct Sink(pub Box<dyn SinkContent>);

/// The host half of `leasehold:host/connect.connection`.
pub struct Connection(pub Box<dyn ConnectionContent>);
