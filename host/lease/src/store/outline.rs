//! Leases in outline: what a list shows of thousands, without reading all of each.

use super::sql::{Row, SqlError};
use super::{Filter, Store, StoreError};
use crate::{LeaseId, Owner, State};

/// What a list shows of a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outline {
    /// Its name.
    pub id: LeaseId,
    /// Where it stands.
    pub state: State,
    /// The environment it was acquired from.
    pub environment: String,
    /// Key of the provider that made it.
    pub provider: String,
    /// Whether a person holds it instead of a process.
    pub held: bool,
    /// Who works on it; none when nobody does.
    pub owner: Option<Owner>,
    /// How often a reconciler has tried to clean it up.
    pub attempts: u32,
    /// Whether only a person can help.
    pub escalated: bool,
    /// What went wrong last.
    pub last_error: Option<String>,
    /// When it was written first, in milliseconds since the Unix epoch.
    pub created_ms: u64,
}

const COLUMNS: &str =
    "id, state, environment, provider, held, owner, attempts, escalated, last_error, created_ms";

fn read(mut row: Row) -> Result<Outline, SqlError> {
    Ok(Outline {
        id: row.word(LeaseId::parse)?,
        state: row.word(State::parse)?,
        environment: row.text()?,
        provider: row.text()?,
        held: row.flag()?,
        owner: row.optional_word(Owner::parse)?,
        attempts: u32::try_from(row.number()?).unwrap_or(u32::MAX),
        escalated: row.flag()?,
        last_error: row.optional_text()?,
        created_ms: row.number()?,
    })
}

impl Store {
    /// The leases that pass the filter in outline, oldest first.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn outlines(&self, filter: &Filter) -> Result<Vec<Outline>, StoreError> {
        let (which, values) = filter.clause();
        let sql = format!("SELECT {COLUMNS} FROM leases {which}");
        self.read("listing leases", move |on| {
            Ok(on.query(&sql, &values)?.into_iter().map(read).collect::<Result<_, SqlError>>()?)
        })
        .await
    }
}
