//! Templates: the same small provider in every language, built with that language's own tool.
//!
//! `guests/templates/<language>` becomes `<guests>/templates/<language>.wasm`. A component is made again only
//! when one of its sources changed, for some tools take ten seconds and every new component has to be
//! compiled once more by whoever loads it.

mod c;
mod javascript;
mod python;
mod tool;
mod world;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::layout;

/// The world of all templates, in `guests/templates/world.wit`.
const WORLD: &str = "provider";

/// What a language's tool is told.
struct Job<'a> {
    /// The template's own files.
    source: &'a Path,
    /// Interface files: [`WORLD`], and below `deps` all it names.
    wit: &'a Path,
    /// A directory for what is made on the way.
    work: &'a Path,
}

/// Builds a component.
type Build = fn(&Job<'_>) -> Result<Vec<u8>>;

/// Every language, and how its template becomes a component.
const LANGUAGES: &[(&str, Build)] =
    &[("c", c::build), ("javascript", javascript::build), ("python", python::build)];

/// Builds every template whose sources changed; installs what their languages need. Says what it did.
///
/// # Errors
///
/// The first template that does not build, or tool that cannot be installed, named.
pub fn build_all() -> Result<String> {
    let (dir, wit) = (directory(), directory().join("wit"));
    fs::create_dir_all(&dir).with_context(|| format!("creating {}", dir.display()))?;
    world::lay_out(&wit)?;
    let mut changed = 0;
    for (language, build) in LANGUAGES {
        let digest = inputs(language)?;
        if is_made(language, &digest) {
            continue;
        }
        let work = layout::target_dir().join("guests-build/templates").join(language);
        fs::create_dir_all(&work).with_context(|| format!("creating {}", work.display()))?;
        let source = sources().join(language);
        let bytes = build(&Job { source: &source, wit: &wit, work: &work })
            .with_context(|| format!("the template in {language} cannot be built"))?;
        write(&component(language), &bytes)?;
        write(&stamp_path(language), digest.as_bytes())?;
        changed += 1;
    }
    Ok(format!("templates: {} components, {} of them new or changed", LANGUAGES.len(), changed))
}

fn directory() -> PathBuf {
    layout::guests_dir().join("templates")
}

fn sources() -> PathBuf {
    layout::guests_sources().join("templates")
}

fn component(language: &str) -> PathBuf {
    directory().join(format!("{language}.wasm"))
}

fn stamp_path(language: &str) -> PathBuf {
    directory().join(format!(".{language}.stamp"))
}

/// A digest of everything a template is made from, and of how.
fn inputs(language: &str) -> Result<String> {
    let root = layout::workspace_root();
    let mut files = vec![sources().join("world.wit")];
    for dir in [sources().join(language), layout::wit_dir(), root.join("guests/builder/src/template")] {
        layout::collect(&dir, &mut files)?;
    }
    files.sort();
    let mut hasher = blake3::Hasher::new();
    for path in files {
        let content = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        let name = path.strip_prefix(&root).unwrap_or(&path).to_string_lossy().into_owned();
        hasher.update(&(name.len() as u64).to_le_bytes()).update(name.as_bytes());
        hasher.update(&(content.len() as u64).to_le_bytes()).update(&content);
    }
    Ok(hasher.finalize().to_hex().to_string())
}

fn is_made(language: &str, digest: &str) -> bool {
    let stamp = fs::read_to_string(stamp_path(language)).unwrap_or_default();
    stamp == digest && component(language).is_file()
}

/// Replaces a file as a whole: a test that reads meanwhile sees the old one or the new one.
fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let partial = path.with_extension(format!("{}.partial", std::process::id()));
    fs::write(&partial, bytes).with_context(|| format!("writing {}", partial.display()))?;
    fs::rename(&partial, path).with_context(|| format!("writing {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_has_a_folder_with_a_page_and_every_folder_is_a_language() {
        let mut folders: Vec<_> = fs::read_dir(sources())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_dir())
            .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
            .collect();
        folders.sort();
        let mut languages: Vec<_> = LANGUAGES.iter().map(|(name, _)| *name).collect();
        languages.sort_unstable();
        assert_eq!(folders, languages);
        for language in languages {
            assert!(sources().join(language).join("README.md").is_file(), "{language} has no page");
        }
    }
}
