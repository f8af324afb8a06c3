//! Answers in the contract's form.

use crate::raw::{acquire_lease, destroy_lease, stop_lease};
use crate::{names, CleanupRecord, Disposition, Error, ExecuteResult, Exit, Lease, Receipt, StopReason};
use serde::Serialize;

/// A lease of the allocation with this id. `metadata` comes back with every later call; never a secret.
pub fn lease(id: &str, metadata: &impl Serialize) -> Lease {
    // What cannot be written as JSON is left out; the host refuses what is no object.
    let metadata = serde_json::to_string(metadata).ok();
    Lease { id: id.into(), metadata, expires_at_ms: None }
}

/// What became of an allocation.
pub fn receipt(lease_id: impl Into<String>, state: Disposition) -> Receipt {
    Receipt { lease_id: lease_id.into(), state }
}

/// A command that ended by itself.
pub fn exited(code: i32) -> ExecuteResult {
    ExecuteResult { exit: Exit::Exited(code), metadata: None }
}

/// A command that a signal ended, named as in `SIGKILL`.
pub fn signaled(signal: &str) -> ExecuteResult {
    ExecuteResult { exit: Exit::Signaled(signal.into()), metadata: None }
}

/// A command that its time ended.
pub fn timed_out() -> ExecuteResult {
    ExecuteResult { exit: Exit::TimedOut, metadata: None }
}

/// What a failed acquisition leaves behind: enough to find it again. `account` is whatever tells one account
/// at the back end from another; only its digest is kept.
pub fn cleanup(
    creation_name: &str,
    observed_id: Option<&str>,
    account: &str,
    labels: &[(String, String)],
) -> CleanupRecord {
    CleanupRecord {
        creation_name: creation_name.into(),
        observed_id: observed_id.map(Into::into),
        account_fingerprint: names::fingerprint(account),
        labels: labels.to_vec(),
    }
}

/// A failed acquisition that may have made something.
pub fn acquire_failed(error: Error, cleanup: CleanupRecord) -> acquire_lease::AcquireError {
    acquire_lease::AcquireError { error, diagnostic: None, cleanup: Some(cleanup) }
}

/// A failed destruction.
pub fn destroy_failed(error: Error) -> destroy_lease::DestroyError {
    destroy_lease::DestroyError { error, cleanup: None }
}

/// A failed stop: final where the allocation is gone, else to be tried again.
pub fn stop_failed(error: Error) -> stop_lease::StopError {
    let reason = match error {
        Error::Gone => StopReason::ResourceUnrecoverable,
        _ => StopReason::Unconfirmed,
    };
    stop_lease::StopError { error, reason }
}
