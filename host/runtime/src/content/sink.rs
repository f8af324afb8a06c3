//! What a guest writes.

use super::stream::Writing;
use leasehold_engine::bindings::imports::transfer::{Entry, EntryKind, TransferError};
use leasehold_engine::bindings::port::SinkContent;
use leasehold_sync::{FileSink, Inlet, Moved, SinkEntry, SinkError, SourceKind, TreeSink};
use wasmtime_wasi::async_trait;
use wasmtime_wasi::p2::DynOutputStream;

/// A tree.
pub(crate) struct TreeContent(pub(crate) TreeSink);

#[async_trait]
impl SinkContent for TreeContent {
    async fn tar(&mut self) -> Result<DynOutputStream, TransferError> {
        Ok(stream(self.0.tar().map_err(told)?))
    }

    async fn put(&mut self, entry: Entry) -> Result<Option<DynOutputStream>, TransferError> {
        let kind = match entry.kind {
            EntryKind::File(size) => SourceKind::File(size),
            EntryKind::Directory => SourceKind::Directory,
            EntryKind::Symlink(target) => SourceKind::Link(target.into()),
        };
        let entry = SinkEntry { path: entry.path.into(), kind, mode: entry.mode };
        Ok(self.0.put(entry).await.map_err(told)?.map(stream))
    }

    async fn finish(&mut self) -> Result<(), TransferError> {
        self.0.finish().await.map_err(told)
    }

    fn totals(&self) -> (u64, u64) {
        let Moved { files, bytes } = self.0.totals();
        (files, bytes)
    }
}

/// A file, whose bytes come bare or as the only entry.
pub(crate) struct FileContent(pub(crate) FileSink);

#[async_trait]
impl SinkContent for FileContent {
    async fn tar(&mut self) -> Result<DynOutputStream, TransferError> {
        Ok(stream(self.0.bare().map_err(told)?))
    }

    async fn put(&mut self, entry: Entry) -> Result<Option<DynOutputStream>, TransferError> {
        match (&entry.kind, entry.path.as_str()) {
            (EntryKind::File(_), "") => Ok(Some(stream(self.0.bare().map_err(told)?))),
            _ => Err(TransferError::Refused("one file is expected, as an entry with an empty path".into())),
        }
    }

    async fn finish(&mut self) -> Result<(), TransferError> {
        self.0.finish().await.map_err(told)
    }

    fn totals(&self) -> (u64, u64) {
        let Moved { files, bytes } = self.0.totals();
        (files, bytes)
    }
}

fn stream(inlet: Inlet) -> DynOutputStream {
    Box::new(Writing(inlet))
}

fn told(error: SinkError) -> TransferError {
    match error {
        SinkError::Used => TransferError::Closed,
        refused => TransferError::Refused(refused.to_string()),
    }
}
