//! A provider whose allocations are files of a folder, so that they outlive the process that made them.

use crate::{
    AcquireFailure, AcquireRequest, Answer, Context, DestroyFailure, DestroyTarget, Disposition, Fault,
    Finding, Lease, Provider, ProviderLease, Providers, Receipt, ReleaseRequest, Unready,
};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::Semaphore;

#[derive(Clone, Debug)]
pub(super) struct Files {
    pub(super) folder: PathBuf,
    /// Whether an acquisition fails after it has made the allocation.
    pub(super) fails: bool,
    /// Whether a release fails and does nothing.
    pub(super) keeps: bool,
    /// What an acquisition and a destroy wait for.
    pub(super) gate: Arc<Semaphore>,
}

impl Files {
    pub(super) fn new(folder: PathBuf) -> Files {
        Files { folder, fails: false, keeps: false, gate: Arc::new(Semaphore::new(1)) }
    }

    pub(super) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
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
    fn acquire(
        &self,
        _: Context,
        request: AcquireRequest,
    ) -> Answer<'_, Result<ProviderLease, AcquireFailure>> {
        Box::pin(async move {
            let _passed = self.gate.acquire().await.unwrap();
            std::fs::write(self.folder.join(&request.creation_name), "").unwrap();
            match self.fails {
                true => Err(AcquireFailure { fault: fault(), diagnostic: None, cleanup: None }),
                false => {
                    let id = request.creation_name;
                    Ok(ProviderLease { id, metadata: None, expires_at_ms: None })
                }
            }
        })
    }

    fn find(&self, _: Context, name: String) -> Answer<'_, Result<Finding, Fault>> {
        let found = self.folder.join(&name).exists();
        let lease = ProviderLease { id: name, metadata: None, expires_at_ms: None };
        Box::pin(async move { Ok(if found { Finding::Started(lease) } else { Finding::Absent }) })
    }

    fn release(&self, _: Context, request: ReleaseRequest) -> Answer<'_, Result<Receipt, Fault>> {
        Box::pin(async move { if self.keeps { Err(fault()) } else { Ok(self.remove(request.lease.id)) } })
    }

    fn destroy(&self, _: Context, target: DestroyTarget) -> Answer<'_, Result<Receipt, DestroyFailure>> {
        Box::pin(async move {
            match (target, self.keeps) {
                (DestroyTarget::Lease(lease), false) => Ok(self.remove(lease.id)),
                _ => Err(DestroyFailure { fault: fault(), cleanup: None }),
            }
        })
    }
}

impl Providers for Files {
    fn resolve<'a>(&'a self, _: &'a Lease) -> Answer<'a, Result<Arc<dyn Provider>, Unready>> {
        let provider: Arc<dyn Provider> = Arc::new(self.clone());
        Box::pin(async move { Ok(provider) })
    }
}
