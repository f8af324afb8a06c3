//! The database of several hosts: a PostgreSQL server.

use super::StoreError;
use super::schema::{self, MIGRATIONS};
use super::sql::{Row, SqlError, Statements, Value};
use super::work::Connection;
use bytes::BytesMut;
use postgres::error::SqlState;
use postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use postgres::{Client, Config, NoTls, Statement};
use std::collections::HashMap;
use std::time::Duration;

/// Connections of one host. Transactions are short, and the server lets many hosts in.
pub(super) const CONNECTIONS: usize = 4;

/// How long a connection may take to be made: a server on the same network needs milliseconds.
const CONNECT: Duration = Duration::from_secs(5);

/// How long a host waits for another that brings the tables up to date: longer than that takes with a
/// million leases. Hit: opening fails, and says that the store was locked.
const MIGRATION: &str = "60s";

/// Made up once; whoever brings the same schema up to date waits for whoever began.
const MIGRATING: i64 = 0x4c48_4c53;

/// One connection to the server, made when it is first needed and again when it is lost.
pub(super) struct Postgres {
    config: Config,
    /// How long a statement waits for a row that another transaction holds.
    busy_timeout: Duration,
    client: Option<Client>,
    statements: HashMap<String, Statement>,
    open: bool,
}

impl Postgres {
    /// Reads where the server is. Nothing is connected yet.
    pub(super) fn at(url: &str, busy_timeout: Duration) -> Result<Postgres, StoreError> {
        // The address may hold a password, so it is never shown.
        let mut config: Config = url.parse().map_err(|_| StoreError::Address)?;
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT);
        }
        if config.get_application_name().is_none() {
            config.application_name("leasehold");
        }
        Ok(Postgres { config, busy_timeout, client: None, statements: HashMap::new(), open: false })
    }

    /// Another connection to the same server.
    pub(super) fn another(&self) -> Postgres {
        let Postgres { config, busy_timeout, .. } = self;
        let (config, busy_timeout) = (config.clone(), *busy_timeout);
        Postgres { config, busy_timeout, client: None, statements: HashMap::new(), open: false }
    }

    /// Brings the tables up to date.
    pub(super) fn migrate(&mut self) -> Result<(), StoreError> {
        let failed = |error: SqlError| error.doing("bringing it up to date");
        self.mend().map_err(failed)?;
        self.begin(true).map_err(failed)?;
        let migrated = self.add_missing();
        match migrated {
            Ok(()) => self.commit().map_err(failed),
            Err(error) => {
                self.rollback();
                Err(error)
            }
        }
    }

    fn add_missing(&mut self) -> Result<(), StoreError> {
        let failed = |error: SqlError| error.doing("bringing it up to date");
        // Looked at first without the lock, so that opening does not wait for anybody.
        if self.missing()?.is_some_and(<[_]>::is_empty) {
            return Ok(());
        }
        self.batch(&format!("SET LOCAL lock_timeout = '{MIGRATION}'")).map_err(failed)?;
        let lock = "SELECT pg_advisory_xact_lock(CAST(?1 AS INT), hashtext(current_schema()))";
        self.execute(lock, &[MIGRATING.into()]).map_err(failed)?;
        let steps = match self.missing()? {
            Some(steps) => steps,
            None => {
                let make = "CREATE TABLE leasehold_schema (version BIGINT NOT NULL); \
                    INSERT INTO leasehold_schema VALUES (0)";
                self.batch(make).map_err(failed)?;
                MIGRATIONS
            }
        };
        for step in steps {
            self.batch(&schema::for_postgres(step)).map_err(failed)?;
        }
        let known = MIGRATIONS.len() as u64;
        self.execute("UPDATE leasehold_schema SET version = ?1", &[known.into()]).map_err(failed)?;
        Ok(())
    }

    /// The steps the database lacks; none when it holds nothing yet.
    fn missing(&mut self) -> Result<Option<&'static [&'static str]>, StoreError> {
        let failed = |error: SqlError| error.doing("reading its version");
        // One statement, so that another host that makes the tables is seen before or after, not halfway.
        let tables = "SELECT count(*), coalesce(sum(CASE WHEN table_name = 'leasehold_schema' THEN 1 END), 0) \
            FROM information_schema.tables WHERE table_schema = current_schema()";
        let found = self.query(tables, &[]).map_err(failed)?.pop();
        let (all, ours) = found.map_or(Ok((0, 0)), |mut row| Ok((row.int()?, row.int()?))).map_err(failed)?;
        if ours == 0 {
            return match all {
                0 => Ok(None),
                _ => Err(StoreError::Foreign { what: "the database (or its schema)".into() }),
            };
        }
        let rows = self.query("SELECT version FROM leasehold_schema", &[]).map_err(failed)?;
        let version = rows.into_iter().next().map_or(Ok(0), |mut row| row.number()).map_err(failed)?;
        let found = usize::try_from(version).unwrap_or(usize::MAX);
        let newer = || StoreError::Newer { what: "the database".into(), found, known: MIGRATIONS.len() };
        MIGRATIONS.get(found..).map(Some).ok_or_else(newer)
    }

    fn client(&mut self) -> Result<&mut Client, SqlError> {
        self.client.as_mut().ok_or_else(|| SqlError::Lost("the connection to the server has ended".into()))
    }

    fn batch(&mut self, sql: &str) -> Result<(), SqlError> {
        let done = self.client()?.batch_execute(sql);
        done.map_err(|error| self.failed(error))
    }

    /// What an error means; a connection that has ended is let go.
    fn failed(&mut self, error: postgres::Error) -> SqlError {
        let found = classified(error);
        if matches!(found, SqlError::Lost(_)) {
            self.client = None;
            self.statements.clear();
            self.open = false;
        }
        found
    }

    fn statement(&mut self, sql: &str) -> Result<Statement, SqlError> {
        if let Some(known) = self.statements.get(sql) {
            return Ok(known.clone());
        }
        let prepared = self.client()?.prepare(&sql.replace('?', "$"));
        let statement = prepared.map_err(|error| self.failed(error))?;
        self.statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }
}

impl Connection for Postgres {
    /// Always on the disk: this process outlives a server that crashes, and would go on with what the server
    /// no longer knows.
    fn begin(&mut self, _: bool) -> Result<(), SqlError> {
        self.batch("BEGIN")?;
        self.open = true;
        Ok(())
    }

    fn begin_reading(&mut self) -> Result<(), SqlError> {
        self.batch("BEGIN READ ONLY")?;
        self.open = true;
        Ok(())
    }

    fn commit(&mut self) -> Result<(), SqlError> {
        self.open = false;
        self.batch("COMMIT")
    }

    fn rollback(&mut self) {
        if std::mem::take(&mut self.open) {
            self.batch("ROLLBACK").ok();
        }
    }

    fn mend(&mut self) -> Result<(), SqlError> {
        if self.client.as_ref().is_some_and(|client| !client.is_closed()) {
            return Ok(());
        }
        self.statements.clear();
        self.open = false;
        self.client = Some(self.config.connect(NoTls).map_err(|error| match error.code() {
            // Before the server is fully up, or when it has no place, a later try may succeed.
            None => SqlError::Lost(error.into()),
            Some(_) => classified(error),
        })?);
        let wait = self.busy_timeout.as_millis().max(1);
        self.batch(&format!("SET lock_timeout = {wait}"))
    }
}

impl Statements for Postgres {
    fn execute(&mut self, sql: &str, values: &[Value]) -> Result<u64, SqlError> {
        let statement = self.statement(sql)?;
        let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| value as _).collect();
        let done = self.client()?.execute(&statement, &values);
        done.map_err(|error| self.failed(error))
    }

    fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>, SqlError> {
        let statement = self.statement(sql)?;
        let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| value as _).collect();
        let rows = self.client()?.query(&statement, &values).map_err(|error| self.failed(error))?;
        rows.into_iter().map(|row| row_of(&row)).collect()
    }
}

fn row_of(row: &postgres::Row) -> Result<Row, SqlError> {
    let columns = row.columns().iter().enumerate();
    let values = columns.map(|(at, column)| {
        let unreadable = |error: postgres::Error| SqlError::Unreadable(error.to_string());
        Ok(match *column.type_() {
            Type::INT8 => row.try_get::<_, Option<i64>>(at).map_err(unreadable)?.into(),
            Type::INT4 => row.try_get::<_, Option<i32>>(at).map_err(unreadable)?.map(i64::from).into(),
            Type::BYTEA => row.try_get::<_, Option<Vec<u8>>>(at).map_err(unreadable)?.into(),
            _ => row.try_get::<_, Option<String>>(at).map_err(unreadable)?.into(),
        })
    });
    Ok(Row::new(values.collect::<Result<_, SqlError>>()?))
}

impl std::fmt::Debug for Postgres {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Postgres").finish_non_exhaustive()
    }
}

impl ToSql for Value {
    fn to_sql(
        &self,
        wanted: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Value::Null => Ok(IsNull::Yes),
            Value::Int(number) if *wanted == Type::INT4 => i32::try_from(*number)?.to_sql(wanted, out),
            Value::Int(number) => number.to_sql(wanted, out),
            Value::Text(text) => text.to_sql(wanted, out),
            Value::Bytes(bytes) => bytes.to_sql(wanted, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

fn classified(error: postgres::Error) -> SqlError {
    let Some(code) = error.code().cloned() else {
        // No answer of the server's: the connection is gone, or is about to be.
        return match error.is_closed()
            || std::error::Error::source(&error).is_some_and(|it| it.is::<std::io::Error>())
        {
            true => SqlError::Lost(error.into()),
            false => SqlError::Other(error.into()),
        };
    };
    match code {
        SqlState::UNIQUE_VIOLATION => SqlError::Conflict,
        SqlState::DISK_FULL => SqlError::Full,
        SqlState::LOCK_NOT_AVAILABLE => SqlError::Locked,
        SqlState::T_R_SERIALIZATION_FAILURE | SqlState::T_R_DEADLOCK_DETECTED => SqlError::Again,
        SqlState::ADMIN_SHUTDOWN
        | SqlState::CRASH_SHUTDOWN
        | SqlState::CANNOT_CONNECT_NOW
        | SqlState::TOO_MANY_CONNECTIONS
        | SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT => SqlError::Lost(error.into()),
        code if code.code().starts_with("08") => SqlError::Lost(error.into()),
        _ => SqlError::Other(error.into()),
    }
}
