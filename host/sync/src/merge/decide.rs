//! The rule of the merge: three states in, one verdict out. Touches nothing.

use crate::manifest::Entry;

/// What the host holds at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Host {
    /// Something that compares.
    Entry(Entry),
    /// Something that equals nothing: a device, or a file of a size that neither side knows.
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing to do.
    Leave,
    /// Put it where nothing is.
    Add,
    /// Put it in place of what was sent.
    Replace,
    /// Take what was sent away.
    Delete,
    /// Keep the host's, and put the sandbox's beside it if there is one.
    Conflict,
}

pub(super) fn decide(sent: Option<&Entry>, back: Option<&Entry>, host: Option<&Host>) -> Verdict {
    match (sent, back) {
        (None, None) => Verdict::Leave,
        (Some(sent), Some(back)) if sent.same(back) => Verdict::Leave,
        (None, Some(back)) => match host {
            None => Verdict::Add,
            Some(host) if agrees(host, back) => Verdict::Leave,
            Some(_) => Verdict::Conflict,
        },
        (Some(sent), None) => match host {
            None => Verdict::Leave,
            Some(host) if untouched(host, sent) => Verdict::Delete,
            Some(_) => Verdict::Conflict,
        },
        (Some(sent), Some(back)) => match host {
            Some(host) if untouched(host, sent) && !agrees(host, back) => Verdict::Replace,
            Some(host) if agrees(host, back) => Verdict::Leave,
            // A new mode for a directory the host removed: what matters of it is what it holds.
            None if sent.is_directory() && back.is_directory() => Verdict::Leave,
            _ => Verdict::Conflict,
        },
    }
}

/// Whether the host's is still as it was sent.
fn untouched(host: &Host, sent: &Entry) -> bool {
    matches!(host, Host::Entry(host) if host.same(sent) || (host.is_directory() && sent.is_directory()))
}

/// Whether the host already holds what came back.
fn agrees(host: &Host, back: &Entry) -> bool {
    matches!(host, Host::Entry(host) if host.same(back))
}
