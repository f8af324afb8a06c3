//! Finds, or makes, a Rust toolchain that can build guests.
//!
//! There are three routes, tried in this order; `LEASEHOLD_GUEST_TOOLCHAIN` forces one of them:
//!
//! 1. `installed`: the compiler in use has a standard library for `wasm32-wasip2`.
//! 2. `debian`: a Debian system whose package lists have `rustc-web`. See [`debian`].
//! 3. `rustup`: `rustup target add wasm32-wasip2`.
//!
//! A route that this machine does not have is passed over. A route that it has and that fails ends the
//! search, since what comes next would only hide the reason.

pub mod debian;

pub(crate) mod cache;

mod apt;
mod command;
mod installed;
mod prefix;

use std::env;
use std::path::PathBuf;

use anyhow::{Result, bail};

pub(crate) use command::{cargo, flags, output, program, say};

/// The variable that forces a route.
pub const ROUTE_VARIABLE: &str = "LEASEHOLD_GUEST_TOOLCHAIN";

/// A toolchain that builds a component with `cargo build`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toolchain {
    /// The target to build for.
    pub target: &'static str,
    /// The compiler, when it is not the one in use anyway.
    pub rustc: Option<PathBuf>,
    /// The linker, when the compiler does not choose the right one by itself.
    pub linker: Option<PathBuf>,
}

/// What became of a route.
pub(crate) enum Outcome {
    Ready(Toolchain),
    /// The machine does not have this route, and why.
    NotHere(String),
}

type Route = (&'static str, fn() -> Result<Outcome>);

const ROUTES: [Route; 3] =
    [("installed", installed::ready), ("debian", debian::ready), ("rustup", installed::add_target)];

/// Returns a toolchain, after making one if need be.
///
/// # Errors
///
/// When no route leads to one; the message lists what was tried and what to type.
pub fn ready() -> Result<Toolchain> {
    let forced = env::var(ROUTE_VARIABLE).unwrap_or_default();
    let routes: Vec<Route> = match forced.as_str() {
        "" | "auto" => ROUTES.to_vec(),
        name => ROUTES.into_iter().filter(|(route, _)| *route == name).collect(),
    };
    if routes.is_empty() {
        bail!("{ROUTE_VARIABLE}={forced} is not known; set it to auto, installed, debian or rustup");
    }
    let mut tried = String::new();
    for (name, route) in routes {
        match route() {
            Ok(Outcome::Ready(toolchain)) => return Ok(toolchain),
            Ok(Outcome::NotHere(why)) => tried += &format!("\n  {name}: {why}"),
            Err(error) => {
                tried += &format!("\n  {name}: {error:#}");
                break;
            }
        }
    }
    bail!(
        "there is no Rust toolchain for guests. Tried:{tried}\nType `rustup target add wasm32-wasip2`, \
         or on a Debian system `apt-get update`, and try again"
    )
}
