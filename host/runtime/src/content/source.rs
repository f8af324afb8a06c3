//! What a guest reads.

use super::stream::Reading;
use leasehold_engine::bindings::imports::transfer::{Entry, EntryKind, TransferError};
use leasehold_engine::bindings::port::SourceContent;
use leasehold_sync::{FileSource, Moved, Outlet, SourceEntry, SourceKind, TreeSource};
use std::io;
use wasmtime_wasi::async_trait;
use wasmtime_wasi::p2::DynInputStream;

type Next = Result<Option<(Entry, Option<DynInputStream>)>, TransferError>;

/// A tree.
pub(crate) struct TreeContent(pub(crate) TreeSource);

#[async_trait]
impl SourceContent for TreeContent {
    async fn tar(&mut self) -> Result<DynInputStream, TransferError> {
        stream(self.0.tar())
    }

    async fn next(&mut self) -> Next {
        next(self.0.next().await)
    }

    fn totals(&self) -> (u64, u64) {
        let Moved { files, bytes } = self.0.totals();
        (files, bytes)
    }
}

/// A file.
pub(crate) struct FileContent(pub(crate) FileSource);

#[async_trait]
impl SourceContent for FileContent {
    async fn tar(&mut self) -> Result<DynInputStream, TransferError> {
        stream(self.0.bare())
    }

    async fn next(&mut self) -> Next {
        next(self.0.next().await)
    }

    fn totals(&self) -> (u64, u64) {
        let Moved { files, bytes } = self.0.totals();
        (files, bytes)
    }
}

fn stream(outlet: Option<Outlet>) -> Result<DynInputStream, TransferError> {
    Ok(Box::new(Reading(outlet.ok_or(TransferError::Closed)?)))
}

fn next(item: io::Result<Option<(SourceEntry, Option<Outlet>)>>) -> Next {
    let Some((entry, outlet)) = item.map_err(|error| TransferError::Failed(error.to_string()))? else {
        return Ok(None);
    };
    // Texts of the interface are UTF-8; an archive holds any name.
    let named = entry.path.to_string_lossy().into_owned();
    let no_text = || TransferError::Failed(format!("{named:?} is no text; take the content with `tar`"));
    let kind = match entry.kind {
        SourceKind::File(size) => EntryKind::File(size),
        SourceKind::Directory => EntryKind::Directory,
        SourceKind::Link(target) => EntryKind::Symlink(target.into_string().map_err(|_| no_text())?),
    };
    let path = entry.path.into_os_string().into_string().map_err(|_| no_text())?;
    let content = outlet.map(|outlet| Box::new(Reading(outlet)) as DynInputStream);
    Ok(Some((Entry { path, kind, mode: entry.mode }, content)))
}
