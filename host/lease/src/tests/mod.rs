//! Tests over the whole crate: a scripted provider, both databases for real, processes that are really
//! killed.
#![allow(dead_code, reason = "TEMPORARY")]

mod acquire;
mod fake;
mod files;
mod home;
mod reconcile;
mod registry;
mod release;
mod server;
