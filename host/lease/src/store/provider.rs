//! Installed providers: their rows, and the rows of their drivers, by which a driver's key is looked up.

use super::sql::{Row, SqlError, Statements, values};
use super::{Durability, Failure, Store, StoreError};
use crate::State;
use crate::registry::{
    Change, InstallFault, Package, ProviderRecord, ProviderStatus, Stored, Version, declaration, revision,
};
use leasehold_contract::declaration::DriverKind;

const COLUMNS: &str = "id, key, digest, version, declaration, grants, status, position, source, \
    installed_ms, updated_ms";

/// How often an installation is tried where hosts of one server install at the same moment; each time one of
/// them comes through.
const INSTALLS: usize = 10;

/// The kind by which drivers are resolved, as it is stored.
const SANDBOX: &str = DriverKind::SandboxProvider.name();

fn read(mut row: Row) -> Result<ProviderRecord, SqlError> {
    Ok(ProviderRecord {
        id: row.text()?,
        key: row.text()?,
        digest: row.text()?,
        version: row.text()?,
        declaration: row.text()?,
        grants: row.text()?,
        status: row.word(ProviderStatus::parse)?,
        position: row.number()?,
        source: row.text()?,
        installed_ms: row.number()?,
        updated_ms: row.number()?,
    })
}

impl Store {
    /// Every installed provider, in the order of installation.
    pub(crate) async fn providers(&self) -> Result<Vec<ProviderRecord>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM providers WHERE status <> 'removed' ORDER BY position");
        self.read("listing providers", move |on| all(on, &sql, &[])).await
    }

    /// The installed provider of this key.
    pub(crate) async fn provider_by_key(&self, key: &str) -> Result<Option<ProviderRecord>, StoreError> {
        let key = key.to_owned();
        self.read("looking for a provider", move |on| Ok(by_key(on, &key)?)).await
    }

    /// The provider of this id, also when it was removed.
    pub(crate) async fn provider_by_id(&self, id: &str) -> Result<Option<ProviderRecord>, StoreError> {
        let id = id.to_owned();
        let sql = format!("SELECT {COLUMNS} FROM providers WHERE id = ?1");
        self.read("looking for a provider", move |on| Ok(all(on, &sql, &values![&id])?.pop())).await
    }

    /// Those that declare this driver as a sandbox provider, in the order of installation.
    pub(crate) async fn providers_declaring(&self, driver: &str) -> Result<Vec<ProviderRecord>, StoreError> {
        let driver = driver.to_owned();
        let sql = format!(
            "SELECT {COLUMNS} FROM providers WHERE status <> 'removed' AND id IN \
             (SELECT provider FROM drivers WHERE key = ?1 AND kind = ?2) ORDER BY position"
        );
        self.read("looking for a provider", move |on| all(on, &sql, &values![&driver, SANDBOX])).await
    }

    /// Keys of all drivers that are sandbox providers, in the order of installation.
    pub(crate) async fn sandbox_drivers(&self) -> Result<Vec<String>, StoreError> {
        const SQL: &str = "SELECT drivers.key FROM drivers JOIN providers ON providers.id = drivers.provider \
            WHERE providers.status <> 'removed' AND drivers.kind = ?1 \
            ORDER BY providers.position, drivers.position";
        self.read("listing providers", move |on| {
            let mut keys = Vec::new();
            for mut row in on.query(SQL, &values![SANDBOX])? {
                let key = row.text()?;
                if !keys.contains(&key) {
                    keys.push(key);
                }
            }
            Ok(keys)
        })
        .await
    }

    /// The schema of the first provider that declares this driver. Its text is read only when it is another
    /// version than the known one.
    pub(crate) async fn config_schema(
        &self,
        driver: &str,
        known: Option<Version>,
    ) -> Result<Stored, StoreError> {
        const SQL: &str = "SELECT providers.id, drivers.revision, \
            CASE WHEN providers.id = ?3 AND drivers.revision = ?4 THEN NULL ELSE drivers.schema END \
            FROM drivers JOIN providers ON providers.id = drivers.provider \
            WHERE drivers.key = ?1 AND drivers.kind = ?2 AND providers.status <> 'removed' \
            ORDER BY providers.position, drivers.position LIMIT 1";
        let driver = driver.to_owned();
        let (provider, revision) = known.map_or_else(Default::default, |it| (it.provider, it.revision));
        self.read("reading a configuration schema", move |on| {
            let found = on.query(SQL, &values![&driver, SANDBOX, &provider, &revision])?;
            let Some(mut row) = found.into_iter().next() else { return Ok(Stored::Nobody) };
            let version = Version { provider: row.text()?, revision: row.text()? };
            Ok(match row.optional_text()? {
                None => Stored::Unchanged(version),
                Some(text) => Stored::Changed(version, text),
            })
        })
        .await
    }

    /// Writes a provider; what another one of its key has is replaced only when `replace` says so.
    pub(crate) async fn install_provider(
        &self,
        package: Package,
        replace: bool,
    ) -> Result<Result<Change, InstallFault>, StoreError> {
        for _ in 1..INSTALLS {
            match self.try_to_install(package.clone(), replace).await {
                // Another host took the same place in the order, or the same key, at the same moment.
                Err(StoreError::Conflict { .. }) => {}
                installed => return installed,
            }
        }
        self.try_to_install(package, replace).await
    }

    async fn try_to_install(
        &self,
        package: Package,
        replace: bool,
    ) -> Result<Result<Change, InstallFault>, StoreError> {
        let now = self.now_ms();
        let text =
            declaration(&package.manifest).map_err(|fault| StoreError::Unreadable { what: fault.why })?;
        self.write("installing a provider", Durability::Disk, move |on| {
            let key = &package.manifest.plugin_key;
            let Some(found) = by_key(on, key)? else {
                return insert(on, &package, &text, now).map(|record| Ok(Change::Installed(record)));
            };
            let same = |grants: &str| {
                found.digest == package.digest && found.declaration == text && found.grants == grants
            };
            if same(&package.grants) {
                return Ok(Ok(Change::Unchanged(found)));
            }
            if (found.position == 0) != package.embedded {
                return Ok(Err(InstallFault::Reserved { key: key.clone() }));
            }
            if !replace {
                let version = found.version;
                return Ok(Err(InstallFault::AlreadyInstalled { key: key.clone(), version }));
            }
            let record = update(on, &found, &package, &text, now)?;
            let live = live(on, &found.id, Some(&found.digest))?;
            let (from_digest, from_version) = (found.digest, found.version);
            Ok(Ok(Change::Upgraded { record, from_digest, from_version, live }))
        })
        .await
    }

    /// Changes the status of a provider that has the one given; whether it had it.
    pub(crate) async fn set_provider_status(
        &self,
        id: &str,
        from: ProviderStatus,
        to: ProviderStatus,
    ) -> Result<bool, StoreError> {
        const SQL: &str = "UPDATE providers SET status = ?3, updated_ms = ?4 WHERE id = ?1 AND status = ?2";
        let (id, now) = (id.to_owned(), self.now_ms());
        self.write("changing a provider", Durability::Disk, move |on| {
            Ok(on.execute(SQL, &values![&id, from.word(), to.word(), now])? > 0)
        })
        .await
    }

    /// Replaces what a provider is granted, if it still is what it was; whether it was.
    pub async fn set_provider_grants(&self, id: &str, from: &str, to: &str) -> Result<bool, StoreError> {
        const SQL: &str = "UPDATE providers SET grants = ?3, updated_ms = ?4 WHERE id = ?1 AND grants = ?2";
        let (id, from, to, now) = (id.to_owned(), from.to_owned(), to.to_owned(), self.now_ms());
        self.write("changing a provider", Durability::Disk, move |on| {
            Ok(on.execute(SQL, &values![&id, &from, &to, now])? > 0)
        })
        .await
    }

    /// Removes a provider, or keeps it as removed while leases of it have not ended: how many those are.
    pub(crate) async fn remove_provider(&self, id: &str) -> Result<u64, StoreError> {
        const KEEP: &str = "UPDATE providers SET status = 'removed', updated_ms = ?2 WHERE id = ?1";
        let (id, now) = (id.to_owned(), self.now_ms());
        self.write("removing a provider", Durability::Disk, move |on| {
            let live = live(on, &id, None)?;
            if live == 0 {
                delete(on, &id)?;
            } else {
                on.execute(KEEP, &values![&id, now])?;
            }
            Ok(live)
        })
        .await
    }

    /// Forgets removed providers without leases. What is left, by provider and digest: what is installed and
    /// what leases that have not ended pin.
    pub(crate) async fn collect_providers(&self) -> Result<Vec<(String, String)>, StoreError> {
        let unfinished = unfinished();
        let gone = format!(
            "SELECT id FROM providers WHERE status = 'removed' AND id NOT IN \
             (SELECT plugin FROM leases WHERE state IN ({unfinished}))"
        );
        let needed = format!(
            "SELECT id, digest FROM providers UNION \
             SELECT plugin, digest FROM leases WHERE state IN ({unfinished})"
        );
        self.write("collecting providers", Durability::Process, move |on| {
            for mut row in on.query(&gone, &[])? {
                delete(on, &row.text()?)?;
            }
            let pairs = on.query(&needed, &[])?.into_iter().map(|mut row| Ok((row.text()?, row.text()?)));
            Ok(pairs.collect::<Result<_, SqlError>>()?)
        })
        .await
    }
}

fn all(
    on: &mut dyn Statements,
    sql: &str,
    values: &[super::sql::Value],
) -> Result<Vec<ProviderRecord>, Failure> {
    Ok(on.query(sql, values)?.into_iter().map(read).collect::<Result<_, _>>()?)
}

fn by_key(on: &mut dyn Statements, key: &str) -> Result<Option<ProviderRecord>, SqlError> {
    let sql = format!("SELECT {COLUMNS} FROM providers WHERE key = ?1 AND status <> 'removed'");
    on.query(&sql, &values![key])?.into_iter().next().map(read).transpose()
}

fn insert(
    on: &mut dyn Statements,
    package: &Package,
    declaration: &str,
    now: u64,
) -> Result<ProviderRecord, Failure> {
    // What is part of the host comes first, whenever it is written.
    let next = on.query("SELECT coalesce(max(position), 0) + 1 FROM providers", &[])?;
    let position = match (package.embedded, next.into_iter().next()) {
        (true, _) | (_, None) => 0,
        (false, Some(mut row)) => row.number()?,
    };
    let record = ProviderRecord {
        id: package.id.clone(),
        key: package.manifest.plugin_key.clone(),
        digest: package.digest.clone(),
        version: package.manifest.version.clone(),
        declaration: declaration.to_owned(),
        grants: package.grants.clone(),
        status: ProviderStatus::Ready,
        position,
        source: package.source.clone(),
        installed_ms: now,
        updated_ms: now,
    };
    let sql =
        format!("INSERT INTO providers ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)");
    let values = values![
        &record.id,
        &record.key,
        &record.digest,
        &record.version,
        &record.declaration,
        &record.grants,
        record.status.word(),
        record.position,
        &record.source,
        now,
        now,
    ];
    on.execute(&sql, &values)?;
    insert_drivers(on, package)?;
    Ok(record)
}

fn update(
    on: &mut dyn Statements,
    found: &ProviderRecord,
    package: &Package,
    declaration: &str,
    now: u64,
) -> Result<ProviderRecord, Failure> {
    const SQL: &str = "UPDATE providers SET digest = ?2, version = ?3, declaration = ?4, grants = ?5, \
        source = ?6, updated_ms = ?7 WHERE id = ?1";
    let version = &package.manifest.version;
    let values =
        values![&found.id, &package.digest, version, declaration, &package.grants, &package.source, now];
    on.execute(SQL, &values)?;
    on.execute("DELETE FROM drivers WHERE provider = ?1", &values![&found.id])?;
    insert_drivers(on, &Package { id: found.id.clone(), ..package.clone() })?;
    Ok(ProviderRecord {
        digest: package.digest.clone(),
        version: version.clone(),
        declaration: declaration.to_owned(),
        grants: package.grants.clone(),
        source: package.source.clone(),
        updated_ms: now,
        ..found.clone()
    })
}

fn insert_drivers(on: &mut dyn Statements, package: &Package) -> Result<(), SqlError> {
    const SQL: &str = "INSERT INTO drivers (provider, position, key, kind, schema, revision) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    for (position, driver) in package.manifest.environment_drivers.iter().enumerate() {
        let schema = serde_json::to_string(&driver.config_schema).unwrap_or_else(|_| "null".into());
        let kind = driver.kind.name();
        let values =
            values![&package.id, position as u64, &driver.driver_key, kind, &schema, revision(&schema)];
        on.execute(SQL, &values)?;
    }
    Ok(())
}

fn delete(on: &mut dyn Statements, id: &str) -> Result<(), SqlError> {
    on.execute("DELETE FROM drivers WHERE provider = ?1", &values![id])?;
    on.execute("DELETE FROM providers WHERE id = ?1", &values![id])?;
    Ok(())
}

/// Leases of a provider, or of one of its components, that have not ended.
fn live(on: &mut dyn Statements, id: &str, digest: Option<&str>) -> Result<u64, SqlError> {
    let unfinished = unfinished();
    let sql = match digest {
        Some(_) => format!(
            "SELECT count(*) FROM leases WHERE plugin = ?1 AND digest = ?2 AND state IN ({unfinished})"
        ),
        None => format!("SELECT count(*) FROM leases WHERE plugin = ?1 AND state IN ({unfinished})"),
    };
    let counted = match digest {
        Some(digest) => on.query(&sql, &values![id, digest])?,
        None => on.query(&sql, &values![id])?,
    };
    counted.into_iter().next().map_or(Ok(0), |mut row| row.number())
}

/// The states that something follows, as a list in SQL.
fn unfinished() -> String {
    let states = State::ALL.into_iter().filter(|state| !state.is_final());
    states.map(|state| format!("'{}'", state.word())).collect::<Vec<_>>().join(", ")
}
