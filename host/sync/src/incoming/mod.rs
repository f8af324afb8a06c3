//! An untrusted archive into a staging directory.
//!
//! Nothing of it can be seen in the target before all of it was checked, and a broken rule refuses all of
//! it. The staging directory goes away with an error, with a dropped future, and with the [`Received`] that
//! holds it.

mod admit;
mod check;
mod error;
mod extract;
mod fault;
mod staging;

pub use error::ReceiveError;

use crate::limits::Limits;
use crate::manifest::{Baseline, Manifest};
use crate::pipe::{self, ChunkReader};
use staging::Staging;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::io::AsyncRead;

/// An archive that kept to every rule, unpacked and not yet put anywhere. Dropping it removes all of it,
/// which waits on the disk.
#[derive(Debug)]
pub struct Received {
    pub(crate) manifest: Manifest,
    pub(crate) staging: Staging,
}

impl Received {
    /// What the archive held.
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

/// Unpacks an archive into a new directory inside `beside`, which has to be on the file system of the target
/// that it is later put in; the target itself will do, because walks pass over the staging directory.
///
/// `known` is what was sent before. What the host itself sent may come back as it was, even where a rule
/// would refuse it: links that lead out of the folder, names that differ by case.
pub async fn incoming(
    reader: impl AsyncRead,
    beside: &Path,
    limits: Limits,
    known: Option<Arc<Baseline>>,
) -> Result<Received, ReceiveError> {
    let (sender, receiver) = pipe::channel();
    let beside = beside.to_owned();
    let work = tokio::task::spawn_blocking(move || {
        let staging = Staging::create(&beside)?;
        let known = known.as_ref().map(|known| &known.manifest);
        let manifest = extract::extract(ChunkReader::new(receiver), &staging, limits, known)?;
        Ok(Received { manifest, staging })
    });
    pipe::pump(reader, sender).await;
    // A thread can only be lost to a fault of our own or to the end of the runtime.
    work.await.unwrap_or(Err(ReceiveError::Cancelled))
}
