//! What providers remember between calls: values under keys, apart for each provider, environment and
//! tenant.

use super::sql::{SqlError, Statements, values};
use super::{Durability, Store, StoreError};

/// Whose state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StateKey {
    /// Id of the installed provider.
    pub provider: String,
    /// The environment.
    pub environment: String,
    /// The tenant.
    pub tenant: String,
}

/// A value and its version, which grows with every change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateValue {
    /// The bytes.
    pub value: Vec<u8>,
    /// The version.
    pub version: u64,
}

impl Store {
    /// Reads a value; none when the key is absent or has expired.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn state_get(&self, of: &StateKey, key: &str) -> Result<Option<StateValue>, StoreError> {
        let (of, key, now) = (of.clone(), key.to_owned(), self.now_ms());
        self.read("reading a provider's state", move |on| Ok(current(on, &of, &key, now)?)).await
    }

    /// Writes a value, over exactly `expected` where that is given (0: only where the key is absent).
    /// Answers the new version, or the current one (none when absent) where it is another.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be written.
    pub async fn state_set(
        &self,
        of: &StateKey,
        key: &str,
        value: Vec<u8>,
        expected: Option<u64>,
        expires_ms: Option<u64>,
    ) -> Result<Result<u64, Option<u64>>, StoreError> {
        const SQL: &str = "INSERT INTO state (provider, environment, tenant, key, value, version, expires_ms) \
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (provider, environment, tenant, key) \
            DO UPDATE SET value = excluded.value, version = excluded.version, \
            expires_ms = excluded.expires_ms WHERE state.version = ?8";
        let (of, key, now) = (of.clone(), key.to_owned(), self.now_ms());
        self.write("writing a provider's state", Durability::Disk, move |on| {
            let found = current(on, &of, &key, now)?.map(|found| found.version);
            if expected.is_some_and(|expected| expected != found.unwrap_or(0)) {
                return Ok(Err(found));
            }
            // An expired value is still there; versions never go back.
            let stored = stored_version(on, &of, &key)?;
            let version = stored.unwrap_or(0) + 1;
            let StateKey { provider, environment, tenant } = &of;
            let values = values![
                provider,
                environment,
                tenant,
                &key,
                value.clone(),
                version,
                expires_ms,
                stored.unwrap_or(0)
            ];
            // Another that came in between changed nothing of what was seen, so it is said to be current.
            match on.execute(SQL, &values)? {
                0 => Ok(Err(stored_version(on, &of, &key)?)),
                _ => Ok(Ok(version)),
            }
        })
        .await
    }

    /// Removes a value, at exactly `expected` where that is given. Answers whether there was one, or the
    /// current version where it is another.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be written.
    pub async fn state_remove(
        &self,
        of: &StateKey,
        key: &str,
        expected: Option<u64>,
    ) -> Result<Result<bool, Option<u64>>, StoreError> {
        const SQL: &str = "DELETE FROM state WHERE provider = ?1 AND environment = ?2 AND tenant = ?3 \
            AND key = ?4 AND version = ?5";
        let (of, key, now) = (of.clone(), key.to_owned(), self.now_ms());
        self.write("removing a provider's state", Durability::Disk, move |on| {
            let Some(found) = current(on, &of, &key, now)? else {
                return Ok(if expected.is_some_and(|it| it != 0) { Err(None) } else { Ok(false) });
            };
            if expected.is_some_and(|expected| expected != found.version) {
                return Ok(Err(Some(found.version)));
            }
            let StateKey { provider, environment, tenant } = &of;
            let removed = on.execute(SQL, &values![provider, environment, tenant, &key, found.version])?;
            Ok(Ok(removed > 0))
        })
        .await
    }

    /// Keys and bytes held, what has expired not counted.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn state_size(&self, of: &StateKey) -> Result<(u64, u64), StoreError> {
        const SQL: &str = "SELECT count(*), CAST(coalesce(sum(length(value) + length(key)), 0) AS BIGINT) \
            FROM state WHERE provider = ?1 AND environment = ?2 AND tenant = ?3 \
            AND (expires_ms IS NULL OR expires_ms > ?4)";
        let (of, now) = (of.clone(), self.now_ms());
        self.read("measuring a provider's state", move |on| {
            let StateKey { provider, environment, tenant } = &of;
            let rows = on.query(SQL, &values![provider, environment, tenant, now])?;
            let sizes = rows.into_iter().next().map(|mut row| Ok((row.number()?, row.number()?)));
            Ok(sizes.transpose().map_err(|error: SqlError| error)?.unwrap_or_default())
        })
        .await
    }
}

fn current(
    on: &mut dyn Statements,
    of: &StateKey,
    key: &str,
    now: u64,
) -> Result<Option<StateValue>, SqlError> {
    const SQL: &str = "SELECT value, version FROM state WHERE provider = ?1 AND environment = ?2 \
        AND tenant = ?3 AND key = ?4 AND (expires_ms IS NULL OR expires_ms > ?5)";
    let StateKey { provider, environment, tenant } = of;
    let rows = on.query(SQL, &values![provider, environment, tenant, key, now])?;
    let value = |mut row: super::sql::Row| Ok(StateValue { value: row.bytes()?, version: row.number()? });
    rows.into_iter().next().map(value).transpose()
}

fn stored_version(on: &mut dyn Statements, of: &StateKey, key: &str) -> Result<Option<u64>, SqlError> {
    const SQL: &str = "SELECT version FROM state WHERE provider = ?1 AND environment = ?2 \
        AND tenant = ?3 AND key = ?4";
    let StateKey { provider, environment, tenant } = of;
    let rows = on.query(SQL, &values![provider, environment, tenant, key])?;
    rows.into_iter().next().map(|mut row| row.number()).transpose()
}
