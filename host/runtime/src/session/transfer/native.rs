//! Through the provider's own hooks.

use super::{Transfer, sandbox_path};
use crate::content::{FileContent, FileTaken, TreeContent, TreeTaken};
use crate::error::Error;
use crate::installed::convert;
use crate::session::Session;
use leasehold_contract::Method;
use leasehold_engine::Bill;
use leasehold_engine::bindings::port::{Sink, Source};
use leasehold_engine::bindings::sync_types::{MappingKind as WitKind, OperationResult, PostUploadCommand};
use leasehold_engine::hook::{Inbound, InboundOperation, Outbound, OutboundOperation, SyncIn, SyncOut};
use leasehold_sync::{
    Arriving, Baseline, Excludes, FileSink, FileSource, Limits, Mapping, MappingKind, Moved, Operation,
    PostUpload, Progress, Received, ReceivedFile, Receiving, Roots, SentFile, Summary, Tree, TreeSink,
    TreeSource, WalkOptions, reserved_patterns,
};
use std::path::{Path, PathBuf};
use tokio_util::sync::CancellationToken;

/// What is known of a mapping once its source was read to the end.
pub(super) enum Sent {
    Tree(Summary<Baseline>),
    File(Summary<SentFile>),
}

impl Sent {
    async fn finish(self) -> Result<Moved, Error> {
        Ok(match self {
            Sent::Tree(summary) => {
                let (files, bytes) = summary.finish().await?.manifest.totals();
                Moved { files, bytes }
            }
            Sent::File(summary) => Moved { files: 1, bytes: summary.finish().await?.bytes },
        })
    }
}

/// What a mapping received, once it is complete.
enum Taken {
    Tree(Arriving<Received>, PathBuf),
    File(Arriving<ReceivedFile>),
}

/// A mapping whose content arrived and was checked.
enum Checked {
    Tree(Received, PathBuf),
    File(ReceivedFile),
}

impl Session {
    pub(super) async fn native_in(&self, operation: &Operation, transfer: &Transfer) -> Result<Moved, Error> {
        let (mut mappings, mut sent) = (Vec::new(), Vec::new());
        for mapping in &operation.mappings {
            let (source, summary, mode) = match mapping.kind {
                MappingKind::Directory => {
                    let (source, summary) =
                        tree_source(mapping, &transfer.sources, &transfer.progress).await?;
                    (Source(Box::new(TreeContent(source))), Sent::Tree(summary), None)
                }
                MappingKind::File => {
                    let (source, summary) =
                        file_source(mapping, &transfer.sources, &transfer.progress).await?;
                    let mode = Some(source.mode());
                    (Source(Box::new(FileContent(source))), Sent::File(summary), mode)
                }
            };
            let target_path = sandbox_path(&mapping.target)?;
            mappings.push(Inbound { target_path, kind: wit_kind(mapping.kind), mode, source });
            sent.push(summary);
        }
        let id = super::workspace::operation_id();
        let post_upload = operation.post_upload.iter().map(command).collect();
        let operation = InboundOperation { operation_id: id.clone(), mappings, post_upload };
        let results = self.call_in(vec![operation]).await;
        let mut seen = Moved::default();
        for summary in sent {
            match (summary.finish().await, &results) {
                (Ok(moved), _) => seen += moved,
                // What the provider left unread is no reason: its own fault says why.
                (Err(Error::Send(leasehold_sync::SendError::Dropped { .. })), Err(_)) => {}
                // What the host could not read is, whatever the provider made of it.
                (Err(error), _) => return Err(error),
            }
        }
        let (results, bill) = results?;
        let moved = counted(&results, &id, seen)?;
        self.went_in(moved, &bill).await;
        Ok(moved)
    }

    pub(super) async fn native_out(
        &self,
        operation: &Operation,
        transfer: &Transfer,
    ) -> Result<Moved, Error> {
        let (mut mappings, mut taken) = (Vec::new(), Vec::new());
        for mapping in &operation.mappings {
            let (sink, arriving) = match mapping.kind {
                MappingKind::Directory => {
                    let (sink, arriving, name) = tree_sink(mapping, &transfer.targets, &transfer.progress)?;
                    (Sink(Box::new(TreeTaken(sink))), Taken::Tree(arriving, name))
                }
                MappingKind::File => {
                    let (sink, arriving) = file_sink(mapping, &transfer.targets, &transfer.progress)?;
                    (Sink(Box::new(FileTaken(sink))), Taken::File(arriving))
                }
            };
            mappings.push(Outbound {
                source_path: sandbox_path(&mapping.source)?,
                kind: wit_kind(mapping.kind),
                exclude: left_out(&mapping.exclude),
                follow_symlinks: mapping.follow_symlinks,
                sink,
            });
            taken.push(arriving);
        }
        let id = super::workspace::operation_id();
        let results = self.call_out(vec![OutboundOperation { operation_id: id.clone(), mappings }]).await;
        let (mut seen, mut checked) = (Moved::default(), Vec::new());
        for arriving in taken {
            let arrived = match arriving {
                Taken::Tree(arriving, name) => {
                    arriving.finish().await.map(|received| (moved(&received), Checked::Tree(received, name)))
                }
                Taken::File(arriving) => {
                    arriving.finish().await.map(|file| (file.moved(), Checked::File(file)))
                }
            };
            match (arrived, &results) {
                (Ok((moved, arrived)), _) => {
                    seen += moved;
                    checked.push(arrived);
                }
                (Err(leasehold_sync::ReceiveError::Cancelled), Err(_)) => {}
                (Err(leasehold_sync::ReceiveError::Cancelled), Ok(_)) => return Err(Error::Unfinished),
                (Err(error), _) => return Err(error.into()),
            }
        }
        // Nothing is put in place before everything of the operation is known to be there and good.
        let (results, bill) = results?;
        let counted = counted(&results, &id, seen)?;
        super::blocking("putting files in place", move || {
            checked.into_iter().try_for_each(|checked| {
                match checked {
                    Checked::Tree(received, name) => received.place(&name)?,
                    Checked::File(file) => file.place()?,
                };
                Ok(())
            })
        })
        .await?;
        self.came_back(counted, &bill).await;
        Ok(counted)
    }

    pub(super) async fn call_in(&self, operations: Vec<InboundOperation>) -> Result<Answered, Error> {
        let hook = SyncIn { lease: self.allocation()?, operations };
        let finished = Box::pin(self.call(Method::SyncIn, None, hook, CancellationToken::new())).await?;
        Ok((finished.answer?.map_err(convert::fault)?, finished.bill))
    }

    pub(super) async fn call_out(&self, operations: Vec<OutboundOperation>) -> Result<Answered, Error> {
        let hook = SyncOut { lease: self.allocation()?, operations };
        let finished = Box::pin(self.call(Method::SyncOut, None, hook, CancellationToken::new())).await?;
        Ok((finished.answer?.map_err(convert::fault)?, finished.bill))
    }
}

/// What a provider reports of a call, and what the call cost.
pub(super) type Answered = (Vec<OperationResult>, Bill);

pub(super) async fn tree_source(
    mapping: &Mapping,
    roots: &Roots,
    progress: &Progress,
) -> Result<(TreeSource, Summary<Baseline>), Error> {
    let (root, below) = below(roots, &mapping.source)?;
    let mut options = WalkOptions::everything();
    options.exclude = Excludes::new(&mapping.exclude);
    options.follow_symlinks = mapping.follow_symlinks;
    // Whoever names a directory wants all of it.
    options.max_entries = usize::MAX;
    let tree =
        super::blocking("listing a folder", move || Ok(Tree::walk_below(&root, &below, options)?)).await?;
    Ok(TreeSource::new(tree, progress.clone()))
}

pub(super) async fn file_source(
    mapping: &Mapping,
    roots: &Roots,
    progress: &Progress,
) -> Result<(FileSource, Summary<SentFile>), Error> {
    let (root, below) = below(roots, &mapping.source)?;
    let (mode, follow, progress) = (mapping.mode, mapping.follow_symlinks, progress.clone());
    super::blocking("opening a file", move || Ok(FileSource::open(&root, &below, mode, follow, progress)?))
        .await
}

/// A sink beside the target, and the target's name there.
pub(super) fn tree_sink(
    mapping: &Mapping,
    roots: &Roots,
    progress: &Progress,
) -> Result<(TreeSink, Arriving<Received>, PathBuf), Error> {
    let (root, path) = below(roots, &mapping.target)?;
    // A root itself is exchanged in the directory that holds it.
    let (root, path) = match (path.as_os_str().is_empty(), root.parent(), root.file_name()) {
        (true, Some(parent), Some(name)) => (parent.to_owned(), PathBuf::from(name)),
        _ => (root, path),
    };
    let name = path.file_name().map(PathBuf::from).ok_or(Error::WholeRoot)?;
    let receiving = Receiving {
        limits: Limits::default(),
        exclude: Excludes::new(left_out(&mapping.exclude)),
        progress: progress.clone(),
        ..Receiving::default()
    };
    let (sink, arriving) = TreeSink::below(&root, path.parent().unwrap_or(Path::new("")), receiving);
    Ok((sink, arriving, name))
}

pub(super) fn file_sink(
    mapping: &Mapping,
    roots: &Roots,
    progress: &Progress,
) -> Result<(FileSink, Arriving<ReceivedFile>), Error> {
    let (root, below) = below(roots, &mapping.target)?;
    let most = Limits::default().content_bytes;
    Ok(FileSink::new(&root, &below, mapping.mode, most, progress.clone()))
}

/// What neither side moves: what the mapping leaves out, and names of transfers under way.
pub(super) fn left_out(exclude: &[String]) -> Vec<String> {
    exclude.iter().cloned().chain(reserved_patterns().map(str::to_owned)).collect()
}

/// The root that a confined path lies under, and the path below it.
fn below(roots: &Roots, path: &Path) -> Result<(PathBuf, PathBuf), Error> {
    let split = roots.split(path).map(|(root, below)| (root.to_owned(), below.to_owned()));
    // It was admitted by one of them.
    split.ok_or(Error::WholeRoot)
}

pub(super) fn moved(received: &Received) -> Moved {
    let (files, bytes) = received.manifest().totals();
    Moved { files, bytes }
}

fn wit_kind(kind: MappingKind) -> WitKind {
    match kind {
        MappingKind::File => WitKind::File,
        MappingKind::Directory => WitKind::Directory,
    }
}

fn command(command: &PostUpload) -> PostUploadCommand {
    let PostUpload { command, cwd, timeout } = command.clone();
    let timeout_ms = timeout.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
    PostUploadCommand { command, cwd, timeout_ms }
}

/// What the provider says it moved has to be what passed through the host, of this operation and no other.
pub(super) fn counted(results: &[OperationResult], id: &str, seen: Moved) -> Result<Moved, Error> {
    let [result] = results else { return Err(Error::OtherOperations) };
    if result.operation_id != id {
        return Err(Error::OtherOperations);
    }
    for (what, said, seen) in [("files", result.files, seen.files), ("bytes", result.bytes, seen.bytes)] {
        if said != seen {
            return Err(Error::Counts { what, said, seen });
        }
    }
    Ok(seen)
}
