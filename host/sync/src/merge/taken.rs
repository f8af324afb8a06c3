//! What of an archive a merge looks at.

use crate::incoming::Received;
use crate::manifest::{Baseline, Entry, Manifest};
use std::path::{Path, PathBuf};

/// Whether anything came back that is not as it was sent.
pub(super) fn differs(baseline: &Baseline, received: &Received) -> bool {
    let (sent, back) = (&baseline.manifest, &received.manifest);
    taken(baseline, back).any(|(path, entry)| !sent.get(path).is_some_and(|sent| sent.same(entry)))
        || sent.iter().any(|(path, _)| back.get(path).is_none())
}

/// The entries that the rules of the walk do not leave out.
pub(super) fn taken<'a>(
    baseline: &'a Baseline,
    back: &'a Manifest,
) -> impl Iterator<Item = (&'a Path, &'a Entry)> {
    sift(baseline, back).filter(|(out, ..)| !out).map(|(_, path, entry)| (path, entry))
}

/// What the rules leave out, each directory for all it holds.
pub(super) fn left_out(baseline: &Baseline, received: &Received) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = Vec::new();
    for (_, path, _) in sift(baseline, &received.manifest).filter(|(out, ..)| *out) {
        if !all.last().is_some_and(|last| path.starts_with(last)) {
            all.push(path.into());
        }
    }
    all
}

fn sift<'a>(baseline: &'a Baseline, back: &'a Manifest) -> impl Iterator<Item = (bool, &'a Path, &'a Entry)> {
    let mut out: Option<&Path> = None;
    back.iter().map(move |(path, entry)| {
        if !out.is_some_and(|out| path.starts_with(out)) {
            out = baseline.rules.leaves_out(path, entry.is_directory()).then_some(path);
        }
        (out.is_some(), path, entry)
    })
}
