//! Folders out to a sandbox and back.
//!
//! [`Tree::walk`] lists a folder by directory handle, [`outgoing`] streams it as a tar archive and learns a
//! [`Baseline`], [`incoming`] takes an untrusted archive apart into a staging directory, and [`merge`] puts
//! what the sandbox changed into the folder where the host did not change it too.
//!
//! Nothing here knows a lease or WebAssembly: callers pass plain byte streams. The blocking work runs on
//! tokio's blocking threads, so [`outgoing`], [`incoming`] and [`merge`] want a tokio runtime around them, [`merge`] with its clock on.
//! No path that came from an archive is ever resolved as a whole: every open is relative to a directory
//! handle and follows no link.

#[cfg(not(unix))]
compile_error!("leasehold-sync needs directory handles, modes and symbolic links as Unix has them");

mod archive;
mod confine;
mod exclude;
pub mod fallback;
mod incoming;
mod limits;
mod manifest;
mod merge;
mod operation;
mod outgoing;
mod pipe;
mod progress;
mod rule;
mod scratch;
mod sweep;
mod tree;
mod unchanged;

pub use confine::{ConfineError, Roots, confine};
pub use exclude::{Excludes, literal};
pub use incoming::{
    Arriving, FileSink, PlaceError, ReceiveError, Received, ReceivedFile, Receiving, SinkEntry, SinkError,
    TreeSink, incoming,
};
pub use limits::{ENTRIES, Limits, NAME_BYTES, PATH_BYTES, SYNC_LIMITS, SyncLimit};
pub use manifest::{Baseline, Entry, Kind, Manifest, Timestamp};
pub use merge::{Conflict, MergeError, MergeReport, merge};
pub use operation::{Mapping, MappingKind, Moved, Operation, PostUpload};
pub use outgoing::{FileSource, SendError, SentFile, SourceEntry, SourceKind, Summary, TreeSource, outgoing};
pub use pipe::{Closed, Inlet, Outlet};
pub use progress::Progress;
pub use rule::Rule;
pub use scratch::{Noted, Scratch};
pub use sweep::sweep;
pub use tree::{
    HEAVY, LeftOut, RESERVED, Rules, Tree, WalkError, WalkOptions, coming_back, reserved_patterns,
};
pub use unchanged::{Delta, LIST, Listing, Stamp, SyncRecord};
