//! `.gitignore` files: those of the tree, and those above it up to the root of its git work tree.

use crate::confine::{open_file, open_root};
use crate::limits::IGNORE_FILE_BYTES;
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use std::collections::BTreeMap;
use std::io::Read as _;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

pub(super) const NAME: &str = ".gitignore";

#[derive(Clone, Debug, Default)]
pub(super) struct Ignores {
    /// By the directory of the tree that holds the file.
    inside: BTreeMap<PathBuf, Gitignore>,
    /// Nearest first, each with the path of the tree below the directory that holds the file.
    above: Vec<(PathBuf, Gitignore)>,
}

impl Ignores {
    /// Reads the files above a folder when it lies in a git work tree. A work tree that cannot be read has
    /// no say.
    pub(super) fn above(folder: &Path) -> Self {
        let mut above = Vec::new();
        let Ok(folder) = folder.canonicalize() else { return Self::default() };
        if folder.join(".git").exists() {
            return Self::default();
        }
        for parent in folder.ancestors().skip(1) {
            let text = open_root(parent).ok().and_then(|directory| read(&directory));
            if let (Some(text), Ok(prefix)) = (text, folder.strip_prefix(parent)) {
                above.extend(parse(&text).map(|rules| (prefix.to_owned(), rules)));
            }
            if parent.join(".git").exists() {
                return Self { above, ..Self::default() };
            }
        }
        Self::default()
    }

    pub(super) fn add(&mut self, directory: PathBuf, text: &[u8]) {
        if let Some(rules) = parse(text) {
            self.inside.insert(directory, rules);
        }
    }

    /// The nearest file with something to say about the path decides.
    pub(super) fn ignored(&self, path: &Path, is_directory: bool) -> bool {
        let inside = path.ancestors().skip(1).filter_map(|directory| {
            let rules = self.inside.get(directory)?;
            Some(rules.matched(path.strip_prefix(directory).ok()?, is_directory))
        });
        let above = self.above.iter().map(|(prefix, rules)| rules.matched(prefix.join(path), is_directory));
        matches!(inside.chain(above).find(|found| !found.is_none()), Some(Match::Ignore(_)))
    }
}

/// Reads the file of a directory, if there is a regular one.
pub(super) fn read(directory: impl AsFd) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    let file = open_file(directory, Path::new(NAME)).ok()?;
    file.take(IGNORE_FILE_BYTES).read_to_end(&mut text).ok()?;
    Some(text)
}

/// A line that is no pattern is passed over, as git does.
fn parse(text: &[u8]) -> Option<Gitignore> {
    let text = String::from_utf8_lossy(text);
    let mut builder = GitignoreBuilder::new("");
    for line in text.trim_start_matches('\u{feff}').lines() {
        let _ = builder.add_line(None, line);
    }
    builder.build().ok().filter(|rules| !rules.is_empty())
}
