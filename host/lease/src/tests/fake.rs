//! A provider that does what its script says, and honestly when the script is empty.

use crate::{
    AcquireFailure, AcquireRequest, AcquisitionDiagnostic, Answer, CleanupRecord, Context, DestroyFailure,
    DestroyTarget, Disposition, Fault, Finding, Offers, Pins, Provider, ProviderLease, Providers, Receipt,
    ReleaseRequest, Resolving, ResumeRequest, Retention, StopFailure, StopReason, Unready,
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
    /// Fails in this way and does nothing.
    Faults(Fault),
    /// Of an acquisition: fails with these measurements.
    Diagnoses(AcquisitionDiagnostic),
    /// Of an acquisition: fails after doing it and leaves this record.
    Leaves(CleanupRecord),
    /// Of an acquisition and a resume: does it and gives exactly this.
    Answers(ProviderLease),
    /// Of a stop: fails for this reason.
    NotStopped(StopReason),
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
    pub(super) offers: Option<Offers>,
    /// What is wrong with the record an acquisition leaves.
    pub(super) spoil: Option<fn(&mut CleanupRecord)>,
    /// How every resume fails.
    pub(super) resumes: Option<Fault>,
    /// Of every acquisition that answers honestly.
    pub(super) metadata: Option<String>,
    /// Of the same: when the back end ends it.
    pub(super) expires_at_ms: Option<u64>,
    /// What was asked for last.
    pub(super) asked: Option<(Context, AcquireRequest)>,
}

/// Everything a provider may have, on this machine alone.
pub(super) const ALL: Offers =
    Offers { find: true, resume: true, release: true, destroy: true, stop: true, network: false };

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

    /// The calls so far, which are then forgotten.
    pub(super) fn take_calls(&self) -> Vec<String> {
        std::mem::take(&mut self.back().calls)
    }

    /// What the next calls do.
    pub(super) fn script(&self, acts: impl IntoIterator<Item = Act>) {
        self.back().script.extend(acts);
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
            Act::Faults(fault) => Err(fault.clone()),
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
    ProviderLease { id: format!("a-{name}"), metadata: Some("{\"m\":1}".into()), expires_at_ms: None }
}

/// What a failed acquisition of this name leaves to find it by.
pub(super) fn record(name: &str) -> CleanupRecord {
    CleanupRecord {
        creation_name: name.into(),
        observed_id: None,
        account_fingerprint: "0".repeat(64),
        labels: Vec::new(),
    }
}

/// The name an allocation was created under.
fn bare(id: &str) -> &str {
    id.strip_prefix("a-").unwrap_or(id)
}

fn stop(back: &mut Back, id: &str) -> Disposition {
    match back.allocations.get_mut(bare(id)) {
        Some(kept) => *kept.insert(Disposition::Stopped),
        None => Disposition::AlreadyGone,
    }
}

fn delete(back: &mut Back, id: &str) -> Disposition {
    let name = bare(id).to_owned();
    match back.allocations.remove(&name) {
        Some(_) => {
            back.deleted.push(name);
            Disposition::Destroyed
        }
        None => Disposition::AlreadyGone,
    }
}

impl Provider for Fake {
    fn offers(&self) -> Offers {
        self.back().offers.unwrap_or(ALL)
    }

    fn acquire(
        &self,
        context: Context,
        request: AcquireRequest,
    ) -> Answer<'_, Result<ProviderLease, AcquireFailure>> {
        Box::pin(async move {
            let act = self.next("acquire");
            self.back().asked = Some((context, request.clone()));
            let name = request.creation_name;
            let made = self.act(&act, |back| back.allocations.entry(name.clone()).or_default().take()).await;
            let failure = |fault| AcquireFailure { fault, diagnostic: None, cleanup: None, answered: true };
            let answer = made.map_err(failure).and_then(|_| match act {
                Act::Gives(id) => Ok(ProviderLease { id, ..allocation(&name) }),
                Act::Answers(lease) => Ok(lease),
                Act::Diagnoses(found) => {
                    self.back().allocations.remove(&name);
                    Err(AcquireFailure { diagnostic: Some(found), ..failure(fault()) })
                }
                Act::Leaves(record) => {
                    let mut record = CleanupRecord { creation_name: name, ..record };
                    self.back().spoil.inspect(|spoil| spoil(&mut record));
                    Err(AcquireFailure { cleanup: Some(Box::new(record)), ..failure(fault()) })
                }
                _ => {
                    let (plain, back) = (allocation(&name), self.back());
                    let metadata = back.metadata.clone().or(plain.metadata);
                    Ok(ProviderLease { metadata, expires_at_ms: back.expires_at_ms, ..plain })
                }
            });
            answer.into()
        })
    }

    fn find(&self, _: Context, name: String) -> Answer<'_, Result<Finding, Fault>> {
        Box::pin(async move {
            let act = self.next("find");
            let found = self.act(&act, |back| back.allocations.contains_key(&name)).await;
            let finding = found.map(|found| match (act, found) {
                (Act::Finds(finding), _) => finding,
                (_, true) => Finding::Started(allocation(&name)),
                (_, false) => Finding::Absent,
            });
            finding.into()
        })
    }

    fn resume(&self, _: Context, request: ResumeRequest) -> Answer<'_, Result<ProviderLease, Fault>> {
        Box::pin(async move {
            let act = self.next("resume");
            if let Some(fault) = self.back().resumes.clone() {
                return Err(fault).into();
            }
            let lease = request.lease;
            let found =
                self.act(&act, |back| back.allocations.get_mut(bare(&lease.id)).map(Option::take)).await;
            let resumed = found.and_then(|found| match (act, found) {
                (Act::Answers(other), _) => Ok(other),
                (_, Some(_)) => Ok(lease),
                (_, None) => Err(Fault::Gone),
            });
            resumed.into()
        })
    }

    fn release(&self, _: Context, request: ReleaseRequest) -> Answer<'_, Result<Receipt, Fault>> {
        Box::pin(async move {
            let act = self.next("release");
            let id = request.lease.id;
            let ended = self.act(&act, |back| match request.retention {
                Retention::Ephemeral => delete(back, &id),
                Retention::Reuse => stop(back, &id),
            });
            ended.await.map(|state| Fake::receipt(&act, id, state)).into()
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
                let record = CleanupRecord { observed_id: Some(id.clone()), ..record(bare(&id)) };
                return Err(DestroyFailure { fault: fault(), cleanup: Some(Box::new(record)) }).into();
            }
            let ended = self.act(&act, |back| delete(back, &id)).await;
            let ended = ended.map(|state| Fake::receipt(&act, id, state));
            ended.map_err(|fault| DestroyFailure { fault, cleanup: None }).into()
        })
    }

    fn stop(&self, _: Context, lease: ProviderLease) -> Answer<'_, Result<Receipt, StopFailure>> {
        Box::pin(async move {
            let act = self.next("stop");
            if let Act::NotStopped(reason) = act {
                return Err(StopFailure { fault: fault(), reason }).into();
            }
            let stopped = self.act(&act, |back| stop(back, &lease.id)).await;
            let stopped = stopped.map(|state| Fake::receipt(&act, lease.id, state));
            stopped.map_err(|fault| StopFailure { fault, reason: StopReason::Unconfirmed }).into()
        })
    }
}

/// Every lease's provider is this one.
#[derive(Debug)]
pub(super) struct Only(pub(super) Arc<Fake>);

impl Providers for Only {
    fn resolve<'a>(&'a self, _: &'a Pins) -> Resolving<'a> {
        let unready = self.0.back().unready;
        let provider: Arc<dyn Provider> = self.0.clone();
        Box::pin(async move { if unready { Err(Unready("not loaded".into())) } else { Ok(provider) } })
    }
}
