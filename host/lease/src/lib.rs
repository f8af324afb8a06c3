//! Leases that cannot leak.
//!
//! A lease is written down before the provider is asked for anything, every change of it is a
//! compare-and-set along one table of allowed transitions, and what a crashed, cancelled or late call
//! left behind is found again by the name it was created under and torn down.
//!
//! Limits: the store is one SQLite file on a local disk; a lease is not renewed and not resumed; an
//! allocation that cannot be found under its creation name counts as never made.
//!
//! This crate knows no WebAssembly. Whoever embeds it implements [`Provider`] over whatever runs the
//! provider's code, and [`Providers`] to find one again for a stored lease.

mod failure;
mod fault;
mod leases;
mod name;
mod owner;
mod provider;
mod receipt;
mod state;
mod store;
#[cfg(test)]
mod tests;
mod types;

pub use failure::{
    AcquireFailure, AcquisitionDiagnostic, AcquisitionPhase, DestroyFailure, Fault, FieldError,
    TransientCategory,
};
pub use leases::{Budgets, LeaseError, Leases, Left, Released, Report, Wanted};
pub use name::LeaseId;
pub use owner::{Owner, Standing};
pub use provider::{Answer, Provider, Providers, Unready};
pub use state::{State, Transition};
pub use store::{Event, Filter, Lease, Options, Store, StoreError};
pub use types::{
    AcquireRequest, CleanupRecord, Context, DestroyTarget, Disposition, Finding, ProviderLease, Receipt,
    ReleaseRequest, Retention, Wishes,
};
