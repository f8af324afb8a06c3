//! The durable side: one SQLite file with the leases and what happened to them.
//!
//! Every change of a lease is a compare-and-set on its state, and on its owner where only the owner may
//! make it, in one transaction with the event that records it. Calls block a thread of the runtime's
//! blocking pool, never the caller's; a future that is dropped does not undo what it had begun to write.

mod change;
mod error;
mod lease;
mod query;
mod schema;

pub(crate) use change::{Change, Intent, Learned, Whose};
pub use error::StoreError;
pub use lease::Lease;
pub(crate) use query::{Cursor, Unowned};
pub use query::{Event, Filter};

use crate::fault::Step;
use rusqlite::Connection;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long a statement waits for another process that writes. A write takes milliseconds; a process
/// that holds the file longer hangs, and then the caller is told instead of hanging too.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// How a store is opened.
#[derive(Clone, Debug)]
pub struct Options {
    /// How long a statement waits for another process that writes.
    pub busy_timeout: Duration,
}

impl Default for Options {
    fn default() -> Options {
        Options { busy_timeout: BUSY_TIMEOUT }
    }
}

/// The store. Clones share one connection.
#[derive(Clone, Debug)]
pub struct Store {
    connection: Arc<Mutex<Connection>>,
}

impl Store {
    /// Opens the store in this file, or makes it, readable by its owner alone.
    ///
    /// # Errors
    /// [`StoreError`] when the file cannot be opened, is not a lease store or is a later version's.
    pub async fn open(path: impl AsRef<Path>, options: Options) -> Result<Store, StoreError> {
        let path = path.as_ref().to_owned();
        let opened = blocking("opening it", move || schema::open(&path, &options)).await?;
        Ok(Store { connection: Arc::new(Mutex::new(opened)) })
    }

    #[cfg(test)]
    pub(crate) fn in_memory() -> Result<Store, StoreError> {
        Ok(Store { connection: Arc::new(Mutex::new(schema::in_memory()?)) })
    }

    /// Does something with the connection.
    async fn with<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&mut Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let connection = self.connection.clone();
        // A panic in between rolled its transaction back, so the connection is sound.
        let locked = move || work(&mut connection.lock().unwrap_or_else(PoisonError::into_inner));
        blocking(doing, locked).await
    }

    /// Writes something, with the fault points of the step around it.
    async fn write<T: Send + 'static>(
        &self,
        step: Step,
        work: impl FnOnce(&mut Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.with("writing a lease", move |connection| {
            step.before();
            let written = work(connection);
            step.after();
            written
        })
        .await
    }
}

async fn blocking<T: Send + 'static>(
    doing: &'static str,
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    tokio::task::spawn_blocking(work).await.unwrap_or(Err(StoreError::Ended { doing }))
}

/// Milliseconds since the Unix epoch.
fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
