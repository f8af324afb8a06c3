//! A provider whose allocations are files of a folder, so that they outlive the process that made them.

use super::fake::ALL;
use crate::{
    AcquireFailure, AcquireRequest, Answer, Context, DestroyFailure, DestroyTarget, Disposition, Fault,
    Finding, Offers, Pins, Provider, ProviderLease, Providers, Receipt, ReleaseRequest, Resolving,
    ResumeRequest, Retention, StopFailure, StopReason, Unready,
};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::Semaphore;

#[derive(Clone, Debug)]
pub(super) struct Files {
    pub(super) folder: PathBuf,
    /// Whether an acquisition fails after it has made the allocation.
    pub(super) fails: bool,
    /// Whether whatever ends or takes up an allocation fails and does nothing.
    pub(super) keeps: bool,
    /// Whether it cannot be called at all.
    pub(super) unready: bool,
    /// When the back end ends an allocation, and later when it is taken up again.
    pub(super) ends_ms: Option<u64>,
    /// What an acquisition and a destroy wait for.
    pub(super) gate: Arc<Semaphore>,
}

impl Files {
    pub(super) fn new(folder: PathBuf) -> Files {
        Files {
            folder,
            fails: false,
            keeps: false,
            unready: false,
            ends_ms: None,
            gate: Arc::new(Semaphore::new(1)),
        }
    }

    pub(super) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    fn stop(&self, name: String) -> Receipt {
        let found = self.folder.join(&name).exists();
        let state = if found { Disposition::Stopped } else { Disposition::AlreadyGone };
        Receipt { lease_id: name, state }
    }

    fn remove(&self, name: String) -> Receipt {
        let state = match std::fs::remove_file(self.folder.join(&name)) {
            Ok(()) => Disposition::Destroyed,
            Err(_) => Disposition::AlreadyGone,
        };
        Receipt { lease_id: name, state }
    }
}

fn fault() -> Fault {
    Fault::Failed { code: "full".into(), message: "no room".into() }
}

impl Provider for Files {
    fn offers(&self) -> Offers {
        ALL
    }

    fn acquire(
        &self,
        _: Context,
        request: AcquireRequest,
    ) -> Answer<'_, Result<ProviderLease, AcquireFailure>> {
        Box::pin(async move {
            let _passed = self.gate.acquire().await.unwrap();
            std::fs::write(self.folder.join(&request.creation_name), "").unwrap();
            let failure = AcquireFailure { fault: fault(), diagnostic: None, cleanup: None, answered: true };
            let made = ProviderLease { expires_at_ms: self.ends_ms, ..lease(request.creation_name) };
            if self.fails { Err(failure) } else { Ok(made) }.into()
        })
    }

    fn find(&self, _: Context, name: String) -> Answer<'_, Result<Finding, Fault>> {
        let found = self.folder.join(&name).exists();
        Box::pin(
            async move { Ok(if found { Finding::Started(lease(name)) } else { Finding::Absent }).into() },
        )
    }

    fn resume(&self, _: Context, request: ResumeRequest) -> Answer<'_, Result<ProviderLease, Fault>> {
        let found = self.folder.join(&request.lease.id).exists();
        let fault = if self.keeps { fault() } else { Fault::Gone };
        let expires_at_ms = self.ends_ms.map(|end| 2 * end);
        let resumed = ProviderLease { expires_at_ms, ..request.lease };
        Box::pin(async move { if found && !self.keeps { Ok(resumed) } else { Err(fault) }.into() })
    }

    fn release(&self, _: Context, request: ReleaseRequest) -> Answer<'_, Result<Receipt, Fault>> {
        Box::pin(async move {
            match (self.keeps, request.retention) {
                (true, _) => Err(fault()),
                (false, Retention::Ephemeral) => Ok(self.remove(request.lease.id)),
                (false, Retention::Reuse) => Ok(self.stop(request.lease.id)),
            }
            .into()
        })
    }

    fn destroy(&self, _: Context, target: DestroyTarget) -> Answer<'_, Result<Receipt, DestroyFailure>> {
        Box::pin(async move {
            match (target, self.keeps) {
                (DestroyTarget::Lease(lease), false) => Ok(self.remove(lease.id)),
                _ => Err(DestroyFailure { fault: fault(), cleanup: None }),
            }
            .into()
        })
    }

    fn stop(&self, _: Context, lease: ProviderLease) -> Answer<'_, Result<Receipt, StopFailure>> {
        let failure = StopFailure { fault: fault(), reason: StopReason::Unconfirmed };
        Box::pin(async move { if self.keeps { Err(failure) } else { Ok(self.stop(lease.id)) }.into() })
    }
}

fn lease(id: String) -> ProviderLease {
    ProviderLease { id, metadata: None, expires_at_ms: None }
}

impl Providers for Files {
    fn resolve<'a>(&'a self, _: &'a Pins) -> Resolving<'a> {
        let provider: Arc<dyn Provider> = Arc::new(self.clone());
        let unready = || Unready("not loaded".into());
        Box::pin(async move { if self.unready { Err(unready()) } else { Ok(provider) } })
    }
}
