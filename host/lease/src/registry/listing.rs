//! Which sandbox providers can be chosen now; those that failed to load and may be recovered are.

use super::{AfterFailure, Loader, ProviderRecord, ProviderStatus, Published, Registry, Standing};
use crate::{Clock, StoreError};
use futures_util::future::join_all;
use leasehold_contract::declaration::DriverKind;
use std::collections::BTreeSet;
use std::time::Duration;

/// How long a listing waits for each start by default. They run together, so a listing waits about this long
/// whatever their number; one that takes longer is in the next listing.
pub const RECOVERY_WAIT: Duration = Duration::from_millis(2_000);

/// Which providers a listing may start again, and how long it waits for a start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// Keys of the providers that are started again where an earlier start failed; the host's own.
    pub keys: BTreeSet<String>,
    /// How long each start is waited for; zero waits without limit.
    pub wait: Duration,
}

impl Default for Recovery {
    fn default() -> Recovery {
        Recovery { keys: BTreeSet::new(), wait: RECOVERY_WAIT }
    }
}

impl<L: Loader> Registry<L> {
    /// The sandbox providers that are ready and loaded, in the order of installation. One that nobody asked
    /// for yet is loaded; one whose load failed is tried again only when `recovery` names it. A failure never
    /// raises and does not change what the store says of it.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn published(
        &self,
        recovery: &Recovery,
        clock: &dyn Clock,
    ) -> Result<Vec<Published>, StoreError> {
        let mut ready = self.list().await?;
        ready.retain(|record| record.status == ProviderStatus::Ready);
        let starts = ready.iter().filter(|record| self.may_start(record, recovery)).map(async |record| {
            let started = self.load(record, &record.digest, AfterFailure::Try);
            if recovery.wait.is_zero() {
                started.await.ok();
            } else {
                tokio::select! { _ = started => {}, () = clock.sleep(recovery.wait) => {} }
            }
        });
        join_all(starts).await;
        Ok(ready.iter().flat_map(|record| self.publish(record)).collect())
    }

    fn may_start(&self, record: &ProviderRecord, recovery: &Recovery) -> bool {
        let sandboxes = || {
            record.manifest().is_ok_and(|manifest| {
                manifest.environment_drivers.iter().any(|driver| driver.kind == DriverKind::SandboxProvider)
            })
        };
        match self.standing(record) {
            Standing::Loaded(_) => false,
            Standing::Untried | Standing::UnderWay => sandboxes(),
            Standing::Failed(_) => recovery.keys.contains(&record.key) && sandboxes(),
        }
    }

    fn publish(&self, record: &ProviderRecord) -> Vec<Published> {
        let (Standing::Loaded(component), Ok(manifest)) = (self.standing(record), record.manifest()) else {
            return Vec::new();
        };
        let verification = L::verification(&component);
        let drivers = manifest.environment_drivers.into_iter();
        let sandboxes = drivers.filter(|driver| driver.kind == DriverKind::SandboxProvider);
        sandboxes.map(|driver| Published::of(record, driver, verification)).collect()
    }
}
