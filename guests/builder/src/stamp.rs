//! Knows whether what needs no compiler has to be made again.
//!
//! Encoding some seventy components takes seconds in an unoptimised build, and `cargo verify` should not
//! spend them when nothing changed. The stamp beside the components holds a digest of every input and the
//! names of what was made of them.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::Path;

use anyhow::{Context, Result};

use crate::layout;

const FILE: &str = ".stamp";

/// A digest of all sources and of this program, which is a source too.
pub(crate) fn of_inputs() -> Result<u64> {
    let mut files = Vec::new();
    for dir in [layout::wit_dir(), layout::fixtures_dir().join("text"), layout::fixtures_dir().join("shapes")]
    {
        layout::collect(&dir, &mut files)?;
    }
    files.sort();
    let mut hasher = DefaultHasher::new();
    for path in files {
        path.hash(&mut hasher);
        fs::read(&path).with_context(|| format!("reading {}", path.display()))?.hash(&mut hasher);
    }
    // Tens of megabytes; size and time tell as much.
    let program = fs::metadata(std::env::current_exe()?)?;
    (program.len(), program.modified()?).hash(&mut hasher);
    Ok(hasher.finish())
}

/// The names that were made of inputs with this digest, when all of them are still there.
pub(crate) fn made(dir: &Path, digest: u64) -> Option<Vec<String>> {
    let stamp = fs::read_to_string(dir.join(FILE)).ok()?;
    let (first, names) = stamp.split_once('\n')?;
    if first != digest.to_string() {
        return None;
    }
    let names: Vec<String> = names.lines().map(str::to_string).collect();
    names.iter().all(|name| dir.join(format!("{name}.wasm")).is_file()).then_some(names)
}

/// Notes what was made.
pub(crate) fn note<'a>(dir: &Path, digest: u64, names: impl Iterator<Item = &'a str>) -> Result<()> {
    let names: Vec<&str> = names.collect();
    fs::write(dir.join(FILE), format!("{digest}\n{}\n", names.join("\n"))).context("writing the stamp")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_counts_only_for_its_inputs_and_while_everything_is_there() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(made(dir.path(), 1), None);
        fs::write(dir.path().join("a.wasm"), "").unwrap();
        note(dir.path(), 1, ["a"].into_iter()).unwrap();
        assert_eq!(made(dir.path(), 1), Some(vec!["a".to_string()]));
        assert_eq!(made(dir.path(), 2), None);
        fs::remove_file(dir.path().join("a.wasm")).unwrap();
        assert_eq!(made(dir.path(), 1), None);
    }
}
