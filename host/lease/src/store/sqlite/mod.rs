//! The embedded database: one file on a local disk.

mod open;

pub(super) use open::open;

use super::sql::{Row, SqlError, Statements, Value};
use super::work::Connection;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{ErrorCode, ToSql, params_from_iter};

/// Statements kept prepared: all there are, so that none is parsed twice.
pub(super) const PREPARED: usize = 128;

/// One connection to the file.
#[derive(Debug)]
pub(super) struct Sqlite {
    pub(super) connection: rusqlite::Connection,
    /// Whether a commit waits for the disk now.
    pub(super) waits: bool,
}

impl Connection for Sqlite {
    fn begin(&mut self, durable: bool) -> Result<(), SqlError> {
        if self.waits != durable {
            // What an earlier commit did not wait for is on the disk after the next that does.
            let mode = if durable { "FULL" } else { "NORMAL" };
            self.connection.pragma_update(None, "synchronous", mode).map_err(error)?;
            self.waits = durable;
        }
        // Taken at once: a lock that is only asked for at the first write could not be waited for.
        self.run("BEGIN IMMEDIATE")
    }

    fn begin_reading(&mut self) -> Result<(), SqlError> {
        self.run("BEGIN")
    }

    fn commit(&mut self) -> Result<(), SqlError> {
        self.run("COMMIT")
    }

    fn rollback(&mut self) {
        // Without a transaction there is nothing to undo.
        if !self.connection.is_autocommit() {
            self.run("ROLLBACK").ok();
        }
    }
}

impl Sqlite {
    fn run(&mut self, sql: &str) -> Result<(), SqlError> {
        self.connection.prepare_cached(sql).and_then(|mut it| it.execute([])).map(|_| ()).map_err(error)
    }
}

impl Statements for Sqlite {
    fn execute(&mut self, sql: &str, values: &[Value]) -> Result<u64, SqlError> {
        let mut statement = self.connection.prepare_cached(sql).map_err(error)?;
        let changed = statement.execute(params_from_iter(values)).map_err(error)?;
        Ok(changed as u64)
    }

    fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>, SqlError> {
        let mut statement = self.connection.prepare_cached(sql).map_err(error)?;
        let columns = statement.column_count();
        let mut rows = statement.query(params_from_iter(values)).map_err(error)?;
        let mut all = Vec::new();
        while let Some(row) = rows.next().map_err(error)? {
            let values = (0..columns).map(|at| row.get_ref(at).map_err(error).and_then(value));
            all.push(Row::new(values.collect::<Result<_, _>>()?));
        }
        Ok(all)
    }
}

fn value(value: ValueRef<'_>) -> Result<Value, SqlError> {
    Ok(match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Int(number),
        ValueRef::Text(text) => match std::str::from_utf8(text) {
            Ok(text) => Value::Text(text.to_owned()),
            Err(_) => return Err(SqlError::Unreadable("a text is not UTF-8".into())),
        },
        ValueRef::Blob(bytes) => Value::Bytes(bytes.to_vec()),
        ValueRef::Real(_) => return Err(SqlError::Unreadable("a fraction stands for a number".into())),
    })
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Value::Null => ValueRef::Null,
            Value::Int(number) => ValueRef::Integer(*number),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
            Value::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

pub(super) fn error(source: rusqlite::Error) -> SqlError {
    use rusqlite::ffi;
    match source.sqlite_error() {
        Some(found) => match (found.code, found.extended_code) {
            (ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked, _) => SqlError::Locked,
            (ErrorCode::DiskFull, _) => SqlError::Full,
            (_, ffi::SQLITE_CONSTRAINT_UNIQUE | ffi::SQLITE_CONSTRAINT_PRIMARYKEY) => SqlError::Conflict,
            _ => SqlError::Other(source.into()),
        },
        None => SqlError::Other(source.into()),
    }
}
