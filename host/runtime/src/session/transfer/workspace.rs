//! The folder a run is about: in before it, and what the sandbox changed back after it.

use super::Way;
use super::native::{counted, left_out, moved};
use crate::content::{TreeContent, TreeTaken};
use crate::error::Error;
use crate::session::Session;
use leasehold_engine::Bill;
use leasehold_engine::bindings::port::{Sink, Source};
use leasehold_engine::bindings::sync_types::MappingKind;
use leasehold_engine::hook::{Inbound, InboundOperation, Outbound, OutboundOperation};
use leasehold_sync::{
    Baseline, Excludes, Limits, Manifest, MergeReport, Moved, Progress, ReceiveError, Received, Receiving,
    Rules, SendError, Tree, TreeSink, TreeSource, WalkOptions, coming_back, fallback, merge,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where the workspace is in a sandbox whose provider says nothing else.
pub(super) const WORKSPACE: &str = "/workspace";

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
        self.sync_in_watched(folder, options, &Progress::default()).await
    }

    /// The same, with somebody who watches.
    ///
    /// # Errors
    /// As [`Session::sync_in`].
    pub async fn sync_in_watched(
        &self,
        folder: &Path,
        options: WalkOptions,
        progress: &Progress,
    ) -> Result<Synced, Error> {
        let folder = folder.to_owned();
        let about = format!("{folder:?} {options:?}").into_bytes();
        if let Some(baseline) = Box::pin(self.send_changes(&folder, &options, &about, progress)).await? {
            return Ok(Synced { folder, baseline: Arc::new(baseline) });
        }
        let walked = folder.clone();
        let tree = super::blocking("listing the folder", move || {
            // What a host that died on its way back has left. A folder that cannot be read is told by the walk.
            let _ = leasehold_sync::sweep(&walked);
            Ok(Tree::walk(&walked, options)?)
        })
        .await?;
        let stamps = tree.stamps();
        let baseline = self.send(tree, WORKSPACE, progress).await?;
        self.remember(about, &baseline, stamps).await;
        Ok(Synced { folder, baseline: Arc::new(baseline) })
    }

    /// Sends a tree to a path of the sandbox, in place of what is there.
    pub(super) async fn send(
        &self,
        tree: Tree,
        target: &str,
        progress: &Progress,
    ) -> Result<Baseline, Error> {
        let way = self.way()?;
        let (source, summary) = TreeSource::new(tree, progress.clone());
        let mut bill = Bill::default();
        let baseline = match way {
            Way::Fallback => Box::pin(fallback::tree_in(self, source, summary, target)).await?,
            Way::Native => {
                let id = operation_id();
                let mapping = Inbound {
                    target_path: target.into(),
                    kind: MappingKind::Directory,
                    mode: None,
                    source: Source(Box::new(TreeContent(source))),
                };
                let operation = InboundOperation {
                    operation_id: id.clone(),
                    mappings: vec![mapping],
                    post_upload: vec![],
                };
                let results = self.call_in(vec![operation]).await;
                match (summary.finish().await, results) {
                    // What the provider left unread is no reason: its own fault says why.
                    (Err(SendError::Dropped { .. }), Err(error)) => return Err(error),
                    // What the host could not read is, whatever the provider made of it.
                    (Err(error), _) => return Err(error.into()),
                    (Ok(_), Err(error)) => return Err(error),
                    (Ok(baseline), Ok((results, used))) => {
                        bill = used;
                        counted(&results, &id, totals(&baseline))?;
                        baseline
                    }
                }
            }
        };
        self.went_in(totals(&baseline), &bill).await;
        Ok(baseline)
    }

    /// Brings back what the sandbox changed, and puts it into the folder where the folder was not changed
    /// meanwhile.
    ///
    /// # Errors
    /// When the provider does not deliver everything, or what it delivers breaks a rule; the folder is
    /// then as it was.
    pub async fn sync_out(&self, synced: Synced) -> Result<MergeReport, Error> {
        self.sync_out_watched(synced, &Progress::default()).await
    }

    /// The same, with somebody who watches.
    ///
    /// # Errors
    /// As [`Session::sync_out`].
    pub async fn sync_out_watched(&self, synced: Synced, progress: &Progress) -> Result<MergeReport, Error> {
        let Synced { folder, baseline } = synced;
        self.bring_back(&folder, baseline, progress).await
    }

    /// Brings everything the workspace holds into a folder that holds nothing of it yet.
    ///
    /// # Errors
    /// As [`Session::sync_out`]; the folder is then as it was.
    pub async fn export(&self, folder: &Path) -> Result<MergeReport, Error> {
        let nothing = Baseline { manifest: Manifest::default(), rules: Rules::default(), skipped: 0 };
        self.bring_back(folder, Arc::new(nothing), &Progress::default()).await
    }

    async fn bring_back(
        &self,
        folder: &Path,
        baseline: Arc<Baseline>,
        progress: &Progress,
    ) -> Result<MergeReport, Error> {
        let (received, bill) = self.receive(folder, baseline.clone(), progress).await?;
        let came = moved(&received);
        let report = merge(baseline, received, folder).await?;
        self.came_back(came, &bill).await;
        self.work_is_back().await?;
        Ok(report)
    }

    /// Says that the sandbox may hold work from now on, where such work must not be lost.
    pub(in crate::session) async fn may_hold_work(&self) -> Result<(), Error> {
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

    async fn receive(
        &self,
        folder: &Path,
        baseline: Arc<Baseline>,
        progress: &Progress,
    ) -> Result<(Received, Bill), Error> {
        let way = self.way()?;
        let exclude = left_out(&coming_back());
        let receiving = Receiving {
            limits: Limits::default().beyond(&baseline.manifest),
            known: Some(baseline),
            exclude: Excludes::new(&exclude),
            progress: progress.clone(),
        };
        let _noted = self.note(folder)?;
        let (sink, arriving) = TreeSink::new(folder, receiving);
        if way == Way::Fallback {
            let received =
                Box::pin(fallback::tree_out(self, WORKSPACE, &exclude, false, sink, arriving)).await?;
            return Ok((received, Bill::default()));
        }
        let id = operation_id();
        let mapping = Outbound {
            source_path: WORKSPACE.into(),
            kind: MappingKind::Directory,
            exclude,
            follow_symlinks: false,
            sink: Sink(Box::new(TreeTaken(sink))),
        };
        let results = self
            .call_out(vec![OutboundOperation { operation_id: id.clone(), mappings: vec![mapping] }])
            .await;
        match (arriving.finish().await, results) {
            (Err(ReceiveError::Cancelled), Ok(_)) => Err(Error::Unfinished),
            (Err(ReceiveError::Cancelled | ReceiveError::Stream(_)) | Ok(_), Err(error)) => Err(error),
            (Err(error), _) => Err(error.into()),
            (Ok(received), Ok((results, bill))) => {
                counted(&results, &id, moved(&received))?;
                Ok((received, bill))
            }
        }
    }
}

fn totals(baseline: &Baseline) -> Moved {
    let (files, bytes) = baseline.manifest.totals();
    Moved { files, bytes }
}

/// An id that says nothing of what is moved.
pub(super) fn operation_id() -> String {
    crate::id::random("sync-op")
}
