//! Builds every fixture and puts it where tests look.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::layout::guests_dir;
use crate::wit::Contract;
use crate::{generated, rust, shape, stamp, text, toolchain};

/// What a build did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Built {
    /// Components that exist now.
    pub total: usize,
    /// Those of them that are new or differ from before.
    pub changed: usize,
}

impl std::fmt::Display for Built {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "guests: {} components, {} of them new or changed", self.total, self.changed)
    }
}

/// Builds everything, the Rust guests with a toolchain that is made first if need be.
///
/// # Errors
///
/// The first source that does not build, named.
pub fn build_all() -> Result<Built> {
    let dir = guests_dir();
    fs::create_dir_all(&dir).with_context(|| format!("creating {}", dir.display()))?;

    let digest = stamp::of_inputs()?;
    let (mut names, mut changed) = match stamp::made(&dir, digest) {
        Some(names) => (names, 0),
        None => {
            let contract = Contract::load()?;
            let mut components = generated::components(&contract)?;
            components.extend(text::components(&contract)?);
            components.extend(shape::components(&contract)?);
            let changed = write(&dir, &components)?;
            stamp::note(&dir, digest, components.iter().map(|(name, _)| name.as_str()))?;
            (components.into_iter().map(|(name, _)| name).collect(), changed)
        }
    };
    let components = rust::components(&toolchain::ready()?)?;
    changed += write(&dir, &components)?;
    names.extend(components.into_iter().map(|(name, _)| name));
    prune(&dir, &names)?;
    Ok(Built { total: names.len(), changed })
}

/// Writes what changed; returns how many that were. A file whose content stays keeps its time, so that
/// nothing downstream is done again for it.
fn write(dir: &Path, components: &[(String, Vec<u8>)]) -> Result<usize> {
    let mut changed = 0;
    for (name, bytes) in components {
        let path = dir.join(format!("{name}.wasm"));
        if fs::read(&path).ok().as_ref() != Some(bytes) {
            // A test that reads while we write sees the old file or the new one, never half of one.
            let partial = dir.join(format!(".{name}.{}", std::process::id()));
            fs::write(&partial, bytes).with_context(|| format!("writing {}", partial.display()))?;
            fs::rename(&partial, &path).with_context(|| format!("writing {}", path.display()))?;
            changed += 1;
        }
    }
    Ok(changed)
}

/// Removes components that no source makes any more. Two sources of one name are a mistake.
fn prune(dir: &Path, names: &[String]) -> Result<()> {
    let mut known = BTreeSet::new();
    for name in names {
        ensure!(known.insert(format!("{name}.wasm")), "two sources make the fixture `{name}`; rename one");
    }
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let file = entry.file_name().to_string_lossy().into_owned();
        if file.ends_with(".wasm") && !known.contains(&file) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_changed_is_written_and_strays_go() {
        let dir = tempfile::tempdir().unwrap();
        let both = [("a".to_string(), vec![1]), ("b".to_string(), vec![2])];
        assert_eq!(write(dir.path(), &both).unwrap(), 2);
        assert_eq!(write(dir.path(), &both).unwrap(), 0);
        prune(dir.path(), &["a".to_string()]).unwrap();
        assert!(dir.path().join("a.wasm").exists());
        assert!(!dir.path().join("b.wasm").exists());
    }

    #[test]
    fn two_sources_of_one_name_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let error = prune(dir.path(), &["a".to_string(), "a".to_string()]).unwrap_err();
        assert!(error.to_string().contains("rename one"));
    }
}
