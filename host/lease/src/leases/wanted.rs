//! What a caller wants a lease of.

use crate::store::Intent;
use crate::{AcquireRequest, LeaseId, Owner, Retention, Wishes};
use std::time::Duration;

/// What a caller wants a lease of.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The environment it is acquired from.
    pub environment: String,
    /// Key of the provider.
    pub provider: String,
    /// Key of the provider's driver.
    pub driver: String,
    /// Digest of the provider's component.
    pub digest: String,
    /// The tenant it will belong to.
    pub tenant: String,
    /// The run it is for.
    pub run: Option<String>,
    /// What release will do.
    pub retention: Retention,
    /// Driver configuration as a JSON object, without secrets: it is stored as it is.
    pub config: String,
    /// What else the caller wishes.
    pub wishes: Wishes,
    /// How long the provider may take.
    pub budget: Duration,
}

impl Wanted {
    /// What is stored of it, and what the provider is asked.
    pub(super) fn split(self, id: LeaseId, owner: Owner) -> (Intent, AcquireRequest) {
        let Wanted { environment, provider, driver, digest, tenant, run, retention, config, wishes, .. } =
            self;
        let request = AcquireRequest { creation_name: id.as_str().to_owned(), retention, wishes };
        let intent =
            Intent { id, environment, provider, driver, digest, tenant, run, retention, config, owner };
        (intent, request)
    }
}
