//! Why the store did not do what it was asked.

use crate::{LeaseId, State};
use std::path::PathBuf;

/// What went wrong with the store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The file cannot be made or opened.
    #[error("the lease store {path} cannot be opened: {source}; check that its folder exists and is yours", path = path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// The file is a database of something else.
    #[error("{path} is not a lease store; name another file", path = path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// A later version of this program has written the file.
    #[error("the lease store {path} has version {found}, this program knows up to {known}; update it", path = path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// The version it has.
        found: usize,
        /// The latest version known here.
        known: usize,
    },
    /// Another process held the database for longer than the busy timeout.
    #[error("the lease store was locked by another process while {doing}; try again, or end that process")]
    Locked {
        /// What was being done.
        doing: &'static str,
    },
    /// SQLite failed otherwise.
    #[error("the lease store failed while {doing}: {source}; check the disk and the file")]
    Sqlite {
        /// What was being done.
        doing: &'static str,
        /// SQLite's answer.
        source: rusqlite::Error,
    },
    /// There is no lease of that name.
    #[error("there is no lease `{id}` in this store; list the leases to see which there are")]
    Missing {
        /// The name asked for.
        id: LeaseId,
    },
    /// The table does not allow this transition.
    #[error("lease `{id}` is {from} and cannot become {to}")]
    Illegal {
        /// The lease.
        id: LeaseId,
        /// The state it is in.
        from: State,
        /// The state wanted.
        to: State,
    },
    /// Somebody else changed the lease in between.
    #[error("lease `{id}` was expected to be {expected} and is {found}, changed by another; look again")]
    Changed {
        /// The lease.
        id: LeaseId,
        /// The state it was expected to be in; with the same state found, its owner differs.
        expected: State,
        /// The state it is in.
        found: State,
    },
    /// The provider names an allocation that another lease holds. It must not be ended for this one.
    #[error("allocation `{allocation}` belongs to lease `{holder}`; the provider gave it to `{id}` as well")]
    HeldElsewhere {
        /// The lease it was given to.
        id: LeaseId,
        /// The back end's id.
        allocation: String,
        /// The lease that holds it.
        holder: LeaseId,
    },
    /// This process cannot say who it is.
    #[error("this process cannot be told apart from others: {source}; `/proc` must be mounted")]
    Owner {
        /// The system's answer.
        source: std::io::Error,
    },
    /// The system gives no random bytes.
    #[error("no random bytes for the name of a lease: {source}")]
    Random {
        /// The system's answer.
        source: getrandom::Error,
    },
    /// The runtime ended before the work was done. What was written stays.
    #[error("the tokio runtime ended while {doing}; reconcile to finish it")]
    Ended {
        /// What was being done.
        doing: &'static str,
    },
}

impl StoreError {
    /// Turns SQLite's answer into one that says what to do.
    pub(crate) fn sqlite(doing: &'static str) -> impl Fn(rusqlite::Error) -> StoreError {
        move |source| match source.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked) => {
                StoreError::Locked { doing }
            }
            _ => StoreError::Sqlite { doing, source },
        }
    }
}
