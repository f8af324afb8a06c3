//! Generated host bindings of the provider contract.
//!
//! A crate of their own, because generating and compiling them takes longer than everything that uses
//! them. Nothing is decided here: [`generated`] is what the bindings generator makes of `wit/`, and
//! [`port`] holds the traits behind which a host puts its half of a resource.

pub mod port;
pub mod shape;

#[allow(missing_docs, unreachable_pub, reason = "the documentation of generated items is in wit/")]
pub mod generated {
    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "full",
        imports: { default: async | trappable },
        exports: { default: async },
        with: {
            "wasi:io": wasmtime_wasi::p2::bindings::io,
            "wasi:clocks": wasmtime_wasi::p2::bindings::clocks,
            "wasi:random": wasmtime_wasi::p2::bindings::random,
            "leasehold:host/transfer.source": crate::port::Source,
            "leasehold:host/transfer.sink": crate::port::Sink,
            "leasehold:host/connect.connection": crate::port::Connection,
        },
    });
}

pub use generated::exports::leasehold::provider as exports;
pub use generated::leasehold::host as imports;
pub use generated::leasehold::provider::{sync_types, types};
