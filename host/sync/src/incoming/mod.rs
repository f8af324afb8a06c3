//! What an untrusted sandbox gives, into a staging directory and from there into place.
//!
//! Two passes: everything is checked while it is staged, and only what kept to every rule is put in place. A
//! broken rule refuses all of it. The staging directory goes away with an error, with a dropped future, and
//! with the [`Received`] that holds it.

mod admit;
mod check;
mod entries;
mod error;
mod extract;
mod fault;
mod file;
mod place;
mod sink;
mod staging;

pub use entries::SinkEntry;
pub use error::{PlaceError, ReceiveError};
pub use file::{FileSink, ReceivedFile};
pub use sink::{Arriving, SinkError, TreeSink};

use crate::exclude::Excludes;
use crate::limits::Limits;
use crate::manifest::{Baseline, Manifest};
use crate::progress::Progress;
pub(crate) use staging::{Staging, remove, sweep_prefixes};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::io::AsyncRead;

/// A tree that kept to every rule, unpacked and not yet put anywhere. Dropping it removes all of it, which
/// waits on the disk.
#[derive(Debug)]
pub struct Received {
    pub(crate) manifest: Manifest,
    pub(crate) staging: Staging,
}

impl Received {
    /// What was received.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Where it lies until then: files with their modes, links, and every directory open to its owner only.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.staging.path()
    }
}

/// What is received, and how much of it.
#[derive(Clone, Debug, Default)]
pub struct Receiving {
    /// What it may hold.
    pub limits: Limits,
    /// What was sent before. What the host itself sent may come back as it was, even where a rule would refuse
    /// it: links that lead out of the folder, names that differ by case.
    pub known: Option<Arc<Baseline>>,
    /// What is passed over, whether the sandbox left it out or not.
    pub exclude: Excludes,
    /// Counts on the way.
    pub progress: Progress,
}

/// Unpacks an archive into a new directory inside `beside`, which has to be on the file system of the target
/// that it is later put in; the target itself will do, because walks pass over the staging directory.
///
/// # Errors
/// When it breaks a rule, the stream fails, or it cannot be written.
pub async fn incoming(
    reader: impl AsyncRead,
    beside: &Path,
    limits: Limits,
    known: Option<Arc<Baseline>>,
) -> Result<Received, ReceiveError> {
    let receiving = Receiving { limits, known, ..Receiving::default() };
    let (mut sink, arriving) = TreeSink::new(beside, receiving);
    if let Ok(inlet) = sink.tar() {
        inlet.pump(reader).await;
    }
    drop(sink);
    arriving.finish().await
}
