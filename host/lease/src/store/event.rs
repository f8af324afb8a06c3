//! What happened to a lease.

use super::sql::{SqlError, Statements, values};
use super::{Durability, Store, StoreError};
use crate::limits::shortened;
use crate::{LeaseId, State};
use serde::{Deserialize, Serialize};

/// One thing that happened to a lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// When, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// The state before; none for the first.
    pub from: Option<State>,
    /// The state after; the same as before where only something was done in it.
    pub to: State,
    /// Why, for people.
    pub reason: String,
    /// What the call that led to it used, as a JSON object.
    pub bill: Option<String>,
}

impl Store {
    /// What happened to a lease, oldest first.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn history(&self, id: &LeaseId) -> Result<Vec<Event>, StoreError> {
        const SQL: &str =
            "SELECT at_ms, from_state, to_state, reason, bill FROM events WHERE lease = ?1 ORDER BY id";
        let id = id.clone();
        self.read("reading the history of a lease", move |on| {
            let rows = on.query(SQL, &values![id.as_str()])?;
            let event = |mut row: super::sql::Row| {
                Ok(Event {
                    at_ms: row.number()?,
                    from: row.optional_word(State::parse)?,
                    to: row.word(State::parse)?,
                    reason: row.text()?,
                    bill: row.optional_text()?,
                })
            };
            Ok(rows.into_iter().map(event).collect::<Result<_, SqlError>>()?)
        })
        .await
    }

    /// Records something that was done within a lease, with what it used. Its state stays.
    ///
    /// # Errors
    /// [`StoreError::Missing`] when there is no such lease.
    pub async fn record(&self, id: &LeaseId, what: &str, bill: Option<String>) -> Result<(), StoreError> {
        let (id, what, now) = (id.clone(), what.to_owned(), self.now_ms());
        self.write("recording what was done in a lease", Durability::Process, move |on| {
            let found = on.query("SELECT state FROM leases WHERE id = ?1", &values![id.as_str()])?;
            let Some(mut row) = found.into_iter().next() else {
                return Err(StoreError::Missing { id: id.clone() }.into());
            };
            let state = row.word(State::parse)?;
            Ok(note(on, &id, now, Some(state), state, &what, bill.as_deref())?)
        })
        .await
    }
}

pub(super) fn note(
    on: &mut dyn Statements,
    id: &LeaseId,
    now: u64,
    from: Option<State>,
    to: State,
    reason: &str,
    bill: Option<&str>,
) -> Result<(), SqlError> {
    const SQL: &str = "INSERT INTO events (lease, at_ms, from_state, to_state, reason, bill) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let values = values![id.as_str(), now, from.map(State::word), to.word(), shortened(reason), bill];
    on.execute(SQL, &values).map(|_| ())
}
