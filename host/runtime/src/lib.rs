//! Sandboxes for host applications, from verified WebAssembly providers.
//!
//! ```no_run
//! # async fn run() -> Result<(), leasehold::Error> {
//! use leasehold::{Environment, For, Leasehold, WalkOptions};
//!
//! let runtime = Leasehold::builder("/var/lib/my-app/leasehold").build().await?;
//! let session = Environment::of("local").acquire(&runtime, For::default()).await?;
//! let synced = session.sync_in(".".as_ref(), WalkOptions::default()).await?;
//! // … session.execute(command, streams, cancel) …
//! session.sync_out(synced).await?;
//! session.release().await?;
//! # Ok(())
//! # }
//! ```
//!
//! Every future may be dropped at any await. A lease is written down before a provider is asked for it, so
//! a host that dies leaves nothing that [`Leasehold::reconcile`] does not find.

mod builder;
mod content;
mod environment;
mod error;
mod id;
mod installed;
mod ledger;
mod probe;
mod runtime;
mod session;
mod validate;

pub use builder::{Builder, StoreAt};
pub use environment::{Environment, For, Place, Terms};
pub use error::Error;
pub use installed::{EngineFault, Granted, LOCAL_PROVIDER, ProviderFiles};
pub use leasehold_authority::http::{HttpSettings, Proxy, ProxySettings};
pub use leasehold_authority::jail::{Bounds, Isolation, Layer};
pub use leasehold_authority::secret::resolve::{
    Consumer, NoSecrets, OwnMachine, Purpose, ResolveError, Resolver, Resolving,
};
pub use leasehold_contract as contract;
pub use leasehold_contract::authority::{Grant, Permission};
pub use leasehold_engine as engine;
pub use leasehold_engine::bindings::exports::execute::Exit;
pub use leasehold_engine::{Allocation, Bill, Limit, Limits};
pub use leasehold_lease::registry::{
    self, Change, ProviderRecord, ProviderStatus, Published, Refusal, RegistryError, Removed,
};
pub use leasehold_lease::{
    Audit, AuditFilter, Blocker, Clock, Disposition, Event, Filter, Lease, LeaseId, Outline, Policy,
    Released, Releasing, Report, Scope, State, SystemClock,
};
pub use leasehold_sync::{
    LeftOut, Mapping, MappingKind, MergeReport, Moved, Operation, PostUpload, Progress, Roots, Tree,
    WalkOptions,
};
pub use probe::{Diagnostic, Probed};
pub use runtime::Leasehold;
pub use session::{Command, Session, Streams, Synced, Transfer};
pub use validate::Accepted;
