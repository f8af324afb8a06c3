//! Loads provider components, reads what they really export, and runs their hooks inside limits that hold.
//!
//! ```text
//! bytes ──load──► Compiled ──link(granted)──► Provider ──call(hook)──► Finished { answer, bill }
//!                    │ inspection()
//!                    └► verified methods, wanted authority
//! ```
//!
//! Each call gets an instance of its own with fuel, wall clock, memory, tables, handles and bytes bounded
//! (see [`limits`]); the instance is dropped afterwards, whatever happened. This crate knows nothing of
//! leases, stores or files.

pub mod cache;
pub mod call;
mod config;
mod engine;
pub mod hook;
mod host;
pub mod inspect;
pub mod limits;
mod load;
mod provider;
mod ticker;

pub use cache::{Cache, CacheError};
pub use call::{Authority, Bill, CallError, CallOptions, Filter, Finished, Meter, Scope};
pub use config::Allocation;
pub use engine::{Engine, EngineError, EngineOptions};
pub use hook::Hook;
pub use host::{Facilities, Facility};
pub use inspect::Inspection;
pub use leasehold_bindings as bindings;
pub use limits::{Limit, LimitError, Limits};
pub use load::LoadError;
pub use provider::{Compiled, Digest, LinkError, Provider, Refusal};
