//! Every change of a lease after its first row.

use super::event::note;
use super::intent::{done, stamp};
use super::lease::{COLUMNS, read};
use super::sql::{Row, SqlError, Statements, Value, values};
use super::{Durability, Failure, Store, StoreError, attempt, creation, stop};
use crate::fault::Step;
use crate::limits::shortened;
use crate::{CleanupRecord, Disposition, Goal, Lease, LeaseId, Owner, ProviderLease, State, StopReason};

/// Whose lease it must be for a change to happen.
#[derive(Clone, Debug)]
pub(crate) enum Whose {
    /// Anybody's: the state alone decides.
    Anybodys,
    /// This owner's.
    Of(Owner),
    /// As it was seen: in this version. Of two that saw the same, one changes it.
    AsSeen(u64),
}

/// What becomes of the count of attempts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Attempts {
    #[default]
    Stay,
    /// One more begins.
    Begin,
    /// The one that began was none: nothing could be told yet.
    GiveBack,
    /// A person, or success, begins anew.
    Anew,
}

/// What a change writes beside the state; what is none stays as it was.
#[derive(Clone, Debug, Default)]
pub(crate) struct Learned {
    pub(crate) allocation: Option<ProviderLease>,
    pub(crate) cleanup: Option<CleanupRecord>,
    pub(crate) disposition: Option<Disposition>,
    pub(crate) error: Option<String>,
    pub(crate) attempts: Attempts,
    pub(crate) escalated: Option<bool>,
    pub(crate) due_ms: Option<u64>,
    pub(crate) goal: Option<Goal>,
    /// Why the use ends, as a stable word.
    pub(crate) why: Option<&'static str>,
    /// The run that takes it up.
    pub(crate) run: Option<String>,
    /// Whether the provider itself answered that nothing was made.
    pub(crate) settled: bool,
    /// What a failed stop said.
    pub(crate) not_stopped: Option<StopReason>,
    pub(crate) bill: Option<String>,
}

/// One compare-and-set.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) id: LeaseId,
    pub(crate) from: State,
    pub(crate) whose: Whose,
    pub(crate) to: State,
    /// The owner afterwards.
    pub(crate) owner: Option<Owner>,
    pub(crate) reason: String,
    pub(crate) learned: Learned,
}

impl Change {
    /// Whether it must survive the loss of power: where something that was learned is found nowhere else,
    /// and where something is about to be kept or stopped.
    fn durability(&self, step: Step) -> Durability {
        let kept = matches!(self.learned.goal, Some(Goal::Stop));
        match step {
            Step::Observe | Step::StopIntent | Step::Preserve => Durability::Disk,
            _ if kept => Durability::Disk,
            _ => Durability::Process,
        }
    }
}

impl Store {
    /// Changes a lease, or says why it may not be changed.
    pub(crate) async fn change(&self, step: Step, change: Change) -> Result<Lease, StoreError> {
        let durability = change.durability(step);
        self.change_with(step, durability, change).await
    }

    /// The same, where the caller knows whether it must survive the loss of power.
    pub(crate) async fn change_with(
        &self,
        step: Step,
        durability: Durability,
        change: Change,
    ) -> Result<Lease, StoreError> {
        let Change { from, to, .. } = change;
        if !from.may_become(to) {
            return Err(StoreError::Illegal { id: change.id, from, to });
        }
        let (now, stamp) = (self.now_ms(), stamp()?);
        let held = change.learned.allocation.as_ref().map(|it| it.id.clone()).zip(Some(change.id.clone()));
        let changed = self.step(step, durability, move |on| apply(on, &change, now, &stamp)).await;
        match (changed, held) {
            // Another was faster with the same allocation; the index that says so does not name it.
            (Err(StoreError::Conflict { .. }), Some((allocation, id))) => {
                Err(self.holder(id, allocation).await)
            }
            (changed, _) => changed,
        }
    }

    async fn holder(&self, id: LeaseId, allocation: String) -> StoreError {
        let (asked, seen) = (id.clone(), allocation.clone());
        let held = self.read("looking for who holds an allocation", move |on| {
            refuse_held(on, &asked, &seen)?;
            Ok(())
        });
        held.await.err().unwrap_or(StoreError::HeldElsewhere { holder: id.clone(), id, allocation })
    }
}

pub(super) fn apply(
    on: &mut dyn Statements,
    change: &Change,
    now: u64,
    stamp: &str,
) -> Result<Lease, Failure> {
    if let Some(allocation) = &change.learned.allocation {
        refuse_held(on, &change.id, &allocation.id)?;
    }
    let Some(lease) = update(on, change, now, stamp)? else {
        // Done before, with the answer lost on the way.
        return match done(on, &change.id, stamp)? {
            Some(lease) => Ok(lease),
            None => Err(refusal(on, change)?.into()),
        };
    };
    let Learned { bill, .. } = &change.learned;
    note(on, &change.id, now, Some(change.from), change.to, &change.reason, bill.as_deref())?;
    creation::follow(on, change, &lease, now)?;
    attempt::follow(on, change, &lease, now)?;
    stop::follow(on, change, &lease, now, stamp)?;
    tracing::debug!(lease = %change.id, from = %change.from, to = %change.to, reason = change.reason);
    Ok(lease)
}

fn update(
    on: &mut dyn Statements,
    change: &Change,
    now: u64,
    stamp: &str,
) -> Result<Option<Lease>, SqlError> {
    let learned = &change.learned;
    let (was, now): (_, Value) = (change.from, now.into());
    let mut set = Update::default();
    set.expression("version = version + 1");
    set.to("stamp", stamp);
    set.to("state", change.to.word());
    set.to("owner", change.owner.as_ref().map(Owner::to_text));
    set.to("updated_ms", now.clone());
    if let Some(ProviderLease { id, metadata, expires_at_ms }) = &learned.allocation {
        set.to("provider_lease_id", id);
        set.to("metadata", metadata.as_ref());
        set.to("expires_at_ms", *expires_at_ms);
    }
    set.if_some("disposition", learned.disposition.map(Disposition::word));
    set.if_some("last_error", learned.error.as_deref().map(shortened));
    set.if_some("escalated", learned.escalated);
    set.if_some("due_ms", learned.due_ms);
    set.if_some("run", learned.run.as_ref());
    set.if_some("goal", learned.goal.map(Goal::word));
    set.if_some("reason", learned.why);
    set.if_some("released_ms", change.to.is_final().then(|| now.clone()));
    set.if_some("unexported", change.to.is_final().then_some(false));
    match learned.attempts {
        Attempts::Stay => {}
        Attempts::Begin => set.expression("attempts = attempts + 1"),
        Attempts::GiveBack => {
            set.expression("attempts = CASE WHEN attempts > 0 THEN attempts - 1 ELSE 0 END")
        }
        Attempts::Anew => set.to("attempts", false),
    }
    if change.to == State::Active {
        // A use begins, with what earlier ones have left of the lifetime.
        set.to("acquired_ms", now.clone());
        let at = set.value(now.clone());
        set.expression(&format!(
            "ends_ms = {at} + CASE WHEN lifetime_ms > used_ms THEN lifetime_ms - used_ms ELSE 0 END"
        ));
        set.expression("goal = NULL, reason = NULL");
    } else if was == State::Active {
        let at = set.value(now.clone());
        set.expression(&format!(
            "used_ms = used_ms + CASE WHEN acquired_ms < {at} THEN {at} - acquired_ms ELSE 0 END"
        ));
        set.expression("ends_ms = NULL");
    }
    let mut condition =
        format!("id = {} AND state = {}", set.value(change.id.as_str()), set.value(was.word()));
    match &change.whose {
        Whose::Anybodys => {}
        Whose::Of(owner) => condition += &format!(" AND owner = {}", set.value(owner.to_text())),
        Whose::AsSeen(version) => condition += &format!(" AND version = {}", set.value(*version)),
    }
    let sql = format!("UPDATE leases SET {} WHERE {condition} RETURNING {COLUMNS}", set.columns.join(", "));
    on.query(&sql, &set.values)?.into_iter().next().map(read).transpose()
}

/// The columns an update sets, with their values.
#[derive(Debug, Default)]
struct Update {
    columns: Vec<String>,
    values: Vec<Value>,
}

impl Update {
    /// The parameter that stands for this value.
    fn value(&mut self, value: impl Into<Value>) -> String {
        self.values.push(value.into());
        format!("?{}", self.values.len())
    }

    fn to(&mut self, column: &str, value: impl Into<Value>) {
        let value = self.value(value);
        self.columns.push(format!("{column} = {value}"));
    }

    fn if_some(&mut self, column: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.to(column, value);
        }
    }

    fn expression(&mut self, expression: &str) {
        self.columns.push(expression.to_owned());
    }
}

/// Refuses an allocation that another lease of the same environment holds or keeps.
fn refuse_held(on: &mut dyn Statements, id: &LeaseId, allocation: &str) -> Result<(), Failure> {
    const SQL: &str = "SELECT other.id FROM leases mine JOIN leases other \
        ON other.provider = mine.provider AND other.environment = mine.environment \
        AND other.provider_lease_id = ?1 AND other.id <> mine.id WHERE mine.id = ?2 \
        AND other.state IN ('active', 'resuming', 'releasing', 'retained', 'pending_cleanup') LIMIT 1";
    match on.query(SQL, &values![allocation, id.as_str()])?.into_iter().next() {
        None => Ok(()),
        Some(mut row) => {
            let holder = row.word(LeaseId::parse)?;
            Err(StoreError::HeldElsewhere { id: id.clone(), allocation: allocation.into(), holder }.into())
        }
    }
}

/// Why nothing was changed.
fn refusal(on: &mut dyn Statements, change: &Change) -> Result<StoreError, SqlError> {
    let Change { id, from, to, .. } = change;
    let (id, expected) = (id.clone(), *from);
    let rows = on.query("SELECT state FROM leases WHERE id = ?1", &values![id.as_str()])?;
    Ok(match rows.into_iter().next().map(|mut row: Row| row.word(State::parse)).transpose()? {
        None => StoreError::Missing { id },
        Some(found) if found.may_become(*to) => StoreError::Changed { id, expected, found },
        Some(found) => StoreError::Illegal { id, from: found, to: *to },
    })
}
