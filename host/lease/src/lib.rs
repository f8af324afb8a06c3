//! Leases that cannot leak.
//!
//! A lease is written down before the provider is asked for anything, every change of it is a
//! compare-and-set along one table of allowed transitions, and what a crashed, cancelled or late call
//! left behind is found again by the name it was created under and torn down.
//!
//! The store is one SQLite file, or a PostgreSQL server that several hosts share (feature `postgres`).
//!
//! This crate knows no WebAssembly. Whoever embeds it implements [`Provider`] over whatever runs the
//! provider's code, and [`Providers`] to find one again for a stored lease.

mod clock;
mod failure;
mod fault;
mod fingerprint;
mod leases;
mod limits;
mod name;
mod owner;
mod provider;
mod receipt;
pub mod registry;
mod spool;
mod state;
mod store;
#[cfg(test)]
mod tests;
mod types;

pub use clock::{Clock, HandClock, Pause, SystemClock};
pub use failure::{
    AcquireFailure, AcquisitionDiagnostic, AcquisitionPhase, DestroyFailure, Fault, FieldError, StopFailure,
    StopReason, TransientCategory,
};
pub use leases::{
    Acquired, Blocker, How, LeaseError, Leases, Left, OnLost, Released, Releasing, Replaced, Report,
    Settings, Times, Tries, Wanted,
};
pub use name::LeaseId;
pub use owner::{Owner, Standing};
pub use provider::{Answer, Offers, Provider, Providers, Reply, Resolving, Unready};
pub use state::{Goal, State, Transition};
pub use store::{
    Audit, AuditFilter, Creation, EnvironmentRecord, Event, Filter, Lease, Options, Outline, Pins, Scope,
    StateKey, StateValue, StopIntent, Store, StoreError,
};
pub use types::{
    AcquireRequest, CleanupRecord, Context, DestroyTarget, Disposition, Finding, Policy, ProviderLease,
    Receipt, ReleaseRequest, ResumeRequest, Retention, Wishes,
};
