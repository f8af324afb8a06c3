//! Tests over the whole crate: a scripted provider, both databases for real, processes that are really
//! killed.

mod acquire;
mod creation;
mod fake;
mod files;
mod home;
mod hosts;
mod kill;
mod property;
mod reconcile;
mod registry;
mod release;
mod reuse;
mod server;
mod states;
mod stop;
mod store;
mod usage;
