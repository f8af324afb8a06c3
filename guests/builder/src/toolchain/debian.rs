//! A toolchain from Debian's packages, for machines whose Rust has no standard library for guests.
//!
//! Debian's compiler is unpacked, not installed, under the user's cache, together with the sources of its
//! own standard library, which is then built once for `wasm32-unknown-unknown`. The linker that makes
//! components comes with the Rust toolchain in use. Nothing outside the cache is changed, and only
//! refreshing apt's lists wants root.
//!
//! That target has no libc: what a component imports is what its interface files say and no more.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::prefix::{self, Tools};
use super::{Outcome, Toolchain, apt, cache};

pub(super) const TARGET: &str = "wasm32-unknown-unknown";
/// Written last; a directory without it is left over from an attempt that was cut short.
pub(super) const DONE: &str = "done";

pub(super) fn ready() -> Result<Outcome> {
    if !apt::is_here() {
        return Ok(Outcome::NotHere("there is no apt-get and dpkg".into()));
    }
    let home = cache::directory("guest-toolchain")?;
    // One at a time: the second finds the first one's work done. Closing the file unlocks it.
    let _lock = cache::lock(&home.join("lock"))?;

    let tools = prefix::tools()?;
    // What was made once serves until somebody removes it: a refreshed list is no reason to wait for
    // another download, and without network there would be none.
    if let Some(prefix) = any_made(&home) {
        return use_prefix(&prefix, &tools);
    }
    let mut version = apt::version();
    let mut refreshed = None;
    if version.is_none() {
        refreshed = Some(apt::refresh());
        version = apt::version();
    }
    let Some(version) = version else {
        let why = match refreshed {
            Some(Err(error)) => {
                format!("apt knows no rustc-web, and its lists cannot be refreshed: {error:#}")
            }
            _ => "apt knows no rustc-web".into(),
        };
        return Ok(Outcome::NotHere(why));
    };
    use_prefix(&prefix::make(&home, version, refreshed.is_some(), &tools)?, &tools)
}

fn use_prefix(prefix: &Path, tools: &Tools) -> Result<Outcome> {
    prefix::link_tools(prefix, tools)?;
    Ok(Outcome::Ready(Toolchain {
        target: TARGET,
        rustc: Some(prefix.join("bin/rustc")),
        linker: Some(tools.directory.join("wasm-component-ld")),
    }))
}

fn any_made(home: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(home).ok()?;
    let made = |path: &PathBuf| prefix::is_by_this_recipe(path) && path.join(DONE).exists();
    entries.flatten().map(|entry| entry.path()).filter(made).max()
}
