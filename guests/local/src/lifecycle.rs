//! From the creation of a jail to its end.

use crate::bindings::exports::leasehold::provider::{
    acquire_lease, destroy_lease, find_lease, release_lease, resume_lease, stop_lease,
};
use crate::bindings::leasehold::host::jail::{self, Standing};
use crate::bindings::leasehold::provider::types::{
    CleanupRecord, Context, Disposition, Error, Lease, Receipt, Retention,
};
use crate::config::bounds;
use crate::errors::of_jail;
use crate::{Local, WORKSPACE};

/// The lease of the jail of this name.
fn lease(name: &str) -> Lease {
    let metadata = serde_json::json!({ "remoteCwd": WORKSPACE }).to_string();
    Lease { id: name.into(), metadata: Some(metadata), expires_at_ms: None }
}

fn receipt(lease_id: String, state: Disposition) -> Receipt {
    Receipt { lease_id, state }
}

impl acquire_lease::Guest for Local {
    fn acquire_lease(
        ctx: Context,
        request: acquire_lease::AcquireRequest,
    ) -> Result<Lease, acquire_lease::AcquireError> {
        let name = request.creation_name;
        let created = bounds(&ctx.config).and_then(|bounds| jail::create(&name, bounds).map_err(of_jail));
        created.map(|()| lease(&name)).map_err(|error| {
            // The host undoes a creation that fails, and a later look by name proves it.
            acquire_lease::AcquireError { error, diagnostic: None, cleanup: None }
        })
    }
}

impl find_lease::Guest for Local {
    fn find_lease(_ctx: Context, creation_name: String) -> Result<find_lease::Finding, Error> {
        Ok(match jail::find(&creation_name).map_err(of_jail)? {
            Some(Standing::Running | Standing::Stopped) => {
                find_lease::Finding::Started(lease(&creation_name))
            }
            None => find_lease::Finding::Absent,
        })
    }
}

impl resume_lease::Guest for Local {
    fn resume_lease(ctx: Context, request: resume_lease::ResumeRequest) -> Result<Lease, Error> {
        let name = request.lease.id;
        if jail::find(&name).map_err(of_jail)?.is_none() {
            return Err(Error::Gone);
        }
        jail::create(&name, bounds(&ctx.config)?).map_err(of_jail)?;
        Ok(lease(&name))
    }
}

impl release_lease::Guest for Local {
    fn release_lease(_ctx: Context, request: release_lease::ReleaseRequest) -> Result<Receipt, Error> {
        match request.retention {
            Retention::Ephemeral => destroy(request.lease.id),
            Retention::Reuse => stop(request.lease.id),
        }
    }
}

impl destroy_lease::Guest for Local {
    fn destroy_lease(
        _ctx: Context,
        target: destroy_lease::DestroyTarget,
    ) -> Result<Receipt, destroy_lease::DestroyError> {
        let id = match target {
            destroy_lease::DestroyTarget::Lease(lease) => lease.id,
            // The name is the id, so there is nothing to observe first.
            destroy_lease::DestroyTarget::Abandoned(CleanupRecord { creation_name, .. }) => creation_name,
        };
        destroy(id).map_err(|error| destroy_lease::DestroyError { error, cleanup: None })
    }
}

impl stop_lease::Guest for Local {
    fn stop_lease(_ctx: Context, lease: Lease) -> Result<Receipt, stop_lease::StopError> {
        stop(lease.id).map_err(|error| {
            let reason = match error {
                Error::Gone => stop_lease::StopReason::ResourceUnrecoverable,
                _ => stop_lease::StopReason::Unconfirmed,
            };
            stop_lease::StopError { error, reason }
        })
    }
}

fn destroy(id: String) -> Result<Receipt, Error> {
    let state = match jail::destroy(&id).map_err(of_jail)? {
        true => Disposition::Destroyed,
        false => Disposition::AlreadyGone,
    };
    Ok(receipt(id, state))
}

fn stop(id: String) -> Result<Receipt, Error> {
    jail::stop(&id).map_err(of_jail)?;
    Ok(receipt(id, Disposition::Stopped))
}
