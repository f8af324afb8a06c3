//! What is left out of a tree, on the way out and on the way back.

use super::ignores::Ignores;
use crate::exclude::Excludes;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Directories left out at any level: what tools make again from the rest, and most of the bytes of a
/// project.
pub const HEAVY: [&str; 9] =
    ["node_modules", "vendor", "dist", "build", "out", "coverage", ".next", ".turbo", ".cache"];

/// How names begin that belong to a transfer under way. They never cross and are never replaced.
pub const RESERVED: [&str; 2] = [".paperclip-upload", ".leasehold-"];

/// Patterns that leave reserved names out.
pub fn reserved_patterns() -> impl Iterator<Item = &'static str> {
    [".paperclip-upload*", ".leasehold-*"].into_iter()
}

/// Patterns for the way back: what heavy directories hold. Not what is called like them: a file of that name was
/// sent and must come back.
#[must_use]
pub fn coming_back() -> Vec<String> {
    HEAVY.iter().map(|name| format!("{name}/*")).collect()
}

/// Why a path is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeftOut {
    /// Its name is one of transfers under way.
    Reserved,
    /// It is what git keeps.
    Git,
    /// It is a directory that tools make again.
    Heavy,
    /// A pattern matches it.
    Excluded,
    /// An ignore file names it.
    Ignored,
}

impl std::fmt::Display for LeftOut {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str(match self {
            Self::Reserved => "a name of transfers under way",
            Self::Git => "git's own",
            Self::Heavy => "a directory that tools make again",
            Self::Excluded => "excluded by a pattern",
            Self::Ignored => "ignored by .gitignore",
        })
    }
}

/// The rules one walk followed.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    pub(super) heavy: bool,
    pub(super) git: bool,
    pub(super) exclude: Excludes,
    pub(super) ignores: Ignores,
}

impl Rules {
    /// Whether a path is left out. Asks about this path alone: what lies below a directory that is left out
    /// is left out with it.
    #[must_use]
    pub fn leaves_out(&self, path: &Path, is_directory: bool) -> bool {
        self.why(path, is_directory).is_some()
    }

    /// Why a path is left out; none when it is not.
    #[must_use]
    pub fn why(&self, path: &Path, is_directory: bool) -> Option<LeftOut> {
        let name = path.file_name().unwrap_or_default();
        if RESERVED.iter().any(|prefix| name.as_bytes().starts_with(prefix.as_bytes())) {
            Some(LeftOut::Reserved)
        } else if self.git && name.eq_ignore_ascii_case(".git") {
            Some(LeftOut::Git)
        } else if self.heavy && is_directory && HEAVY.iter().any(|heavy| name == *heavy) {
            Some(LeftOut::Heavy)
        } else if self.exclude.matches(path) {
            Some(LeftOut::Excluded)
        } else if self.ignores.ignored(path, is_directory) {
            Some(LeftOut::Ignored)
        } else {
            None
        }
    }

    pub(super) fn add_ignore_file(&mut self, directory: PathBuf, text: &[u8]) {
        self.ignores.add(directory, text);
    }
}
