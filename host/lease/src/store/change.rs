//! Writing a lease: its first row, and every change after it.

use super::lease::{COLUMNS, read, signed, word};
use super::{Store, StoreError, now_ms};
use crate::fault::Step;
use crate::{CleanupRecord, Disposition, Lease, LeaseId, Owner, ProviderLease, Retention, State};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, named_params};

/// The longest text kept of one fault. Longer ones are a provider's whole log and would swell the file.
const MAX_ERROR: usize = 4 << 10;

/// A lease before anything was asked for.
#[derive(Clone, Debug)]
pub(crate) struct Intent {
    pub(crate) id: LeaseId,
    pub(crate) environment: String,
    pub(crate) provider: String,
    pub(crate) driver: String,
    pub(crate) digest: String,
    pub(crate) tenant: String,
    pub(crate) run: Option<String>,
    pub(crate) retention: Retention,
    pub(crate) config: String,
    pub(crate) owner: Owner,
}

/// Whose lease it must be for a change to happen.
#[derive(Clone, Debug)]
pub(crate) enum Whose {
    /// Anybody's: the state alone decides.
    Anybodys,
    /// This owner's.
    Of(Owner),
    /// As it was seen: with this owner or none, after this many attempts. Of two that saw the same, one
    /// changes it.
    AsSeen { owner: Option<Owner>, attempts: u32 },
}

/// What a change writes beside the state; what is none stays as it was.
#[derive(Clone, Debug, Default)]
pub(crate) struct Learned {
    pub(crate) allocation: Option<ProviderLease>,
    pub(crate) cleanup: Option<CleanupRecord>,
    pub(crate) disposition: Option<Disposition>,
    pub(crate) error: Option<String>,
    /// Whether this change uses up an attempt of the reconciler.
    pub(crate) attempt: bool,
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

impl Store {
    /// Writes a lease down before the provider is asked for anything.
    pub(crate) async fn intend(&self, intent: Intent) -> Result<Lease, StoreError> {
        self.write(Step::Intent, move |connection| insert(connection, &intent)).await
    }

    /// Changes a lease, or says why it may not be changed.
    pub(crate) async fn change(&self, step: Step, change: Change) -> Result<Lease, StoreError> {
        let Change { from, to, .. } = change;
        if !from.may_become(to) {
            return Err(StoreError::Illegal { id: change.id, from, to });
        }
        self.write(step, move |connection| apply(connection, change)).await
    }
}

fn insert(connection: &mut Connection, intent: &Intent) -> Result<Lease, StoreError> {
    let failed = StoreError::sqlite("writing a lease");
    let write = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(&failed)?;
    let now = now_ms();
    let sql = format!(
        "INSERT INTO leases (id, environment, provider, driver, digest, tenant, run, retention, state, \
         config, owner, created_ms, updated_ms) VALUES (:id, :environment, :provider, :driver, :digest, \
         :tenant, :run, :retention, :state, :config, :owner, :now, :now) RETURNING {COLUMNS}"
    );
    let values = named_params! {
        ":id": intent.id.as_str(), ":environment": intent.environment, ":provider": intent.provider,
        ":driver": intent.driver, ":digest": intent.digest, ":tenant": intent.tenant, ":run": intent.run,
        ":retention": intent.retention.word(), ":state": State::Acquiring.word(), ":config": intent.config,
        ":owner": intent.owner.to_text(), ":now": now,
    };
    let lease = write.prepare_cached(&sql).and_then(|mut insert| insert.query_row(values, read));
    let lease = lease.map_err(&failed)?;
    note(&write, &lease.id, now, None, State::Acquiring, "asked for").map_err(&failed)?;
    write.commit().map_err(&failed)?;
    Ok(lease)
}

fn apply(connection: &mut Connection, change: Change) -> Result<Lease, StoreError> {
    let failed = StoreError::sqlite("writing a lease");
    let write = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(&failed)?;
    if let Some(allocation) = &change.learned.allocation {
        refuse_held(&write, &change.id, &allocation.id)?;
    }
    let now = now_ms();
    let Some(lease) = update(&write, &change, now).map_err(&failed)? else {
        return Err(refusal(&write, change));
    };
    note(&write, &change.id, now, Some(change.from), change.to, &change.reason).map_err(&failed)?;
    write.commit().map_err(&failed)?;
    tracing::debug!(lease = %change.id, from = %change.from, to = %change.to, reason = change.reason);
    Ok(lease)
}

fn update(write: &Connection, change: &Change, now: i64) -> rusqlite::Result<Option<Lease>> {
    let sql = format!(
        "UPDATE leases SET state = :to, owner = :owner, updated_ms = :now, \
         provider_lease_id = coalesce(:allocation, provider_lease_id), \
         metadata = coalesce(:metadata, metadata), expires_at_ms = coalesce(:expires, expires_at_ms), \
         cleanup = coalesce(:cleanup, cleanup), disposition = coalesce(:disposition, disposition), \
         acquired_ms = coalesce(:acquired, acquired_ms), attempts = attempts + :attempt, \
         last_error = coalesce(:error, last_error) \
         WHERE id = :id AND state = :from AND (:anybodys OR owner IS :was) \
         AND (:attempts IS NULL OR attempts = :attempts) RETURNING {COLUMNS}"
    );
    let learned = &change.learned;
    let allocation = learned.allocation.as_ref();
    let (anybodys, was, attempts) = match &change.whose {
        Whose::Anybodys => (true, None, None),
        Whose::Of(owner) => (false, Some(owner.to_text()), None),
        Whose::AsSeen { owner, attempts } => (false, owner.as_ref().map(Owner::to_text), Some(attempts)),
    };
    let cleanup = learned.cleanup.as_ref().and_then(|record| serde_json::to_string(record).ok());
    let values = named_params! {
        ":id": change.id.as_str(), ":from": change.from.word(), ":to": change.to.word(), ":now": now,
        ":anybodys": anybodys, ":was": was, ":attempts": attempts, ":owner": change.owner.as_ref().map(Owner::to_text),
        ":allocation": allocation.map(|lease| &lease.id),
        ":metadata": allocation.and_then(|lease| lease.metadata.as_ref()),
        ":expires": allocation.and_then(|lease| lease.expires_at_ms).map(signed),
        ":cleanup": cleanup, ":disposition": learned.disposition.map(Disposition::word),
        ":acquired": (change.to == State::Active).then_some(now), ":attempt": learned.attempt,
        ":error": learned.error.as_deref().map(shortened),
    };
    write.prepare_cached(&sql)?.query_row(values, read).optional()
}

/// Refuses an allocation that another lease of the same environment holds or keeps.
fn refuse_held(write: &Connection, id: &LeaseId, allocation: &str) -> Result<(), StoreError> {
    const SQL: &str = "SELECT other.id FROM leases mine JOIN leases other \
        ON other.provider = mine.provider AND other.environment = mine.environment \
        AND other.provider_lease_id = :allocation AND other.id <> mine.id \
        WHERE mine.id = :id AND (other.state IN ('active', 'releasing', 'pending_cleanup') \
        OR other.state = 'released' AND other.disposition IN ('stopped', 'retained')) LIMIT 1";
    let values = named_params! { ":id": id.as_str(), ":allocation": allocation };
    let holder = write
        .prepare_cached(SQL)
        .and_then(|mut held| held.query_row(values, |row| word(row, 0, LeaseId::parse)).optional())
        .map_err(StoreError::sqlite("writing a lease"))?;
    match holder {
        Some(holder) => {
            Err(StoreError::HeldElsewhere { id: id.clone(), allocation: allocation.into(), holder })
        }
        None => Ok(()),
    }
}

/// Why nothing was changed.
fn refusal(write: &Connection, change: Change) -> StoreError {
    let found = write.query_row("SELECT state FROM leases WHERE id = ?1", [change.id.as_str()], |row| {
        word(row, 0, State::parse)
    });
    let Change { id, from, to, .. } = change;
    match found {
        Ok(found) if found.may_become(to) => StoreError::Changed { id, expected: from, found },
        Ok(found) => StoreError::Illegal { id, from: found, to },
        Err(rusqlite::Error::QueryReturnedNoRows) => StoreError::Missing { id },
        Err(error) => StoreError::sqlite("writing a lease")(error),
    }
}

fn note(
    write: &Connection,
    id: &LeaseId,
    now: i64,
    from: Option<State>,
    to: State,
    reason: &str,
) -> rusqlite::Result<()> {
    const SQL: &str =
        "INSERT INTO events (lease, at_ms, from_state, to_state, reason) VALUES (?1, ?2, ?3, ?4, ?5)";
    let values = (id.as_str(), now, from.map(State::word), to.word(), shortened(reason));
    write.prepare_cached(SQL)?.execute(values).map(|_| ())
}

/// The beginning of a text, no longer than what is kept, cut between letters.
fn shortened(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_ERROR)]
}
