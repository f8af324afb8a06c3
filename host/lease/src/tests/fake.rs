//! A provider that does what its script says, and honestly when the script is empty.

use crate::{
    AcquireFailure, AcquireRequest, Answer, CleanupRecord, Context, DestroyFailure, DestroyTarget,
    Disposition, Fault, Finding, Lease, Provider, ProviderLease, Providers, Receipt, ReleaseRequest,
    Retention, Unready,
};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::Notify;

/// What one call does.
#[derive(Clone, Debug)]
pub(super) enum Act {
    Honest,
    /// Fails and does nothing.
    Fails,
    /// Does it and fails.
    DoesAndFails,
    /// Waits until told, then does it and answers.
    Late,
    /// Never answers and does nothing.
    Hangs,
    /// Does it and never answers.
    DoesAndHangs,
    Panics,
    /// Of an acquisition: gives this id instead of its own.
    Gives(String),
    /// Gives a receipt about this allocation instead.
    About(String),
    /// Answers this instead.
    Says(Disposition),
    /// Of a destroy: first gives the id back to be stored.
    TwoPhases,
    /// Of a find.
    Finds(Finding),
}

#[derive(Debug, Default)]
pub(super) struct Back {
    /// By creation name: whether it is kept for reuse.
    pub(super) allocations: BTreeMap<String, Option<Disposition>>,
    pub(super) script: VecDeque<Act>,
    pub(super) calls: Vec<String>,
    pub(super) deleted: Vec<String>,
    pub(super) unready: bool,
}

#[derive(Debug, Default)]
pub(super) struct Fake {
    back: Mutex<Back>,
    /// Told when a call hangs or waits.
    pub(super) waits: Notify,
    pub(super) go_on: Notify,
}

impl Fake {
    pub(super) fn new(script: impl IntoIterator<Item = Act>) -> Arc<Fake> {
        let fake = Fake::default();
        fake.back().script.extend(script);
        Arc::new(fake)
    }

    pub(super) fn back(&self) -> MutexGuard<'_, Back> {
        self.back.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub(super) fn calls(&self) -> Vec<String> {
        self.back().calls.clone()
    }

    pub(super) fn allocations(&self) -> usize {
        self.back().allocations.len()
    }

    fn next(&self, call: &str) -> Act {
        let mut back = self.back();
        back.calls.push(call.to_owned());
        back.script.pop_front().unwrap_or(Act::Honest)
    }

    async fn hang(&self) {
        self.waits.notify_one();
        std::future::pending::<()>().await;
    }

    /// Goes through with one call: whether to fail after doing it.
    async fn act<T>(&self, act: &Act, mut deed: impl FnMut(&mut Back) -> T) -> Result<T, Fault> {
        match act {
            Act::Fails => Err(fault()),
            Act::Hangs => {
                self.hang().await;
                Err(fault())
            }
            Act::DoesAndHangs => {
                deed(&mut self.back());
                self.hang().await;
                Err(fault())
            }
            Act::DoesAndFails => {
                deed(&mut self.back());
                Err(fault())
            }
            Act::Late => {
                self.waits.notify_one();
                self.go_on.notified().await;
                Ok(deed(&mut self.back()))
            }
            Act::Panics => panic!("the script says so"),
            _ => Ok(deed(&mut self.back())),
        }
    }

    fn receipt(act: &Act, id: String, state: Disposition) -> Receipt {
        match act {
            Act::About(other) => Receipt { lease_id: other.clone(), state },
            Act::Says(other) => Receipt { lease_id: id, state: *other },
            _ => Receipt { lease_id: id, state },
        }
    }
}

pub(super) fn fault() -> Fault {
    Fault::Failed { code: "scripted".into(), message: "as scripted".into() }
}

pub(super) fn allocation(name: &str) -> ProviderLease {
    ProviderLease { id: format!("a-{name}"), metadata: Some("{\"m\":1}".into()), expires_at_ms: Some(7) }
}

fn delete(back: &mut Back, id: &str) -> Disposition {
    let name = id.strip_prefix("a-").unwrap_or(id).to_owned();
    match back.allocations.remove(&name) {
        Some(_) => {
            back.deleted.push(name);
            Disposition::Destroyed
        }
        None => Disposition::AlreadyGone,
    }
}

impl Provider for Fake {
    fn acquire(
        &self,
        _: Context,
        request: AcquireRequest,
    ) -> Answer<'_, Result<ProviderLease, AcquireFailure>> {
        Box::pin(async move {
            let act = self.next("acquire");
            let name = request.creation_name;
            let made = self.act(&act, |back| back.allocations.entry(name.clone()).or_default().take()).await;
            made.map_err(|fault| AcquireFailure { fault, diagnostic: None, cleanup: None })?;
            Ok(match act {
                Act::Gives(id) => ProviderLease { id, ..allocation(&name) },
                _ => allocation(&name),
            })
        })
    }

    fn find(&self, _: Context, name: String) -> Answer<'_, Result<Finding, Fault>> {
        Box::pin(async move {
            let act = self.next("find");
            let found = self.act(&act, |back| back.allocations.contains_key(&name)).await?;
            Ok(match (act, found) {
                (Act::Finds(finding), _) => finding,
                (_, true) => Finding::Started(allocation(&name)),
                (_, false) => Finding::Absent,
            })
        })
    }

    fn release(&self, _: Context, request: ReleaseRequest) -> Answer<'_, Result<Receipt, Fault>> {
        Box::pin(async move {
            let act = self.next("release");
            let id = request.lease.id;
            let ended = self.act(&act, |back| match request.retention {
                Retention::Ephemeral => delete(back, &id),
                Retention::Reuse => match back.allocations.get_mut(id.strip_prefix("a-").unwrap_or(&id)) {
                    Some(kept) => *kept.insert(Disposition::Stopped),
                    None => Disposition::AlreadyGone,
                },
            });
            let state = ended.await?;
            Ok(Fake::receipt(&act, id, state))
        })
    }

    fn destroy(&self, _: Context, target: DestroyTarget) -> Answer<'_, Result<Receipt, DestroyFailure>> {
        Box::pin(async move {
            let act = self.next("destroy");
            let (id, name) = match target {
                DestroyTarget::Lease(lease) => (lease.id, None),
                DestroyTarget::Abandoned(record) => {
                    (record.observed_id.unwrap_or_default(), Some(record.creation_name))
                }
            };
            if let (Act::TwoPhases, None) = (&act, name) {
                let record = CleanupRecord {
                    creation_name: id.strip_prefix("a-").unwrap_or(&id).into(),
                    observed_id: Some(id),
                    account_fingerprint: "0".repeat(64),
                    labels: Vec::new(),
                };
                return Err(DestroyFailure { fault: fault(), cleanup: Some(Box::new(record)) });
            }
            let ended = self.act(&act, |back| delete(back, &id)).await;
            let state = ended.map_err(|fault| DestroyFailure { fault, cleanup: None })?;
            Ok(Fake::receipt(&act, id, state))
        })
    }
}

/// Every lease's provider is this one.
#[derive(Debug)]
pub(super) struct Only(pub(super) Arc<Fake>);

impl Providers for Only {
    fn resolve<'a>(&'a self, _: &'a Lease) -> Answer<'a, Result<Arc<dyn Provider>, Unready>> {
        let unready = self.0.back().unready;
        let provider: Arc<dyn Provider> = self.0.clone();
        Box::pin(async move { if unready { Err(Unready("not loaded".into())) } else { Ok(provider) } })
    }
}

pub(super) fn only(fake: &Arc<Fake>) -> Arc<Only> {
    Arc::new(Only(fake.clone()))
}
