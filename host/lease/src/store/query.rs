//! Reading leases and what happened to them.

use super::lease::{COLUMNS, optional_word, read, signed, word};
use super::{Store, StoreError};
use crate::{Lease, LeaseId, Owner, Standing, State};
use rusqlite::named_params;

/// Which leases to list; what is none or empty leaves none out.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Only in these states.
    pub states: Vec<State>,
    /// Only of this environment.
    pub environment: Option<String>,
    /// Only of this tenant.
    pub tenant: Option<String>,
    /// Only of this run.
    pub run: Option<String>,
    /// Only those whose cleanup was tried this often or more.
    pub attempts: u32,
    /// At most this many, the oldest.
    pub limit: Option<u32>,
}

/// One thing that happened to a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// The state before; none for the first.
    pub from: Option<State>,
    /// The state after.
    pub to: State,
    /// Why, for people.
    pub reason: String,
}

/// Where a page ends and the next one begins: the age and the name of its last lease.
pub(crate) type Cursor = (u64, String);

/// Whose unfinished leases a reconciler may take: nobody's, those of the gone, and its own that nothing
/// in this process works on any more.
#[derive(Clone, Debug)]
pub(crate) struct Unowned {
    pub(crate) gone: Vec<String>,
    pub(crate) me: Owner,
    pub(crate) max_attempts: u32,
}

impl Store {
    /// The leases that pass the filter, oldest first.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn list(&self, filter: Filter) -> Result<Vec<Lease>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM leases WHERE (:states = '[]' OR state IN (SELECT value FROM \
             json_each(:states))) AND (:environment IS NULL OR environment = :environment) AND \
             (:tenant IS NULL OR tenant = :tenant) AND (:run IS NULL OR run = :run) AND \
             attempts >= :attempts ORDER BY created_ms, id LIMIT :limit"
        );
        self.with("listing leases", move |connection| {
            let states = filter.states.iter().map(|state| state.word()).collect::<Vec<_>>();
            let values = named_params! {
                ":states": json(&states), ":environment": filter.environment, ":tenant": filter.tenant,
                ":run": filter.run, ":attempts": filter.attempts, ":limit": filter.limit.map_or(-1, i64::from),
            };
            let mut query = connection.prepare_cached(&sql).map_err(StoreError::sqlite("listing leases"))?;
            query.query_map(values, read).and_then(Iterator::collect).map_err(StoreError::sqlite("listing leases"))
        })
        .await
    }

    /// One lease.
    ///
    /// # Errors
    /// [`StoreError::Missing`] when there is none of that name.
    pub async fn get(&self, id: &LeaseId) -> Result<Lease, StoreError> {
        let id = id.clone();
        let sql = format!("SELECT {COLUMNS} FROM leases WHERE id = ?1");
        self.with("reading a lease", move |connection| {
            let mut query = connection.prepare_cached(&sql).map_err(StoreError::sqlite("reading a lease"))?;
            query.query_row([id.as_str()], read).map_err(|error| match error {
                rusqlite::Error::QueryReturnedNoRows => StoreError::Missing { id: id.clone() },
                other => StoreError::sqlite("reading a lease")(other),
            })
        })
        .await
    }

    /// What happened to a lease, oldest first.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn history(&self, id: &LeaseId) -> Result<Vec<Event>, StoreError> {
        const SQL: &str =
            "SELECT at_ms, from_state, to_state, reason FROM events WHERE lease = ?1 ORDER BY rowid";
        let id = id.clone();
        self.with("reading the history of a lease", move |connection| {
            let failed = StoreError::sqlite("reading the history of a lease");
            let mut query = connection.prepare_cached(SQL).map_err(&failed)?;
            let event = |row: &rusqlite::Row<'_>| {
                Ok(Event {
                    at_ms: u64::try_from(row.get::<_, i64>(0)?).unwrap_or(0),
                    from: optional_word(row, 1, State::parse)?,
                    to: word(row, 2, State::parse)?,
                    reason: row.get(3)?,
                })
            };
            query.query_map([id.as_str()], event).and_then(Iterator::collect).map_err(&failed)
        })
        .await
    }

    /// Everybody who works on a lease, as written, and how they stand. An owner that cannot be read is
    /// out of sight.
    pub(crate) async fn owners(&self) -> Result<Vec<(String, Standing)>, StoreError> {
        const SQL: &str = "SELECT DISTINCT owner FROM leases WHERE owner IS NOT NULL";
        self.with("looking for owners", move |connection| {
            let failed = StoreError::sqlite("looking for owners");
            let mut query = connection.prepare_cached(SQL).map_err(&failed)?;
            let standing = |text: &str| Owner::parse(text).map_or(Standing::OutOfSight, |it| it.standing());
            let owner = |row: &rusqlite::Row<'_>| {
                let text: String = row.get(0)?;
                let standing = standing(&text);
                Ok((text, standing))
            };
            query.query_map([], owner).and_then(Iterator::collect).map_err(&failed)
        })
        .await
    }

    /// The next page of leases a reconciler may take. The order is that of their making, which no attempt
    /// changes, so one pass sees each lease once.
    pub(crate) async fn page(
        &self,
        unowned: Unowned,
        after: Option<Cursor>,
        limit: u32,
    ) -> Result<Vec<Lease>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM leases \
             WHERE state IN ('acquiring', 'active', 'releasing', 'pending_cleanup') \
             AND (created_ms, id) > (:age, :name) AND attempts < :max AND \
             (owner IN (SELECT value FROM json_each(:gone)) \
             OR owner IS NULL OR (owner = :me AND state <> 'active')) \
             ORDER BY created_ms, id LIMIT :limit"
        );
        self.with("looking for leases to clean up", move |connection| {
            let failed = StoreError::sqlite("looking for leases to clean up");
            let (age, name) = after.map_or((-1, String::new()), |(age, name)| (signed(age), name));
            let values = named_params! {
                ":age": age, ":name": name, ":max": unowned.max_attempts, ":gone": json(&unowned.gone),
                ":me": unowned.me.to_text(), ":limit": limit,
            };
            let mut query = connection.prepare_cached(&sql).map_err(&failed)?;
            query.query_map(values, read).and_then(Iterator::collect).map_err(&failed)
        })
        .await
    }
}

/// A list as one parameter, for `json_each`.
fn json(list: &[impl serde::Serialize]) -> String {
    serde_json::to_string(list).unwrap_or_else(|_| "[]".into())
}
