//! The host's side of what a guest imports.
//!
//! Every interface of every version goes through one linker, and a component is linked only after its
//! imports were judged (see [`crate::inspect`]); nothing here decides on authority.

mod log;
mod transfer;

use crate::call::CallState;
use leasehold_bindings::imports;
use wasmtime::component::{HasSelf, Linker};

/// Interfaces of the host package that this engine does not implement itself; an embedder adds them.
pub(crate) const NOT_BUILT_IN: &[&str] = &[
    "leasehold:host/jail",
    "leasehold:host/state",
    "leasehold:host/connect",
    "leasehold:host/egress-status",
    "wasi:http/types",
    "wasi:http/outgoing-handler",
];

/// A linker with everything the engine implements itself.
pub(crate) fn linker(engine: &wasmtime::Engine) -> wasmtime::Result<Linker<CallState>> {
    let mut linker = Linker::new(engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    imports::transfer::add_to_linker::<_, HasSelf<CallState>>(&mut linker, counted)?;
    imports::log::add_to_linker::<_, HasSelf<CallState>>(&mut linker, counted)?;
    Ok(linker)
}

fn counted(state: &mut CallState) -> &mut CallState {
    state.host_calls += 1;
    state
}
