//! Interface files as every tool understands them: one directory, the world, and `deps`.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::layout;

/// Lays them out anew.
pub(super) fn lay_out(wit: &Path) -> Result<()> {
    _ = fs::remove_dir_all(wit);
    let world = layout::guests_sources().join("templates/world.wit");
    copy(&world, &wit.join("world.wit"))?;
    // The contract is a dependency like those it has itself.
    let contract = layout::wit_dir();
    let mut files = Vec::new();
    layout::collect(&contract, &mut files)?;
    for file in files {
        let name = file.strip_prefix(&contract).unwrap_or(&file);
        let to = match name.strip_prefix("deps") {
            Ok(name) => wit.join("deps").join(name),
            Err(_) => wit.join("deps/leasehold-provider").join(name),
        };
        if name.extension().is_some_and(|extension| extension == "wit") {
            copy(&file, &to)?;
        }
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::copy(from, to).map(drop).with_context(|| format!("copying {} to {}", from.display(), to.display()))
}
