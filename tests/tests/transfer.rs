//! Content passes between a provider and the traits a host implements.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use bytes::Bytes;
use leasehold_engine::CallOptions;
use leasehold_engine::bindings::imports::transfer::{Entry, EntryKind, TransferError};
use leasehold_engine::bindings::port::{Sink, SinkContent, Source, SourceContent};
use leasehold_engine::bindings::sync_types::MappingKind;
use leasehold_engine::call::stream::{Output, input_bytes};
use leasehold_engine::hook::{Inbound, InboundOperation, Outbound, OutboundOperation, SyncIn, SyncOut};
use leasehold_engine::{CallError, Finished};
use leasehold_tests::{context, lease, provider};
use std::sync::{Arc, Mutex};
use wasmtime_wasi::async_trait;
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream};

const CONTENT: &[u8] = b"what the file holds";

/// One file, either way.
struct OneFile {
    left: bool,
}

#[async_trait]
impl SourceContent for OneFile {
    async fn tar(&mut self) -> Result<DynInputStream, TransferError> {
        Ok(input_bytes(Bytes::from_static(CONTENT)))
    }

    async fn next(&mut self) -> Result<Option<(Entry, Option<DynInputStream>)>, TransferError> {
        if !std::mem::take(&mut self.left) {
            return Ok(None);
        }
        let kind = EntryKind::File(CONTENT.len() as u64);
        let entry = Entry { path: "a/file".into(), kind, mode: 0o600 };
        Ok(Some((entry, Some(input_bytes(Bytes::from_static(CONTENT))))))
    }

    fn totals(&self) -> (u64, u64) {
        (1, CONTENT.len() as u64)
    }
}

/// Keeps what it is given, and whether the guest said that it was all.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<(Vec<String>, bool)>>);

#[async_trait]
impl SinkContent for Kept {
    async fn tar(&mut self) -> Result<DynOutputStream, TransferError> {
        self.0.lock().unwrap().0.push("tar".into());
        Ok(Output::new(&Default::default()).into_stream())
    }

    async fn put(&mut self, entry: Entry) -> Result<Option<DynOutputStream>, TransferError> {
        self.0.lock().unwrap().0.push(entry.path);
        Ok(matches!(entry.kind, EntryKind::File(_)).then(|| Output::new(&Default::default()).into_stream()))
    }

    async fn finish(&mut self) -> Result<(), TransferError> {
        self.0.lock().unwrap().1 = true;
        Ok(())
    }

    fn totals(&self) -> (u64, u64) {
        (1, CONTENT.len() as u64)
    }
}

/// A source that fails as soon as it is asked.
struct Broken;

#[async_trait]
impl SourceContent for Broken {
    async fn tar(&mut self) -> Result<DynInputStream, TransferError> {
        Err(TransferError::Failed("a/file cannot be read".into()))
    }

    async fn next(&mut self) -> Result<Option<(Entry, Option<DynInputStream>)>, TransferError> {
        Err(TransferError::Failed("a/file cannot be read".into()))
    }

    fn totals(&self) -> (u64, u64) {
        (1, CONTENT.len() as u64)
    }
}

/// A source whose own code fails.
struct Panicking;

#[async_trait]
impl SourceContent for Panicking {
    async fn tar(&mut self) -> Result<DynInputStream, TransferError> {
        panic!("a fault of the host")
    }

    async fn next(&mut self) -> Result<Option<(Entry, Option<DynInputStream>)>, TransferError> {
        panic!("a fault of the host")
    }

    fn totals(&self) -> (u64, u64) {
        (1, CONTENT.len() as u64)
    }
}

fn inbound(kind: MappingKind, source: impl SourceContent) -> SyncIn {
    let mapping =
        Inbound { target_path: "/workspace/a".into(), kind, mode: None, source: Source(Box::new(source)) };
    let operation =
        InboundOperation { operation_id: "sync-op-1".into(), mappings: vec![mapping], post_upload: vec![] };
    SyncIn { lease: lease(), operations: vec![operation] }
}

#[tokio::test]
async fn a_provider_reads_what_the_host_gives_and_reports_it_as_it_was() {
    for kind in [MappingKind::File, MappingKind::Directory] {
        let hook = inbound(kind, OneFile { left: true });
        let finished = provider("full").call(hook, context("{}"), &CallOptions::default()).await;
        let results = finished.answer.unwrap().unwrap();
        let found: Vec<_> = results.iter().map(|r| (r.operation_id.as_str(), r.files, r.bytes)).collect();
        assert_eq!(found, [("sync-op-1", 1, CONTENT.len() as u64)], "{kind:?}");
        assert_eq!(finished.bill.bytes_in, CONTENT.len() as u64, "{kind:?}");
    }
}

#[tokio::test]
async fn a_source_that_fails_is_told_to_the_guest_and_nothing_is_reported_as_moved() {
    let hook = inbound(MappingKind::Directory, Broken);
    let Finished { answer, .. } = provider("full").call(hook, context("{}"), &CallOptions::default()).await;
    let error = answer.unwrap().unwrap_err();
    assert!(format!("{error:?}").contains("a/file cannot be read"), "{error:?}");
}

#[tokio::test]
async fn what_a_provider_writes_reaches_the_sink_and_is_finished() {
    for kind in [MappingKind::File, MappingKind::Directory] {
        let kept = Kept::default();
        let mapping = Outbound {
            source_path: "/workspace/a".into(),
            kind,
            exclude: vec![],
            follow_symlinks: false,
            sink: Sink(Box::new(kept.clone())),
        };
        let operation = OutboundOperation { operation_id: "sync-op-2".into(), mappings: vec![mapping] };
        let hook = SyncOut { lease: lease(), operations: vec![operation] };
        let finished = provider("full").call(hook, context("{}"), &CallOptions::default()).await;
        let results = finished.answer.unwrap().unwrap();
        assert_eq!(results[0].operation_id, "sync-op-2");
        let (entries, complete) = kept.0.lock().unwrap().clone();
        assert!(complete && !entries.is_empty(), "{kind:?}: {entries:?}");
        assert_eq!(finished.bill.bytes_out, results[0].bytes, "{kind:?}");
    }
}

#[tokio::test]
async fn a_provider_that_claims_to_have_moved_what_it_never_read_is_seen_in_the_bill() {
    let hook = inbound(MappingKind::File, OneFile { left: true });
    let lying = context("{\"hostile\":\"lie\"}");
    let finished = provider("hostile").call(hook, lying, &CallOptions::default()).await;
    let results = finished.answer.unwrap().unwrap();
    assert!(results[0].bytes > 0);
    assert_eq!(finished.bill.bytes_in, 0);
}

#[tokio::test]
async fn more_mappings_than_handles_end_the_call_with_the_limit() {
    let small = leasehold_tests::options(&[(leasehold_engine::Limit::Handles, 10)]);
    let mappings = (0..20).map(|_| Inbound {
        target_path: "/workspace/a".into(),
        kind: MappingKind::File,
        mode: None,
        source: Source(Box::new(OneFile { left: true })),
    });
    let operation = InboundOperation {
        operation_id: "sync-op-1".into(),
        mappings: mappings.collect(),
        post_upload: vec![],
    };
    let hook = SyncIn { lease: lease(), operations: vec![operation] };
    let finished = provider("full").call(hook, context("{}"), &small).await;
    assert_eq!(finished.answer.map_err(|error| CallError::code(&error)).unwrap_err(), "handles");
}

#[tokio::test]
async fn a_panic_of_the_host_inside_a_call_is_an_outcome_and_the_engine_goes_on() {
    let full = provider("full");
    let finished =
        full.call(inbound(MappingKind::File, Panicking), context("{}"), &CallOptions::default()).await;
    let error = finished.answer.unwrap_err();
    assert_eq!(error.code(), "host-panic");
    assert!(error.to_string().contains("a fault of the host"), "{error}");
    let hook = inbound(MappingKind::File, OneFile { left: true });
    full.call(hook, context("{}"), &CallOptions::default()).await.answer.unwrap().unwrap();
}
