//! The host's side of what a guest imports.
//!
//! Every interface of every version goes through one linker, and a component is linked only after its
//! imports were judged (see [`crate::inspect`]); nothing here decides on authority.

mod facility;
mod log;
mod transfer;

pub use facility::{Facilities, Facility};

use crate::call::CallState;
use leasehold_bindings::imports;
use wasmtime::component::{HasSelf, Linker};

/// Interfaces of the host package that the engine implements itself. Of WASI it implements all but HTTP.
const BUILT_IN: &[&str] = &["leasehold:host/transfer", "leasehold:host/log"];

/// Whether an import of the contract (without version) can be linked here.
pub(crate) fn provides(facilities: &Facilities, interface: &str) -> bool {
    let left_out = interface.starts_with("leasehold:host/") || interface.starts_with("wasi:http/");
    !left_out || BUILT_IN.contains(&interface) || facilities.interfaces().any(|name| name == interface)
}

/// A linker with everything the engine implements itself, and what was added to it.
pub(crate) fn linker(
    engine: &wasmtime::Engine,
    facilities: &Facilities,
) -> wasmtime::Result<Linker<CallState>> {
    let mut linker = Linker::new(engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    imports::transfer::add_to_linker::<_, HasSelf<CallState>>(&mut linker, counted)?;
    imports::log::add_to_linker::<_, HasSelf<CallState>>(&mut linker, counted)?;
    for facility in facilities.all() {
        facility.link(&mut linker)?;
    }
    Ok(linker)
}

fn counted(state: &mut CallState) -> &mut CallState {
    state.host_calls += 1;
    state
}
