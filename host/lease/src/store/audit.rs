//! What providers reached and were refused, and which secrets were used: kept for people to look at.

use super::sql::{Row, SqlError, values};
use super::{Durability, Store, StoreError};
use crate::limits::shortened;
use serde::Serialize;

/// One thing a provider did with authority it was given, or tried to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Audit {
    /// When, in milliseconds since the Unix epoch; set by the store.
    pub at_ms: u64,
    /// What kind of thing, as a stable word: `http`, `connect`, `secret`, `state` and the like.
    pub kind: String,
    /// The provider.
    pub provider: String,
    /// The environment, when there was one.
    pub environment: Option<String>,
    /// The tenant, when there was one.
    pub tenant: Option<String>,
    /// The lease, when there was one.
    pub lease: Option<String>,
    /// What was reached or used; never a secret's value.
    pub what: String,
    /// What was decided, as a stable word: `allowed`, `denied` and the like.
    pub verdict: String,
    /// How many bytes were moved, when any were.
    pub bytes: Option<u64>,
}

/// Which entries to list; what is none leaves none out.
#[derive(Clone, Debug, Default)]
pub struct AuditFilter {
    /// Only of this provider.
    pub provider: Option<String>,
    /// Only of this environment.
    pub environment: Option<String>,
    /// Only of this tenant.
    pub tenant: Option<String>,
    /// At most this many, the newest.
    pub limit: Option<u32>,
}

impl Store {
    /// Writes entries, in one transaction.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be written.
    pub async fn audit(&self, entries: Vec<Audit>) -> Result<(), StoreError> {
        const SQL: &str = "INSERT INTO audit (at_ms, kind, provider, environment, tenant, lease, what, \
            verdict, bytes) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
        let now = self.now_ms();
        self.write("writing what a provider did", Durability::Process, move |on| {
            for it in &entries {
                let (what, verdict) = (shortened(&it.what), &it.verdict);
                let environment = it.environment.as_ref();
                let (tenant, lease) = (it.tenant.as_ref(), it.lease.as_ref());
                let values =
                    values![now, &it.kind, &it.provider, environment, tenant, lease, what, verdict, it.bytes];
                on.execute(SQL, &values)?;
            }
            Ok(())
        })
        .await
    }

    /// The newest entries that pass the filter, newest first.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn audited(&self, filter: AuditFilter) -> Result<Vec<Audit>, StoreError> {
        const SQL: &str = "SELECT at_ms, kind, provider, environment, tenant, lease, what, verdict, bytes \
            FROM audit WHERE (CAST(?1 AS TEXT) IS NULL OR provider = ?1) \
            AND (CAST(?2 AS TEXT) IS NULL OR environment = ?2) \
            AND (CAST(?3 AS TEXT) IS NULL OR tenant = ?3) ORDER BY id DESC LIMIT ?4";
        self.read("reading what providers did", move |on| {
            let AuditFilter { provider, environment, tenant, limit } = &filter;
            let limit = limit.map_or(i64::MAX, i64::from);
            let rows =
                on.query(SQL, &values![provider.as_ref(), environment.as_ref(), tenant.as_ref(), limit])?;
            Ok(rows.into_iter().map(read).collect::<Result<_, _>>()?)
        })
        .await
    }
}

fn read(mut row: Row) -> Result<Audit, SqlError> {
    Ok(Audit {
        at_ms: row.number()?,
        kind: row.text()?,
        provider: row.text()?,
        environment: row.optional_text()?,
        tenant: row.optional_text()?,
        lease: row.optional_text()?,
        what: row.text()?,
        verdict: row.text()?,
        bytes: row.optional_number()?,
    })
}
