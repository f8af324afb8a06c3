//! Where the user's things are, by the rules of the desktop specification.

use anyhow::Context;
use std::path::PathBuf;

/// Leases and jails.
pub(crate) fn state() -> anyhow::Result<PathBuf> {
    let found = base("XDG_STATE_HOME", ".local/state");
    found.context("there is no place for leases: set HOME, or XDG_STATE_HOME to a directory of yours")
}

/// Compiled components; none without a home.
pub(crate) fn cache() -> Option<PathBuf> {
    Some(base("XDG_CACHE_HOME", ".cache")?.join("compiled"))
}

fn base(variable: &str, below_home: &str) -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute(variable).or_else(|| Some(absolute("HOME")?.join(below_home)))?;
    Some(base.join("leasehold"))
}
