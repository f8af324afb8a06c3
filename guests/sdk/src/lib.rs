//! For authors of providers.
//!
//! A provider is one type. It implements a trait for each method it has, and [`export!`] exports exactly those:
//! one that is implemented and not named there, or named and not implemented, does not compile. What it imports
//! follows from what it calls, so a component wants no more authority than it uses.
//!
//! Nothing here panics: what goes wrong is an [`Error`] whose kind says whether it may pass by itself.
//!
//! # A whole provider
//!
//! Machines that are made, listed and deleted over HTTP, and run one command at a time:
//!
//! ```
//! use leasehold_sdk::*;
//! use serde::Deserialize;
//!
//! struct Machines;
//!
//! #[derive(Default, Deserialize)]
//! #[serde(rename_all = "camelCase", deny_unknown_fields)]
//! struct Config {
//!     /// Where the service is, for example `https://api.example.com`.
//!     service: String,
//!     /// The host puts a placeholder here, and the value into the header that leaves.
//!     key: String,
//! }
//!
//! #[derive(Deserialize)]
//! struct Machine {
//!     id: String,
//! }
//!
//! impl Provider for Machines {
//!     type Config = Config;
//! }
//!
//! impl Machines {
//!     fn request(call: &Call<Config>, method: http::Method, path: &str) -> http::Request {
//!         let url = format!("{}{path}", call.config.service);
//!         http::Request::new(method, &url).header("authorization", &format!("Bearer {}", call.config.key))
//!     }
//!
//!     fn find(call: &Call<Config>, name: &str) -> Result<Option<Machine>, Error> {
//!         let path = format!("/machines?name={}", http::encoded(name));
//!         let found: Vec<Machine> = Machines::request(call, http::Method::Get, &path).send()?.ok()?.json()?;
//!         Ok(found.into_iter().next())
//!     }
//! }
//!
//! impl AcquireLease for Machines {
//!     fn acquire(call: &Call<Config>, request: AcquireRequest) -> Result<Lease, AcquireError> {
//!         let name = request.creation_name;
//!         let body = serde_json::json!({ "name": name });
//!         let create = || -> Result<Option<Machine>, Error> {
//!             let answer = Machines::request(call, http::Method::Post, "/machines").body_json(&body).send()?;
//!             // Another call of the same name was quicker: look again.
//!             if answer.status() == 409 { Ok(None) } else { Ok(Some(answer.ok()?.json()?)) }
//!         };
//!         let machine = find_or_create(|| Machines::find(call, &name), create).map_err(|error| {
//!             acquire_failed(error, cleanup(&name, None, &call.config.service, &[]))
//!         })?;
//!         Ok(lease(&machine.id, &serde_json::json!({ "name": name })))
//!     }
//! }
//!
//! impl ReleaseLease for Machines {
//!     fn release(call: &Call<Config>, request: ReleaseRequest) -> Result<Receipt, Error> {
//!         let id = request.lease.id;
//!         let path = format!("/machines/{}", http::encoded(&id));
//!         let answer = Machines::request(call, http::Method::Delete, &path).send()?;
//!         match answer.status() {
//!             404 => Ok(receipt(id, Disposition::AlreadyGone)),
//!             _ => answer.ok().map(|_| receipt(id, Disposition::Destroyed)),
//!         }
//!     }
//! }
//!
//! impl Execute for Machines {
//!     fn execute(
//!         call: &Call<Config>,
//!         request: ExecuteRequest,
//!         streams: Streams,
//!     ) -> Result<ExecuteResult, Error> {
//!         let path = format!("/machines/{}/run", http::encoded(&request.lease.id));
//!         let body = serde_json::json!({ "argv": request.argv });
//!         let answer = Machines::request(call, http::Method::Post, &path).body_json(&body).send()?.ok()?;
//!         // Byte for byte from the one stream to the other, without coming through here.
//!         let body = answer.stream()?;
//!         splice(body.stream(), &streams.output)?;
//!         Ok(exited(0))
//!     }
//! }
//!
//! export!(Machines: AcquireLease, ReleaseLease, Execute);
//! # fn main() {}
//! ```

#![deny(missing_docs)]
#![deny(unsafe_op_in_unsafe_fn)]

mod answers;
mod call;
pub mod connect;
pub mod error;
#[doc(hidden)]
pub mod exported;
pub mod http;
#[allow(missing_docs, reason = "the documentation of generated items is in wit/")]
#[doc(hidden)]
pub mod imports;
pub mod log;
mod methods;
mod names;
#[doc(hidden)]
pub mod raw;
pub mod stream;
pub mod time;

pub use answers::{
    acquire_failed, cleanup, destroy_failed, exited, lease, receipt, signaled, stop_failed, timed_out,
};
pub use call::{Call, Provider};
pub use error::{
    denied, failed, gone, invalid, invalid_all, transient, Error, FieldError, TransientCategory,
};
pub use methods::{
    AcquireLease, CaptureTemplate, DeleteTemplate, DestroyLease, Execute, FindLease, InteractiveSetup,
    LoginPty, Probe, RealizeWorkspace, ReleaseLease, ResumeLease, StopLease, Streams, SyncIn, SyncOut,
    ValidateConfig,
};
pub use names::{find_or_create, fingerprint};
pub use stream::{splice, splice_exactly};

pub use imports::leasehold::host::{jail, state, transfer};
pub use imports::leasehold::provider::sync_types::{MappingKind, OperationResult, PostUploadCommand};
pub use imports::leasehold::provider::types::{
    CleanupRecord, Context, Disposition, Lease, Receipt, Retention,
};
pub use imports::wasi::io::streams::{InputStream, OutputStream};
pub use raw::acquire_lease::{AcquireError, AcquireRequest, AcquisitionDiagnostic, AcquisitionPhase};
pub use raw::capture_template::{CaptureRequest, Template};
pub use raw::destroy_lease::{DestroyError, DestroyTarget};
pub use raw::execute::{ExecuteRequest, ExecuteResult, Exit};
pub use raw::find_lease::Finding;
pub use raw::interactive_setup::{Connection, SessionStatus, SetupHandle, SetupRequest, SetupSession};
pub use raw::login_pty::{OpenRequest, TerminalSize};
pub use raw::probe::{Diagnostic, ProbeReport, Severity};
pub use raw::realize_workspace::{Workspace, WorkspaceRequest};
pub use raw::release_lease::ReleaseRequest;
pub use raw::resume_lease::ResumeRequest;
pub use raw::stop_lease::{StopError, StopReason};
pub use raw::sync_in::{InboundMapping, InboundOperation};
pub use raw::sync_out::{OutboundMapping, OutboundOperation};
pub use raw::validate_config::AcceptedConfig;
