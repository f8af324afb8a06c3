//! Where tools are kept: the user's cache directory, apart from every checkout.

use std::env;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::say;

/// A directory of this name below `leasehold` in the user's cache, made when it is not there.
pub(crate) fn directory(name: &str) -> Result<PathBuf> {
    let base = match env::var_os("XDG_CACHE_HOME").filter(|dir| !dir.is_empty()) {
        Some(dir) => PathBuf::from(dir),
        None => env::home_dir().context("there is no home directory; set XDG_CACHE_HOME")?.join(".cache"),
    };
    let directory = base.join("leasehold").join(name);
    fs::create_dir_all(&directory).with_context(|| format!("creating {}", directory.display()))?;
    Ok(directory)
}

/// One build at a time: the second finds the first one's work done. Closing the file unlocks it.
pub(crate) fn lock(path: &Path) -> Result<File> {
    let file = File::create(path).with_context(|| format!("creating {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            say("guests: waiting for another build to make the toolchain");
            file.lock()?;
        }
        Err(TryLockError::Error(error)) => return Err(error).context("locking the toolchain"),
    }
    Ok(file)
}
