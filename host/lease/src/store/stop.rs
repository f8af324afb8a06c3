//! Stops that were asked for: written, and on the disk, before the provider is asked, and settled only by a
//! receipt about exactly that allocation.

use super::change::Change;
use super::sql::{Row, SqlError, Statements, values};
use super::{Store, StoreError};
use crate::{Disposition, Goal, Lease, LeaseId, Pins, State, StopReason};

/// A stop that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopIntent {
    /// Its own name.
    pub id: String,
    /// The tenant, the run and the provider it is for; they must be those of the lease.
    pub tenant: String,
    /// The run that used the lease last.
    pub run: Option<String>,
    /// The provider that must stop it.
    pub pins: Pins,
    /// Exactly this allocation.
    pub allocation: String,
    /// When it was asked for, in milliseconds since the Unix epoch.
    pub requested_ms: u64,
    /// How it came out last; `stopped` once it is settled.
    pub outcome: Option<String>,
    /// When it was settled.
    pub settled_ms: Option<u64>,
}

impl Store {
    /// The stops that were asked for of a lease, oldest first.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn stop_intents(&self, id: &LeaseId) -> Result<Vec<StopIntent>, StoreError> {
        const SQL: &str = "SELECT stop_intents.id, stop_intents.tenant, stop_intents.run, \
            stop_intents.provider, stop_intents.plugin, leases.driver, stop_intents.digest, \
            stop_intents.provider_lease_id, requested_ms, outcome, settled_ms FROM stop_intents \
            JOIN leases ON leases.id = stop_intents.lease WHERE lease = ?1 ORDER BY requested_ms";
        let id = id.clone();
        self.read("reading the stops of a lease", move |on| {
            let rows = on.query(SQL, &values![id.as_str()])?;
            Ok(rows.into_iter().map(read).collect::<Result<_, _>>()?)
        })
        .await
    }
}

fn read(mut row: Row) -> Result<StopIntent, SqlError> {
    Ok(StopIntent {
        id: row.text()?,
        tenant: row.text()?,
        run: row.optional_text()?,
        pins: Pins { provider: row.text()?, plugin: row.text()?, driver: row.text()?, digest: row.text()? },
        allocation: row.text()?,
        requested_ms: row.number()?,
        outcome: row.optional_text()?,
        settled_ms: row.optional_number()?,
    })
}

impl StopIntent {
    /// Whether it is still about this lease as it is stored; one that is not is invalid and settles nothing.
    #[must_use]
    pub fn fits(&self, lease: &Lease) -> bool {
        let allocation = lease.allocation.as_ref().is_some_and(|it| it.id == self.allocation);
        allocation && self.tenant == lease.tenant && self.run == lease.run && self.pins == lease.pins
    }
}

/// Writes the intent with the change that decides to stop, and its outcome with every change after it.
pub(super) fn follow(
    on: &mut dyn Statements,
    change: &Change,
    lease: &Lease,
    now: u64,
    stamp: &str,
) -> Result<(), SqlError> {
    let id = lease.id.as_str();
    if change.to == State::PendingCleanup && change.learned.goal == Some(Goal::Stop) {
        const SQL: &str = "INSERT INTO stop_intents (id, lease, tenant, run, provider, plugin, digest, \
            provider_lease_id, requested_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
        let allocation = lease.allocation.as_ref().map(|it| &it.id);
        let Some(allocation) = allocation else { return Ok(()) };
        const OPEN: &str = "SELECT id FROM stop_intents WHERE lease = ?1 AND settled_ms IS NULL";
        if !on.query(OPEN, &values![id])?.is_empty() {
            return Ok(());
        }
        let request = format!("{id}-stop-{stamp}");
        let pins = &lease.pins;
        let tenant = &lease.tenant;
        let run = lease.run.as_ref();
        let values =
            values![request, id, tenant, run, &pins.provider, &pins.plugin, &pins.digest, allocation, now];
        return on.execute(SQL, &values).map(|_| ());
    }
    if change.from != State::PendingCleanup || lease.goal != Some(Goal::Stop) {
        return Ok(());
    }
    const OUTCOME: &str = "UPDATE stop_intents SET outcome = ?1, settled_ms = ?2 \
        WHERE lease = ?3 AND settled_ms IS NULL";
    match (change.to, change.learned.disposition, change.learned.not_stopped) {
        (State::Retained, Some(Disposition::Stopped), _) => {
            on.execute(OUTCOME, &values!["stopped", now, id]).map(|_| ())
        }
        (State::Released, ..) => on.execute(OUTCOME, &values!["already gone", now, id]).map(|_| ()),
        (_, _, Some(reason)) => {
            on.execute(OUTCOME, &values![StopReason::word(reason), None::<u64>, id]).map(|_| ())
        }
        _ => Ok(()),
    }
}
