//! What a real guest reaches of real servers, and what it never does.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod attacks;
mod connect;
mod http;
mod secrets;
mod state;
mod tenants;
