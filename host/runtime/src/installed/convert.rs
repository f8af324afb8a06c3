//! Between the contract's types as the bindings generator writes them and as the lease crate does.
//!
//! The lease crate knows no WebAssembly, so each side has types of its own; this is the one place where
//! they meet.

use leasehold_engine::bindings::exports::{
    acquire_lease, destroy_lease, find_lease, release_lease, resume_lease, stop_lease,
};
use leasehold_engine::bindings::types as wit;
use leasehold_engine::{CallError, Limit};
use leasehold_lease as lease;
use std::time::Duration;

pub(crate) fn provider_lease(lease: wit::Lease) -> lease::ProviderLease {
    let wit::Lease { id, metadata, expires_at_ms } = lease;
    lease::ProviderLease { id, metadata, expires_at_ms }
}

pub(crate) fn wit_lease(lease: lease::ProviderLease) -> wit::Lease {
    let lease::ProviderLease { id, metadata, expires_at_ms } = lease;
    wit::Lease { id, metadata, expires_at_ms }
}

fn retention(retention: lease::Retention) -> wit::Retention {
    match retention {
        lease::Retention::Ephemeral => wit::Retention::Ephemeral,
        lease::Retention::Reuse => wit::Retention::Reuse,
    }
}

pub(crate) fn receipt(receipt: wit::Receipt) -> lease::Receipt {
    let state = match receipt.state {
        wit::Disposition::Destroyed => lease::Disposition::Destroyed,
        wit::Disposition::AlreadyGone => lease::Disposition::AlreadyGone,
        wit::Disposition::Stopped => lease::Disposition::Stopped,
        wit::Disposition::Retained => lease::Disposition::Retained,
    };
    lease::Receipt { lease_id: receipt.lease_id, state }
}

pub(crate) fn finding(finding: find_lease::Finding) -> lease::Finding {
    match finding {
        find_lease::Finding::Started(started) => lease::Finding::Started(provider_lease(started)),
        find_lease::Finding::Preparing(id) => lease::Finding::Preparing(id),
        find_lease::Finding::Unusable(id) => lease::Finding::Unusable(id),
        find_lease::Finding::Absent => lease::Finding::Absent,
    }
}

pub(crate) fn acquire_request(request: lease::AcquireRequest) -> acquire_lease::AcquireRequest {
    let lease::AcquireRequest { creation_name, retention: kept, wishes } = request;
    acquire_lease::AcquireRequest {
        creation_name,
        retention: retention(kept),
        requested_cwd: wishes.requested_cwd,
        workspace_mode: wishes.workspace_mode,
        workspace_id: wishes.workspace_id,
        agent_id: wishes.agent_id,
        adapter_type: wishes.adapter_type,
        workspace_settings: wishes.workspace_settings,
        requested_expires_at_ms: wishes.requested_expires_at_ms,
    }
}

pub(crate) fn resume_request(request: lease::ResumeRequest) -> resume_lease::ResumeRequest {
    let lease::ResumeRequest { lease, requested_cwd } = request;
    resume_lease::ResumeRequest { lease: wit_lease(lease), requested_cwd }
}

pub(crate) fn stop_failure(error: stop_lease::StopError) -> lease::StopFailure {
    let reason = match error.reason {
        stop_lease::StopReason::Unconfirmed => lease::StopReason::Unconfirmed,
        stop_lease::StopReason::ResourceUnrecoverable => lease::StopReason::ResourceUnrecoverable,
        stop_lease::StopReason::RecoveryFailed => lease::StopReason::RecoveryFailed,
    };
    lease::StopFailure { fault: fault(error.error), reason }
}

pub(crate) fn release_request(request: lease::ReleaseRequest) -> release_lease::ReleaseRequest {
    release_lease::ReleaseRequest {
        lease: wit_lease(request.lease),
        retention: retention(request.retention),
        cancel_active_work: request.cancel_active_work,
    }
}

pub(crate) fn destroy_target(target: lease::DestroyTarget) -> destroy_lease::DestroyTarget {
    match target {
        lease::DestroyTarget::Lease(lease) => destroy_lease::DestroyTarget::Lease(wit_lease(lease)),
        lease::DestroyTarget::Abandoned(record) => {
            let lease::CleanupRecord { creation_name, observed_id, account_fingerprint, labels } = record;
            destroy_lease::DestroyTarget::Abandoned(wit::CleanupRecord {
                creation_name,
                observed_id,
                account_fingerprint,
                labels,
            })
        }
    }
}

pub(crate) fn cleanup(record: wit::CleanupRecord) -> lease::CleanupRecord {
    let wit::CleanupRecord { creation_name, observed_id, account_fingerprint, labels } = record;
    lease::CleanupRecord { creation_name, observed_id, account_fingerprint, labels }
}

pub(crate) fn acquire_failure(error: acquire_lease::AcquireError) -> lease::AcquireFailure {
    let diagnostic = error.diagnostic.map(|found| lease::AcquisitionDiagnostic {
        phase: match found.phase {
            acquire_lease::AcquisitionPhase::Lookup => lease::AcquisitionPhase::Lookup,
            acquire_lease::AcquisitionPhase::Create => lease::AcquisitionPhase::Create,
            acquire_lease::AcquisitionPhase::Start => lease::AcquisitionPhase::Start,
            acquire_lease::AcquisitionPhase::Setup => lease::AcquisitionPhase::Setup,
        },
        elapsed: Duration::from_millis(found.elapsed_ms),
        budget: Duration::from_millis(found.budget_ms),
        started: found.started,
    });
    let cleanup = error.cleanup.map(|record| Box::new(cleanup(record)));
    lease::AcquireFailure { fault: fault(error.error), diagnostic, cleanup, answered: true }
}

pub(crate) fn destroy_failure(error: destroy_lease::DestroyError) -> lease::DestroyFailure {
    let cleanup = error.cleanup.map(|record| Box::new(cleanup(record)));
    lease::DestroyFailure { fault: fault(error.error), cleanup }
}

pub(crate) fn fault(error: wit::Error) -> lease::Fault {
    match error {
        wit::Error::InvalidConfig(faults) => lease::Fault::InvalidConfig(
            faults
                .into_iter()
                .map(|wit::FieldError { path, message }| lease::FieldError { path, message })
                .collect(),
        ),
        wit::Error::Gone => lease::Fault::Gone,
        wit::Error::Denied(message) => lease::Fault::Denied(message),
        wit::Error::Transient(found) => lease::Fault::Transient {
            category: match found.category {
                wit::TransientCategory::Timeout => lease::TransientCategory::Timeout,
                wit::TransientCategory::RateLimited => lease::TransientCategory::RateLimited,
                wit::TransientCategory::Unavailable => lease::TransientCategory::Unavailable,
                wit::TransientCategory::Network => lease::TransientCategory::Network,
            },
            retry_after: found.retry_after_ms.map(Duration::from_millis),
            message: found.message,
        },
        wit::Error::Failed(wit::PermanentFault { code, message }) => lease::Fault::Failed { code, message },
    }
}

/// A call that gave no answer, as a fault of the provider. Only its time may be better next time.
pub(crate) fn ended(error: &CallError) -> lease::Fault {
    let message = error.to_string();
    match error {
        CallError::Limit { limit: Limit::Wall, .. } => lease::Fault::Transient {
            category: lease::TransientCategory::Timeout,
            retry_after: None,
            message,
        },
        _ => lease::Fault::Failed { code: error.code().into(), message },
    }
}
