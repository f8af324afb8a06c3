//! The sandbox-provider contract as data and pure rules.
//!
//! Nothing here performs I/O, awaits, or knows how a provider is run. What a method is called, what a
//! capability needs, how long a call may take and what a declaration may say are decided in this crate
//! and nowhere else.

pub mod authority;
pub mod budget;
pub mod capability;
pub mod declaration;
pub mod method;
pub mod schema;
pub mod secret;
pub mod text;
pub mod verification;

pub use method::Method;
pub use verification::{Difference, Verdict, Verification};
