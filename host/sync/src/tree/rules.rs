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
        let name = path.file_name().unwrap_or_default();
        RESERVED.iter().any(|prefix| name.as_bytes().starts_with(prefix.as_bytes()))
            || (self.git && name.eq_ignore_ascii_case(".git"))
            || (self.heavy && is_directory && HEAVY.iter().any(|heavy| name == *heavy))
            || self.exclude.matches(path)
            || self.ignores.ignored(path, is_directory)
    }

    pub(super) fn add_ignore_file(&mut self, directory: PathBuf, text: &[u8]) {
        self.ignores.add(directory, text);
    }
}
