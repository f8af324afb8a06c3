//! What a guest may reach outside its own memory.
//!
//! This crate alone starts processes. [`jail`] knows neither a lease nor WebAssembly: callers pass plain values
//! and byte streams. [`facility`] puts it behind the interface that a component imports.

pub mod facility;
pub mod jail;
