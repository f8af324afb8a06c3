//! The durable side: leases, what happened to them, and what else a host must still know tomorrow.
//!
//! Every change of a lease is a compare-and-set on its state, and on its owner where only the owner may
//! make it, in one transaction with the event that records it. The work is done on threads that own the
//! connections, never on the caller's; a future that is dropped does not undo what it had begun to write.

mod attempt;
mod audit;
mod change;
mod creation;
mod environment;
mod error;
mod event;
mod host;
mod intent;
mod lease;
mod mark;
mod outline;
#[cfg(feature = "postgres")]
mod postgres;
mod provider;
mod query;
mod restore;
mod schema;
pub(crate) mod sql;
mod sqlite;
mod state;
mod stop;
mod work;

pub use audit::{Audit, AuditFilter};
pub(crate) use change::{Attempts, Change, Learned, Whose};
pub use creation::Creation;
pub use environment::EnvironmentRecord;
pub use error::StoreError;
pub use event::Event;
pub(crate) use host::STALE;
pub(crate) use intent::Intent;
pub(crate) use intent::millis;
pub use lease::{Lease, Pins, Scope};
pub use outline::Outline;
pub use query::Filter;
#[cfg(test)]
pub(crate) use query::MAX_ATTEMPTS;
pub(crate) use query::{Cursor, Unowned};
pub use state::{StateKey, StateValue};
pub use stop::StopIntent;
pub(crate) use work::{Durability, Failure};

use crate::fault::Step;
use crate::{Clock, SystemClock};
use sql::Statements;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use work::{Connection, Queue};

/// How long a statement waits for another process that writes. A write takes milliseconds; a process
/// that holds the file longer hangs, and then the caller is told instead of hanging too.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a server that does not answer is asked again: longer than a restart of it takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// How a store is opened.
#[derive(Clone, Debug)]
pub struct Options {
    /// How long a statement waits for another process that writes.
    pub busy_timeout: Duration,
    /// How long a server that does not answer is asked again.
    pub patience: Duration,
    /// Where times come from.
    pub clock: Arc<dyn Clock>,
}

impl Default for Options {
    fn default() -> Options {
        Options { busy_timeout: BUSY_TIMEOUT, patience: PATIENCE, clock: Arc::new(SystemClock) }
    }
}

/// The store. Clones share its connections.
#[derive(Clone, Debug)]
pub struct Store {
    writes: Queue,
    reads: Queue,
    clock: Arc<dyn Clock>,
    shared: bool,
}

impl Store {
    /// Opens the store in this file, or makes it, readable by its owner alone.
    ///
    /// # Errors
    /// [`StoreError`] when the file cannot be opened, is not a lease store or is a later version's.
    pub async fn open(path: impl AsRef<Path>, options: Options) -> Result<Store, StoreError> {
        let (path, asked) = (path.as_ref().to_owned(), options.clone());
        let (writing, reading) = blocking(move || sqlite::open(&path, &asked)).await?;
        let queue = |connection: sqlite::Sqlite| queue(vec![Box::new(connection)], &options);
        Ok(Store {
            writes: queue(writing)?,
            reads: queue(reading)?,
            clock: options.clock.clone(),
            shared: false,
        })
    }

    /// Opens the store in a PostgreSQL server that several hosts may share, at an address such as
    /// `postgres://user@host/database`. The connection is not encrypted; an address that demands it is
    /// refused.
    ///
    /// # Errors
    /// [`StoreError`] when the server cannot be reached, or its database is something else's or a later
    /// version's.
    #[cfg(feature = "postgres")]
    pub async fn connect(address: &str, options: Options) -> Result<Store, StoreError> {
        let mut first = postgres::Postgres::at(address, options.busy_timeout)?;
        let mut connections: Vec<Box<dyn Connection>> = Vec::new();
        for _ in 1..postgres::CONNECTIONS {
            connections.push(Box::new(first.another()));
        }
        let first = blocking(move || first.migrate().map(|()| first)).await?;
        connections.push(Box::new(first));
        let queue = queue(connections, &options)?;
        Ok(Store { writes: queue.clone(), reads: queue, clock: options.clock, shared: true })
    }

    /// Whether hosts on other machines may use it as well.
    pub(crate) fn is_shared(&self) -> bool {
        self.shared
    }

    /// Where its times come from.
    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// Milliseconds since the Unix epoch, by the store's clock.
    pub(crate) fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    /// Reads something, all of it as of one moment.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl FnMut(&mut dyn Statements) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.reads.hand_in(doing, None, None, work).await
    }

    /// Writes something in one transaction. The work may be called again where others were in its way.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        doing: &'static str,
        durability: Durability,
        work: impl FnMut(&mut dyn Statements) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.writes.hand_in(doing, Some(durability), None, work).await
    }

    /// Writes something, with the fault points of the step around it.
    pub(crate) async fn step<T: Send + 'static>(
        &self,
        step: Step,
        durability: Durability,
        work: impl FnMut(&mut dyn Statements) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.writes.hand_in("writing a lease", Some(durability), Some(step), work).await
    }
}

fn queue(connections: Vec<Box<dyn Connection>>, options: &Options) -> Result<Queue, StoreError> {
    Queue::new(connections, options.patience).map_err(|source| StoreError::Thread { source })
}

/// Opening waits for the disk or a network; it gets a thread of its own.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let doing = "opening it";
    tokio::task::spawn_blocking(work).await.unwrap_or(Err(StoreError::Ended { doing }))
}
