//! Putting back what the sandbox changed.
//!
//! Three states are compared: what was sent, what came back, and what the host holds now. A change of the
//! sandbox wins only over a host path that is still as it was sent; where both sides changed, the host's
//! stays and the sandbox's is put beside it. What the sandbox did not change is not touched at all.

mod apply;
mod aside;
mod decide;
mod error;
mod host;
mod lock;
mod place;
mod report;
mod taken;

pub use error::MergeError;
pub(crate) use place::PLACING;
pub use report::{Conflict, MergeReport};

use crate::confine::open_root;
use crate::incoming::Received;
use crate::manifest::Baseline;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Merges what came back into the folder it was sent from.
///
/// Waits for another merge of the folder to end. A merge that began goes on when the future is dropped,
/// because half of one serves nobody. One that stopped at an error can be run again with a fresh archive:
/// what was put in place then counts as merged.
pub async fn merge(
    baseline: Arc<Baseline>,
    received: Received,
    target: &Path,
) -> Result<MergeReport, MergeError> {
    let sent = baseline.clone();
    let survey = move || {
        let report = MergeReport { left_out: taken::left_out(&sent, &received), ..Default::default() };
        Ok((taken::differs(&sent, &received).then_some(received), report))
    };
    // A folder that nothing goes into need not even be writable.
    let (changed, report) = blocking(target, survey).await?;
    let Some(received) = changed else { return Ok(report) };
    let root = open_root(target).map_err(|source| MergeError::Open { path: target.into(), source })?;
    let lock = lock::wait(&root, target).await?;
    let folder = target.to_owned();
    let work = move || {
        let report = apply::apply(&baseline, &received, &root, &folder, report);
        drop(lock);
        report
    };
    blocking(target, work).await
}

async fn blocking<T: Send + 'static>(
    target: &Path,
    work: impl FnOnce() -> Result<T, MergeError> + Send + 'static,
) -> Result<T, MergeError> {
    // A thread can only be lost to a fault of our own or to the end of the runtime.
    let lost = |error| MergeError::Open { path: target.into(), source: io::Error::other(error) };
    tokio::task::spawn_blocking(work).await.map_err(lost)?
}
