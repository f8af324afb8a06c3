//! Providers that are shipped inside the host: built here, kept as files, and known by their sources.
//!
//! A host builds without a guest toolchain because the component is in the repository. Beside it lies a
//! digest of the sources it was built from, and a test fails when the sources have moved on.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::layout;

/// Providers inside the host, each a package in `guests`.
pub const EMBEDDED: &[&str] = &["local"];

/// The component of an embedded provider, where the host takes it from.
pub fn component_path(name: &str) -> PathBuf {
    layout::workspace_root().join("host/runtime/embedded").join(format!("{name}.wasm"))
}

/// The digest of the sources that the component was built from.
pub fn digest_path(name: &str) -> PathBuf {
    component_path(name).with_extension("sources")
}

/// Takes the components built last over into the host.
///
/// # Errors
///
/// When one was not built, or the files cannot be written.
pub fn embed() -> Result<()> {
    for name in EMBEDDED {
        let path = component_path(name);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
        }
        fs::write(&path, crate::fixture(name)?).with_context(|| format!("writing {}", path.display()))?;
        let digest = digest_path(name);
        fs::write(&digest, format!("{}\n", sources(name)?))
            .with_context(|| format!("writing {}", digest.display()))?;
    }
    Ok(())
}

/// A digest of everything a provider is built from: its package, the contract, and the versions of what it
/// uses. The compiler is left out, for it differs from one machine to the next.
///
/// # Errors
///
/// When a source cannot be read.
pub fn sources(name: &str) -> Result<String> {
    let root = layout::workspace_root();
    let mut files = vec![root.join("guests/Cargo.toml"), root.join("guests/Cargo.lock")];
    layout::collect(&root.join("guests").join(name), &mut files)?;
    layout::collect(&layout::wit_dir(), &mut files)?;
    files.sort();
    let mut hasher = blake3::Hasher::new();
    for path in files {
        let shown = path.strip_prefix(&root).unwrap_or(Path::new("")).to_string_lossy().replace('\\', "/");
        let content = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        hasher.update(&(shown.len() as u64).to_le_bytes()).update(shown.as_bytes());
        hasher.update(&(content.len() as u64).to_le_bytes()).update(&content);
    }
    Ok(hasher.finalize().to_hex().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shipped_was_built_from_the_sources_that_are_here() {
        for name in EMBEDDED {
            let recorded = fs::read_to_string(digest_path(name)).unwrap_or_default();
            assert_eq!(
                recorded.trim(),
                sources(name).unwrap(),
                "the sources of `{name}` changed; type `cargo run -p leasehold-builder -- embed`"
            );
            assert!(fs::metadata(component_path(name)).unwrap().len() > 0);
        }
    }
}
