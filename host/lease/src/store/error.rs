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
    /// The address of a server cannot be read. It may hold a password, so it is not shown.
    #[error("the address of the lease store cannot be read; expected postgres://USER@HOST:PORT/DATABASE")]
    Address,
    /// It is a database of something else.
    #[error("{what} is not a lease store; name another")]
    Foreign {
        /// The file or the database.
        what: String,
    },
    /// A later version of this program has written it.
    #[error("the lease store {what} has version {found}, this program knows up to {known}; update it")]
    Newer {
        /// The file or the database.
        what: String,
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
    /// The disk has no room. Nothing was written.
    #[error("the disk of the lease store is full, while {doing}; make room and try again")]
    Full {
        /// What was being done.
        doing: &'static str,
    },
    /// Something of that name is there already.
    #[error("the lease store already holds another of that name, while {doing}")]
    Conflict {
        /// What was being done.
        doing: &'static str,
    },
    /// The connection ended and could not be made again in time.
    #[error("the server of the lease store cannot be reached while {doing}: {source}; check that it runs")]
    Lost {
        /// What was being done.
        doing: &'static str,
        /// What the connection said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The database failed otherwise.
    #[error("the lease store failed while {doing}: {source}; check the disk, the file or the server")]
    Database {
        /// What was being done.
        doing: &'static str,
        /// Its answer.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A row does not hold what belongs there.
    #[error("the lease store holds what makes no sense: {what}; it was changed by hand")]
    Unreadable {
        /// What was found.
        what: String,
    },
    /// No thread can be started.
    #[error("no thread for the lease store: {source}")]
    Thread {
        /// The system's answer.
        source: std::io::Error,
    },
    /// What could not be written down cannot be put aside either.
    #[error("{path} cannot be used to keep what the store did not take: {source}", path = path.display())]
    Spool {
        /// The file or folder.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
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
