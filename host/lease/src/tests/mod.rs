//! Tests over the whole crate: a scripted provider, both databases for real, processes that are really
//! killed.

mod acquire;
mod fake;
mod files;
mod home;
mod kill;
mod reconcile;
mod registry;
mod release;
mod server;
