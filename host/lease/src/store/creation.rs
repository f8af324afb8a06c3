//! Creations that were asked for: what may exist at a back end under their names.

use super::change::Change;
use super::sql::{SqlError, Statements, values};
use super::{Store, StoreError};
use crate::{CleanupRecord, Lease, LeaseId, State};

/// One creation, asked for under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Creation {
    /// The name, which the lease has as well.
    pub name: String,
    /// When it was asked for, in milliseconds since the Unix epoch.
    pub begun_ms: u64,
    /// Until when something of that name may still come to light.
    pub settle_ms: u64,
    /// What the provider left to find it by.
    pub record: Option<CleanupRecord>,
    /// How it ended; none while that is not known.
    pub outcome: Option<String>,
    /// When that became known.
    pub ended_ms: Option<u64>,
}

impl Store {
    /// The creation of a lease.
    ///
    /// # Errors
    /// [`StoreError::Missing`] when there is no such lease.
    pub async fn creation(&self, id: &LeaseId) -> Result<Creation, StoreError> {
        const SQL: &str = "SELECT name, begun_ms, settle_ms, record, outcome, ended_ms FROM creations \
            WHERE name = ?1";
        let id = id.clone();
        self.read("reading a creation", move |on| {
            let rows = on.query(SQL, &values![id.as_str()])?;
            let Some(mut row) = rows.into_iter().next() else {
                return Err(StoreError::Missing { id: id.clone() }.into());
            };
            Ok(Creation {
                name: row.text()?,
                begun_ms: row.number()?,
                settle_ms: row.number()?,
                record: row.optional_word(|text| serde_json::from_str(text).ok())?,
                outcome: row.optional_text()?,
                ended_ms: row.optional_number()?,
            })
        })
        .await
    }
}

/// Keeps the creation in step with its lease.
pub(super) fn follow(
    on: &mut dyn Statements,
    change: &Change,
    lease: &Lease,
    now: u64,
) -> Result<(), SqlError> {
    if let Some(record) = &change.learned.cleanup {
        let record = serde_json::to_string(record).unwrap_or_default();
        on.execute("UPDATE creations SET record = ?1 WHERE name = ?2", &values![record, lease.id.as_str()])?;
    }
    if change.learned.settled {
        on.execute("UPDATE creations SET settle_ms = ?1 WHERE name = ?2", &values![now, lease.id.as_str()])?;
    }
    let outcome = match (change.from, change.to) {
        (State::Acquiring, State::Active) => "adopted",
        (State::Acquiring | State::PendingCleanup, State::Failed) => "nothing made",
        (State::PendingCleanup, State::Released) if lease.acquired_ms.is_none() => "undone",
        _ => return Ok(()),
    };
    const SQL: &str = "UPDATE creations SET outcome = ?1, ended_ms = ?2 WHERE name = ?3";
    on.execute(SQL, &values![outcome, now, lease.id.as_str()]).map(|_| ())
}
