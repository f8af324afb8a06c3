//! `leasehold:host/transfer`: hands a guest the content that stands behind its handles.

use crate::call::CallState;
use leasehold_bindings::imports::transfer::{Entry, Host, HostSink, HostSource, TransferError};
use leasehold_bindings::port::{Sink, Source};
use wasmtime::component::Resource;
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream};

impl Host for CallState {}

impl HostSource for CallState {
    async fn tar(
        &mut self,
        source: Resource<Source>,
    ) -> wasmtime::Result<Result<Resource<DynInputStream>, TransferError>> {
        Ok(match self.table.get_mut(&source)?.0.tar().await {
            Ok(stream) => Ok(self.push_input(stream)?),
            Err(error) => Err(error),
        })
    }

    async fn next(
        &mut self,
        source: Resource<Source>,
    ) -> wasmtime::Result<Result<Option<(Entry, Option<Resource<DynInputStream>>)>, TransferError>> {
        Ok(match self.table.get_mut(&source)?.0.next().await {
            Ok(Some((entry, content))) => {
                Ok(Some((entry, content.map(|stream| self.push_input(stream)).transpose()?)))
            }
            Ok(None) => Ok(None),
            Err(error) => Err(error),
        })
    }

    async fn totals(&mut self, source: Resource<Source>) -> wasmtime::Result<(u64, u64)> {
        Ok(self.table.get(&source)?.0.totals())
    }

    async fn drop(&mut self, source: Resource<Source>) -> wasmtime::Result<()> {
        self.table.delete(source)?;
        Ok(())
    }
}

impl HostSink for CallState {
    async fn tar(
        &mut self,
        sink: Resource<Sink>,
    ) -> wasmtime::Result<Result<Resource<DynOutputStream>, TransferError>> {
        Ok(match self.table.get_mut(&sink)?.0.tar().await {
            Ok(stream) => Ok(self.push_output(stream)?),
            Err(error) => Err(error),
        })
    }

    async fn put(
        &mut self,
        sink: Resource<Sink>,
        entry: Entry,
    ) -> wasmtime::Result<Result<Option<Resource<DynOutputStream>>, TransferError>> {
        Ok(match self.table.get_mut(&sink)?.0.put(entry).await {
            Ok(stream) => Ok(stream.map(|stream| self.push_output(stream)).transpose()?),
            Err(error) => Err(error),
        })
    }

    async fn finish(&mut self, sink: Resource<Sink>) -> wasmtime::Result<Result<(), TransferError>> {
        Ok(self.table.get_mut(&sink)?.0.finish().await)
    }

    async fn totals(&mut self, sink: Resource<Sink>) -> wasmtime::Result<(u64, u64)> {
        Ok(self.table.get(&sink)?.0.totals())
    }

    async fn drop(&mut self, sink: Resource<Sink>) -> wasmtime::Result<()> {
        self.table.delete(sink)?;
        Ok(())
    }
}
