//! Opening the file, and the versions of what is in it.

use super::{Options, StoreError};
use rusqlite::{Connection, TransactionBehavior};
use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// `LHLS` in the file's header. A database of another program is refused instead of written to.
const APPLICATION: i64 = 0x4c48_4c53;

/// How long to wait before the switch to WAL is tried again: about as long as another process needs for its
/// own. It happens once in the life of a file.
const SWITCH_AGAIN: Duration = Duration::from_millis(2);

/// One step of the schema a version. Steps are only ever added: a file of any older version is brought up
/// to date by the steps it lacks.
const MIGRATIONS: &[&str] = &["
    CREATE TABLE leases (
        id TEXT PRIMARY KEY NOT NULL,
        environment TEXT NOT NULL,
        provider TEXT NOT NULL,
        driver TEXT NOT NULL,
        digest TEXT NOT NULL,
        tenant TEXT NOT NULL,
        run TEXT,
        retention TEXT NOT NULL,
        state TEXT NOT NULL,
        provider_lease_id TEXT,
        metadata TEXT,
        expires_at_ms INTEGER,
        config TEXT NOT NULL,
        cleanup TEXT,
        disposition TEXT,
        owner TEXT,
        attempts INTEGER NOT NULL DEFAULT 0,
        last_error TEXT,
        acquired_ms INTEGER,
        created_ms INTEGER NOT NULL,
        updated_ms INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX leases_by_age ON leases (created_ms, id);
    CREATE INDEX leases_unfinished ON leases (created_ms, id)
        WHERE state IN ('acquiring', 'active', 'releasing', 'pending_cleanup');
    CREATE INDEX leases_by_owner ON leases (owner) WHERE owner IS NOT NULL;
    CREATE INDEX leases_by_allocation ON leases (provider, environment, provider_lease_id)
        WHERE provider_lease_id IS NOT NULL;
    CREATE TABLE events (
        lease TEXT NOT NULL REFERENCES leases (id),
        at_ms INTEGER NOT NULL,
        from_state TEXT,
        to_state TEXT NOT NULL,
        reason TEXT NOT NULL
    ) STRICT;
    CREATE INDEX events_by_lease ON events (lease);
"];

/// Opens the file, makes it when it is not there, and brings it up to date.
pub(super) fn open(path: &Path, options: &Options) -> Result<Connection, StoreError> {
    make(path).map_err(|source| StoreError::Open { path: path.to_owned(), source })?;
    let mut connection = Connection::open(path).map_err(StoreError::sqlite("opening it"))?;
    prepare(&mut connection, path, options)?;
    Ok(connection)
}

/// Makes the file, empty and readable by its owner alone, if it is not there. SQLite gives the files beside
/// it the same mode.
///
/// It is made under another name and linked to its own: closing a file takes away every lock this process
/// has on it, those of SQLite included, so nothing here may ever open the file itself.
fn make(path: &Path) -> io::Result<()> {
    if path.try_exists()? {
        return Ok(());
    }
    let mut random = [0u8; 8];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    let mut name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?.to_owned();
    name.push(format!(".{:016x}", u64::from_ne_bytes(random)));
    let other = path.with_file_name(name);
    let mut file = OpenOptions::new();
    file.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut file, 0o600);
    drop(file.open(&other)?);
    let linked = fs::hard_link(&other, path);
    fs::remove_file(&other)?;
    match linked {
        // Another process was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        linked => linked,
    }
}

/// A store that lives as long as it is open, for tests.
#[cfg(test)]
pub(super) fn in_memory() -> Result<Connection, StoreError> {
    let mut connection = Connection::open_in_memory().map_err(StoreError::sqlite("opening it"))?;
    prepare(&mut connection, Path::new(":memory:"), &Options::default())?;
    Ok(connection)
}

fn prepare(connection: &mut Connection, path: &Path, options: &Options) -> Result<(), StoreError> {
    let failed = StoreError::sqlite("opening it");
    connection.busy_timeout(options.busy_timeout).map_err(&failed)?;
    migrate(connection, path)?;
    connection.pragma_update(None, "foreign_keys", true).map_err(&failed)?;
    // A lease that was written and then lost with the power would be an allocation nobody knows of, so
    // every write waits for the disk.
    connection.pragma_update(None, "synchronous", "FULL").map_err(&failed)?;
    switch_to_wal(connection, options)
}

/// Lets readers and a writer work side by side. Where several processes make the file at once SQLite
/// refuses the switch without waiting, so the waiting is done here.
fn switch_to_wal(connection: &Connection, options: &Options) -> Result<(), StoreError> {
    let until = Instant::now() + options.busy_timeout;
    let mode = |row: &rusqlite::Row<'_>| row.get::<_, String>(0);
    loop {
        let switched = connection.pragma_update_and_check(None, "journal_mode", "WAL", mode);
        match switched.map_err(StoreError::sqlite("opening it")) {
            Ok(_) => return Ok(()),
            Err(StoreError::Locked { .. }) if Instant::now() < until => std::thread::sleep(SWITCH_AGAIN),
            Err(error) => return Err(error),
        }
    }
}

fn migrate(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    // Looked at first without the lock that writing takes, so that opening does not wait for a writer.
    if missing(connection, path)?.is_empty() {
        return Ok(());
    }
    let failed = StoreError::sqlite("bringing it up to date");
    let change = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(&failed)?;
    for step in missing(&change, path)? {
        change.execute_batch(step).map_err(&failed)?;
    }
    change.pragma_update(None, "application_id", APPLICATION).map_err(&failed)?;
    let version = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    change.pragma_update(None, "user_version", version).map_err(&failed)?;
    change.commit().map_err(&failed)
}

/// The steps the file lacks.
fn missing(connection: &Connection, path: &Path) -> Result<&'static [&'static str], StoreError> {
    let failed = |source: rusqlite::Error| match source.sqlite_error_code() {
        Some(rusqlite::ErrorCode::NotADatabase) => StoreError::Foreign { path: path.to_owned() },
        _ => StoreError::sqlite("reading its version")(source),
    };
    // One statement, so that another process that makes the file is seen before or after, not halfway.
    let sql = "SELECT (SELECT user_version FROM pragma_user_version), \
        (SELECT application_id FROM pragma_application_id), (SELECT count(*) FROM sqlite_schema)";
    let numbers = connection.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
    let (version, application, tables): (i64, i64, i64) = numbers.map_err(failed)?;
    if application != APPLICATION && (version != 0 || tables > 0) {
        return Err(StoreError::Foreign { path: path.to_owned() });
    }
    let found = usize::try_from(version).unwrap_or(usize::MAX);
    let newer = StoreError::Newer { path: path.to_owned(), found, known: MIGRATIONS.len() };
    MIGRATIONS.get(found..).ok_or(newer)
}
