//! A lease as it is stored.

use crate::{CleanupRecord, Disposition, LeaseId, Owner, ProviderLease, Retention, State};
use rusqlite::Row;
use rusqlite::types::Type;

/// One stored lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Its name, which is the creation name of its allocation.
    pub id: LeaseId,
    /// The environment it was acquired from.
    pub environment: String,
    /// Key of the provider.
    pub provider: String,
    /// Key of the provider's driver.
    pub driver: String,
    /// Digest of the component that made it; the same one must end it.
    pub digest: String,
    /// The tenant it belongs to.
    pub tenant: String,
    /// The run it was acquired for.
    pub run: Option<String>,
    /// What release does; decided once.
    pub retention: Retention,
    /// Where it stands.
    pub state: State,
    /// The allocation, once its id has been seen.
    pub allocation: Option<ProviderLease>,
    /// The configuration as it was sent, without secrets.
    pub config: String,
    /// What a failed acquisition left to find its allocation by.
    pub cleanup: Option<CleanupRecord>,
    /// What the last fitting receipt said.
    pub disposition: Option<Disposition>,
    /// Who works on it; none when nobody does.
    pub owner: Option<Owner>,
    /// How often a reconciler has tried to clean it up.
    pub attempts: u32,
    /// What went wrong last.
    pub last_error: Option<String>,
    /// When it became active; none when it never was.
    pub acquired_ms: Option<u64>,
    /// When it was written first.
    pub created_ms: u64,
    /// When it was written last.
    pub updated_ms: u64,
}

/// The columns in the order [`read`] takes them.
pub(super) const COLUMNS: &str = "id, environment, provider, driver, digest, tenant, run, retention, state, \
    provider_lease_id, metadata, expires_at_ms, config, cleanup, disposition, owner, attempts, last_error, \
    acquired_ms, created_ms, updated_ms";

/// SQLite counts in signed numbers; a time beyond them would be in 292 million years.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// Reads one row of [`COLUMNS`].
pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Lease> {
    let optional_time = |at| row.get::<_, Option<i64>>(at).map(|time| time.map(unsigned));
    let allocation = match row.get::<_, Option<String>>(9)? {
        Some(id) => Some(ProviderLease { id, metadata: row.get(10)?, expires_at_ms: optional_time(11)? }),
        None => None,
    };
    Ok(Lease {
        id: word(row, 0, LeaseId::parse)?,
        environment: row.get(1)?,
        provider: row.get(2)?,
        driver: row.get(3)?,
        digest: row.get(4)?,
        tenant: row.get(5)?,
        run: row.get(6)?,
        retention: word(row, 7, Retention::parse)?,
        state: word(row, 8, State::parse)?,
        allocation,
        config: row.get(12)?,
        cleanup: optional_word(row, 13, |text| serde_json::from_str(text).ok())?,
        disposition: optional_word(row, 14, Disposition::parse)?,
        owner: optional_word(row, 15, Owner::parse)?,
        attempts: row.get(16)?,
        last_error: row.get(17)?,
        acquired_ms: optional_time(18)?,
        created_ms: unsigned(row.get(19)?),
        updated_ms: unsigned(row.get(20)?),
    })
}

/// Reads a text that only certain words may stand in.
pub(super) fn word<T>(row: &Row<'_>, at: usize, read: impl Fn(&str) -> Option<T>) -> rusqlite::Result<T> {
    optional_word(row, at, read)?.ok_or(rusqlite::Error::InvalidColumnType(at, String::new(), Type::Null))
}

pub(super) fn optional_word<T>(
    row: &Row<'_>,
    at: usize,
    read: impl Fn(&str) -> Option<T>,
) -> rusqlite::Result<Option<T>> {
    let Some(text) = row.get::<_, Option<String>>(at)? else { return Ok(None) };
    let unreadable = || format!("`{text}` makes no sense here; the file was changed by hand").into();
    let failed = || rusqlite::Error::FromSqlConversionFailure(at, Type::Text, unreadable());
    read(&text).map(Some).ok_or_else(failed)
}
