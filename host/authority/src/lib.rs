//! What a guest may reach outside its own memory.
//!
//! This crate alone opens sockets and starts processes. [`jail`], [`http`] and the connections know neither a lease
//! nor a store: callers pass plain values. [`facility`] puts them behind the interfaces that a component
//! imports, and [`Reach`] is what one call brings along: its policy, its secrets, who is told of it.

pub mod audit;
pub mod config;
mod connect;
pub mod facility;
pub mod http;
pub mod jail;
pub mod policy;
mod reach;
pub mod secret;
pub mod state;

pub use reach::{Reach, Services, Verdict};
