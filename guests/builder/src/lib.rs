//! Builds guests and fixtures into components, and says where they are.
//!
//! Four kinds of source become components, all in one flat directory ([`guests_dir`]):
//! Rust guests ([`rust`]), hand-written core modules ([`text`]), the contract with one edit ([`shape`]), and
//! what is generated from the contract alone ([`generated`]). Tests read them with [`fixture`]. Templates, in
//! several languages, have a directory of their own below it ([`template`]).
//!
//! Nothing here is part of the product; it runs on the machine of somebody who changes Leasehold.

pub mod embed;
pub mod generated;
pub mod layout;
pub mod rust;
pub mod shape;
pub mod template;
pub mod text;
pub mod toolchain;
pub mod verify;

mod beside;
mod encode;
mod output;
mod stamp;
mod wit;

pub use layout::guests_dir;
pub use output::{Built, build_all};

use anyhow::{Context, Result};

/// Reads the component `name` that an earlier `cargo guests` or `cargo verify` has built.
///
/// # Errors
///
/// When it is not there; the message says what to run.
pub fn fixture(name: &str) -> Result<Vec<u8>> {
    let path = guests_dir().join(format!("{name}.wasm"));
    std::fs::read(&path).with_context(|| {
        format!(
            "the fixture `{name}` is not built ({} cannot be read); run `cargo guests`, or `cargo verify` for everything",
            path.display()
        )
    })
}
