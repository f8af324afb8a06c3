//! Opening the file: its mode, whose it is, which version it has.

use super::{PREPARED, Sqlite, error};
use crate::store::schema::{self, MIGRATIONS};
use crate::store::{Options, StoreError};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// `LHLS` in the file's header. A database of another program is refused instead of written to.
const APPLICATION: i64 = 0x4c48_4c53;

/// Pages of the log after which it is written back: 1 MiB, which is read in half a millisecond and filled by a
/// few dozen leases.
const LOG_PAGES: u32 = 256;

/// How long to wait before the switch to WAL is tried again: about as long as another process needs for its
/// own. It happens once in the life of a file.
const SWITCH_AGAIN: Duration = Duration::from_millis(2);

/// Pages a connection keeps, in KiB: what ten thousand leases in use and their indexes need, so that a write
/// does not read them again. More leases are slower and nothing else.
const CACHE_KIB: i64 = 8 << 10;

/// The writing connection and the reading one, over a file that is made when it is not there and brought up
/// to date.
pub(in crate::store) fn open(path: &Path, options: &Options) -> Result<(Sqlite, Sqlite), StoreError> {
    make(path).map_err(|source| StoreError::Open { path: path.to_owned(), source })?;
    let mut connection = Connection::open(path).map_err(opening)?;
    prepare(&mut connection, path, options)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let reading = Connection::open_with_flags(path, flags).map_err(opening)?;
    reading.busy_timeout(options.busy_timeout).map_err(opening)?;
    Ok((ready(connection)?, ready(reading)?))
}

fn ready(connection: Connection) -> Result<Sqlite, StoreError> {
    connection.set_prepared_statement_cache_capacity(PREPARED);
    connection.pragma_update(None, "cache_size", -CACHE_KIB).map_err(opening)?;
    Ok(Sqlite { connection, waits: true })
}

fn opening(source: rusqlite::Error) -> StoreError {
    error(source).doing("opening it")
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

fn prepare(connection: &mut Connection, path: &Path, options: &Options) -> Result<(), StoreError> {
    connection.busy_timeout(options.busy_timeout).map_err(opening)?;
    migrate(connection, path)?;
    connection.pragma_update(None, "foreign_keys", true).map_err(opening)?;
    connection.pragma_update(None, "synchronous", "FULL").map_err(opening)?;
    switch_to_wal(connection, options)?;
    // The log is left for whoever comes next instead of being written back, which would wait for the disk
    // twice at the end of every command. It is kept short, as whoever opens the file first reads it all.
    connection.pragma_update(None, "wal_autocheckpoint", LOG_PAGES).map_err(opening)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(opening)?;
    Ok(())
}

/// Lets readers and a writer work side by side. Where several processes make the file at once SQLite
/// refuses the switch without waiting, so the waiting is done here.
fn switch_to_wal(connection: &Connection, options: &Options) -> Result<(), StoreError> {
    let until = Instant::now() + options.busy_timeout;
    let mode = |row: &rusqlite::Row<'_>| row.get::<_, String>(0);
    loop {
        let switched = connection.pragma_update_and_check(None, "journal_mode", "WAL", mode);
        match switched.map_err(opening) {
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
    let failed = |source| error(source).doing("bringing it up to date");
    let change = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    for step in missing(&change, path)? {
        change.execute_batch(&schema::for_sqlite(step)).map_err(failed)?;
    }
    change.pragma_update(None, "application_id", APPLICATION).map_err(failed)?;
    let version = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    change.pragma_update(None, "user_version", version).map_err(failed)?;
    change.commit().map_err(failed)
}

/// The steps the file lacks.
fn missing(connection: &Connection, path: &Path) -> Result<&'static [&'static str], StoreError> {
    let failed = |source: rusqlite::Error| match source.sqlite_error_code() {
        Some(rusqlite::ErrorCode::NotADatabase) => StoreError::Foreign { what: path.display().to_string() },
        _ => error(source).doing("reading its version"),
    };
    // One statement, so that another process that makes the file is seen before or after, not halfway.
    let sql = "SELECT (SELECT user_version FROM pragma_user_version), \
        (SELECT application_id FROM pragma_application_id), (SELECT count(*) FROM sqlite_schema)";
    let numbers = connection.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
    let (version, application, tables): (i64, i64, i64) = numbers.map_err(failed)?;
    if application != APPLICATION && (version != 0 || tables > 0) {
        return Err(StoreError::Foreign { what: path.display().to_string() });
    }
    let found = usize::try_from(version).unwrap_or(usize::MAX);
    let newer = StoreError::Newer { what: path.display().to_string(), found, known: MIGRATIONS.len() };
    MIGRATIONS.get(found..).ok_or(newer)
}
