//! Folders in and out.

use super::Session;
use crate::content::{Archive, Taken};
use crate::error::Error;
use crate::installed::convert;
use leasehold_contract::Method;
use leasehold_engine::bindings::port::{Sink, Source};
use leasehold_engine::bindings::sync_types::{MappingKind, OperationResult};
use leasehold_engine::hook::{Inbound, InboundOperation, Outbound, OutboundOperation, SyncIn, SyncOut};
use leasehold_sync::{
    Baseline, HEAVY, Limits as SyncLimits, Manifest, MergeReport, ReceiveError, Rules, Tree, WalkOptions,
    incoming, merge, outgoing,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::io::duplex;
use tokio_util::sync::CancellationToken;

/// Where the workspace is in a sandbox whose provider says nothing else.
const WORKSPACE: &str = "/workspace";

/// How much of an archive waits between a guest and the host.
const PENDING: usize = 256 << 10;

/// A folder that was sent in.
#[derive(Debug)]
pub struct Synced {
    folder: PathBuf,
    baseline: Arc<Baseline>,
}

impl Session {
    /// Sends a folder to the workspace.
    ///
    /// # Errors
    /// When the folder cannot be read or sent whole, or the provider's numbers are not the host's.
    pub async fn sync_in(&self, folder: &Path, options: WalkOptions) -> Result<Synced, Error> {
        self.needs(&[Method::SyncIn, Method::SyncOut])?;
        let folder = folder.to_owned();
        let walked = folder.clone();
        let tree = tokio::task::spawn_blocking(move || {
            // What a host that died on its way back has left. A folder that cannot be read is told by the walk.
            let _ = leasehold_sync::sweep(&walked);
            Tree::walk(&walked, options)
        })
        .await;
        let tree = tree.map_err(|_| Error::CutOff { doing: "listing the folder" })??;
        self.progress.begin(Some(tree.totals().1));
        let (archive, summary) = outgoing(tree);
        let archive = self.progress.count(archive);
        let mapping = Inbound {
            target_path: WORKSPACE.into(),
            kind: MappingKind::Directory,
            mode: None,
            source: Source(Box::new(Archive(Some(archive)))),
        };
        let operation =
            InboundOperation { operation_id: operation_id(), mappings: vec![mapping], post_upload: vec![] };
        let lease = self.allocation()?;
        let hook = SyncIn { lease, operations: vec![operation] };
        let finished = self.call(Method::SyncIn, None, hook, CancellationToken::new()).await;
        // A folder that could not be read is the reason, whatever the provider made of it.
        let baseline = summary.finish().await?;
        let finished = finished?;
        let results = finished.answer?.map_err(convert::fault)?;
        let (files, bytes) = baseline.manifest.totals();
        counted(&results, (files, bytes))?;
        self.record(&format!("{files} files of {bytes} bytes went in"), &finished.bill).await;
        Ok(Synced { folder, baseline: Arc::new(baseline) })
    }

    /// Brings back what the sandbox changed, and puts it into the folder where the folder was not changed
    /// meanwhile.
    ///
    /// # Errors
    /// When the provider does not deliver everything, or what it delivers breaks a rule; the folder is
    /// then as it was.
    pub async fn sync_out(&self, synced: Synced) -> Result<MergeReport, Error> {
        self.needs(&[Method::SyncIn, Method::SyncOut])?;
        let Synced { folder, baseline } = synced;
        self.bring_back(&folder, baseline).await
    }

    /// Brings everything the workspace holds into a folder that holds nothing of it yet.
    ///
    /// # Errors
    /// As [`Session::sync_out`]; the folder is then as it was.
    pub async fn export(&self, folder: &Path) -> Result<MergeReport, Error> {
        self.needs(&[Method::SyncIn, Method::SyncOut])?;
        let nothing = Baseline { manifest: Manifest::default(), rules: Rules::default(), skipped: 0 };
        self.bring_back(folder, Arc::new(nothing)).await
    }

    async fn bring_back(&self, folder: &Path, baseline: Arc<Baseline>) -> Result<MergeReport, Error> {
        let limits = SyncLimits::default().beyond(&baseline.manifest);
        let (of_guest, into) = duplex(PENDING);
        let finished = Arc::new(AtomicBool::new(false));
        let sink = Sink(Box::new(Taken { into: Some(into), finished: finished.clone() }));
        let mapping = Outbound {
            source_path: WORKSPACE.into(),
            kind: MappingKind::Directory,
            // What they hold, not what is called like them: a file of that name was sent and must come back.
            exclude: HEAVY.iter().map(|name| format!("{name}/*")).collect(),
            follow_symlinks: false,
            sink,
        };
        let operation = OutboundOperation { operation_id: operation_id(), mappings: vec![mapping] };
        let hook = SyncOut { lease: self.allocation()?, operations: vec![operation] };
        let call = self.call(Method::SyncOut, None, hook, CancellationToken::new());
        self.progress.begin(None);
        let receive = incoming(self.progress.count(of_guest), folder, limits, Some(baseline.clone()));
        let (call, received) = tokio::join!(call, receive);
        let call = call?;
        // What the host itself refused or could not write is the reason for all that failed after it.
        let received = match received {
            Err(error @ (ReceiveError::Stream(_) | ReceiveError::Cancelled)) => Err(error),
            received => Ok(received?),
        };
        let results = call.answer?.map_err(convert::fault)?;
        let received = received?;
        if !finished.load(Ordering::Acquire) {
            return Err(Error::Unfinished);
        }
        let (files, bytes) = received.manifest().totals();
        counted(&results, (files, bytes))?;
        let report = merge(baseline, received, folder).await?;
        self.record(&format!("{files} files of {bytes} bytes came back"), &call.bill).await;
        self.work_is_back().await?;
        Ok(report)
    }

    /// Says that the sandbox may hold work from now on, where such work must not be lost.
    pub(super) async fn may_hold_work(&self) -> Result<(), Error> {
        if self.lease.preserve {
            self.leases.set_unexported(&self.lease.id, true).await?;
        }
        Ok(())
    }

    /// Says that the sandbox holds nothing that is not here as well.
    async fn work_is_back(&self) -> Result<(), Error> {
        if self.lease.preserve {
            self.leases.set_unexported(&self.lease.id, false).await?;
        }
        Ok(())
    }
}

/// An id that says nothing of what is moved.
fn operation_id() -> String {
    crate::id::random("sync-op")
}

/// What the provider says it moved has to be what passed through the host.
fn counted(results: &[OperationResult], (files, bytes): (u64, u64)) -> Result<(), Error> {
    let said = results.iter().fold((0_u64, 0_u64), |(files, bytes), result| {
        (files.saturating_add(result.files), bytes.saturating_add(result.bytes))
    });
    for (what, said, seen) in [("files", said.0, files), ("bytes", said.1, bytes)] {
        if said != seen {
            return Err(Error::Counts { what, said, seen });
        }
    }
    Ok(())
}
