//! What is to be moved: operations, each a list of mappings and the commands that follow them.

use std::path::PathBuf;
use std::time::Duration;

/// What a mapping moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MappingKind {
    /// One regular file. It replaces its target as a whole.
    File,
    /// A directory with everything below it. Its target then holds that and nothing else.
    Directory,
}

/// One file or directory and where it goes. Which side is the host's depends on the direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Where it is: absolute.
    pub source: PathBuf,
    /// Where it goes: absolute.
    pub target: PathBuf,
    /// What it is.
    pub kind: MappingKind,
    /// Mode of the target of a file mapping, set before any byte; none keeps the source's.
    pub mode: Option<u32>,
    /// Patterns to leave out of a directory, as GNU tar's `--exclude` means them.
    pub exclude: Vec<String>,
    /// Whether links are replaced by what they point to, as `tar -h` does.
    pub follow_symlinks: bool,
}

impl Mapping {
    /// A mapping that keeps modes and links and leaves nothing out.
    #[must_use]
    pub fn new(kind: MappingKind, source: impl Into<PathBuf>, target: impl Into<PathBuf>) -> Self {
        let (source, target) = (source.into(), target.into());
        Self { source, target, kind, mode: None, exclude: Vec::new(), follow_symlinks: false }
    }
}

/// A command to run in the sandbox after an operation's files are in place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostUpload {
    /// The command line, opaque: the shell gets it byte for byte.
    pub command: String,
    /// Working directory, absolute and under one of the operation's targets.
    pub cwd: Option<String>,
    /// Time it may run; none means the call's own.
    pub timeout: Option<Duration>,
}

/// A group of mappings that is done completely or is an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Opaque and safe to log.
    pub id: String,
    /// The mappings, in order.
    pub mappings: Vec<Mapping>,
    /// Commands to run after them: in order, the first failure ends the operation.
    pub post_upload: Vec<PostUpload>,
}

/// What an operation moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Regular files.
    pub files: u64,
    /// Bytes of their content.
    pub bytes: u64,
}

impl std::ops::AddAssign for Moved {
    fn add_assign(&mut self, more: Self) {
        self.files = self.files.saturating_add(more.files);
        self.bytes = self.bytes.saturating_add(more.bytes);
    }
}
