//! Environments that were added by hand: a name for a provider and its configuration.

use super::sql::{Row, SqlError, values};
use super::{Durability, Store, StoreError};
use serde_json::{Map, Value};

/// An environment as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct EnvironmentRecord {
    /// Its name.
    pub name: String,
    /// The provider's name: a driver's key, or `provider:driver`.
    pub provider: String,
    /// The provider's configuration. Never holds a secret.
    pub config: Map<String, Value>,
    /// When it was added, in milliseconds since the Unix epoch.
    pub created_ms: u64,
}

const COLUMNS: &str = "name, provider, config, created_ms";

fn read(mut row: Row) -> Result<EnvironmentRecord, SqlError> {
    Ok(EnvironmentRecord {
        name: row.text()?,
        provider: row.text()?,
        config: row.word(|text| serde_json::from_str(text).ok())?,
        created_ms: row.number()?,
    })
}

impl Store {
    /// Adds an environment; whether its name was free.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be written.
    pub async fn add_environment(
        &self,
        name: &str,
        provider: &str,
        config: &Map<String, Value>,
    ) -> Result<bool, StoreError> {
        const SQL: &str = "INSERT INTO environments \
            (name, provider, config, narrowing, status, created_ms, updated_ms) \
            SELECT ?1, ?2, ?3, '{}', 'active', ?4, ?4 \
            WHERE NOT EXISTS (SELECT 1 FROM environments WHERE name = ?1)";
        let (name, provider, now) = (name.to_owned(), provider.to_owned(), self.now_ms());
        let config = Value::Object(config.clone()).to_string();
        let added = self.write("adding an environment", Durability::Disk, move |on| {
            Ok(on.execute(SQL, &values![&name, &provider, &config, now])? > 0)
        });
        match added.await {
            // Another host was faster by a moment.
            Err(StoreError::Conflict { .. }) => Ok(false),
            added => added,
        }
    }

    /// The environment of this name.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn environment(&self, name: &str) -> Result<Option<EnvironmentRecord>, StoreError> {
        let name = name.to_owned();
        let sql = format!("SELECT {COLUMNS} FROM environments WHERE name = ?1");
        self.read("looking for an environment", move |on| {
            Ok(on.query(&sql, &values![&name])?.into_iter().next().map(read).transpose()?)
        })
        .await
    }

    /// Every environment, by name.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn environments(&self) -> Result<Vec<EnvironmentRecord>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM environments ORDER BY name");
        self.read("listing environments", move |on| {
            Ok(on.query(&sql, &[])?.into_iter().map(read).collect::<Result<_, SqlError>>()?)
        })
        .await
    }

    /// Removes an environment; whether there was one.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be written.
    pub async fn remove_environment(&self, name: &str) -> Result<bool, StoreError> {
        const SQL: &str = "DELETE FROM environments WHERE name = ?1";
        let name = name.to_owned();
        self.write("removing an environment", Durability::Disk, move |on| {
            Ok(on.execute(SQL, &values![&name])? > 0)
        })
        .await
    }
}
