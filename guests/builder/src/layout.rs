//! Where sources and results lie.

use std::path::{Path, PathBuf};
use std::{env, fs};

use anyhow::{Context, Result};

/// The root of the workspace.
///
/// Found at run time, not baked in: one target directory may serve several checkouts, and a path
/// compiled in would then be that of the checkout built last. Cargo names the package of the running
/// binary or test; outside cargo the search starts at the current directory.
pub fn workspace_root() -> PathBuf {
    let start = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).or_else(|| env::current_dir().ok());
    start
        .as_deref()
        .and_then(|start| start.ancestors().find(|dir| dir.join("guests/fixtures").is_dir()))
        .unwrap_or(Path::new("."))
        .to_path_buf()
}

/// The target directory: `CARGO_TARGET_DIR`, else `target` in the workspace.
///
/// A relative `CARGO_TARGET_DIR` counts from the workspace, so that tests, which run in their package's
/// directory, and the builder agree.
pub fn target_dir() -> PathBuf {
    let root = workspace_root();
    match env::var_os("CARGO_TARGET_DIR") {
        Some(dir) if !dir.is_empty() => root.join(dir),
        _ => root.join("target"),
    }
}

/// The directory of finished components, one `<name>.wasm` each.
pub fn guests_dir() -> PathBuf {
    target_dir().join("guests")
}

/// The workspace of all Rust guests.
pub(crate) fn guests_sources() -> PathBuf {
    workspace_root().join("guests")
}

/// Sources of all fixtures.
pub(crate) fn fixtures_dir() -> PathBuf {
    workspace_root().join("guests/fixtures")
}

/// Interface files of the contract.
pub(crate) fn wit_dir() -> PathBuf {
    workspace_root().join("wit")
}

/// Adds every file below a directory.
pub(crate) fn collect(dir: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(dir).with_context(|| format!("reading {}", dir.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
