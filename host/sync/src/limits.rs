//! How much of a tree is taken, each figure with its reason and what happens beyond it.

/// Entries of a tree, both ways. A folder beyond this is a mistake more often than a wish (a home
/// directory, a data set), and a hundred thousand entries fit in memory. Beyond it the transfer is refused
/// before anything moves.
pub const ENTRIES: usize = 100_000;

/// Bytes of one name: what Linux and macOS file systems hold. A longer one is refused by name.
pub const NAME_BYTES: usize = 255;

/// Bytes of one path inside the tree, the longest a system call takes. A longer one is refused by name.
pub const PATH_BYTES: usize = 4096;

/// Content bytes of one archive: as much as the most generous provider declares. Beyond it the archive is
/// refused, so that a sandbox cannot fill the disk of the host.
const CONTENT_BYTES: u64 = 10 << 30;

/// Bytes of all paths and link targets of one archive: 320 for each of the entries allowed. Beyond it the
/// archive is refused, because the manifest is kept in memory.
const TEXT_BYTES: usize = 32 << 20;

/// Directories in each other. Removing a tree keeps one handle open for each level, and a process has
/// 1,024 of them by default. A deeper entry is refused, both ways.
pub(crate) const DEPTH: usize = 256;

/// Bytes of the extension records of one archive entry: two paths of full length and room for attributes
/// nobody reads. Beyond it the archive is refused, because the records are kept in memory.
pub(crate) const EXTENSION_BYTES: u64 = 64 << 10;

/// Bytes tolerated behind the end of an archive, all zero: tar pads to its record, at most 512 KiB in
/// practice. Beyond it the archive is refused, so that a stream of zeros ends.
pub(crate) const PADDING_BYTES: u64 = 1 << 20;

/// Bytes of one ignore file. Git's own are a few KiB; the rest of a larger one is not read.
pub(crate) const IGNORE_FILE_BYTES: u64 = 1 << 20;

/// Bytes read or sent at once: large enough that system calls cost nothing, small enough to hold several.
pub(crate) const CHUNK: usize = 256 << 10;

/// Chunks waiting between the disk and the stream: with it a transfer holds 1 MiB, whatever its size.
pub(crate) const CHUNKS_WAITING: usize = 4;

/// A limit of what comes out of a sandbox; it cannot be changed, but what was sent counts on top.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncLimit {
    /// Its name in messages.
    pub name: &'static str,
    /// What it is counted in.
    pub unit: &'static str,
    /// The value in force.
    pub value: u64,
    /// What happens when it is hit.
    pub when_hit: &'static str,
}

/// Every limit of what comes out of a sandbox. There is none on how far content expands, because nothing is unpacked
/// that is compressed, and files stored as sparse are refused.
pub const SYNC_LIMITS: &[SyncLimit] = &[
    limit(
        "tree-entries",
        "entries",
        ENTRIES as u64,
        "all of it is refused; a folder that is not named is not even sent",
    ),
    limit("tree-content-bytes", "bytes", CONTENT_BYTES, "all of it is refused"),
    limit("tree-text-bytes", "bytes", TEXT_BYTES as u64, "all of it is refused"),
    limit("tree-depth", "directories", DEPTH as u64, "all of it is refused, both ways"),
    limit("name-bytes", "bytes", NAME_BYTES as u64, "all of it is refused"),
    limit("path-bytes", "bytes", PATH_BYTES as u64, "all of it is refused, both ways"),
    limit("header-bytes", "bytes", EXTENSION_BYTES, "the archive is refused"),
    limit("padding-bytes", "bytes", PADDING_BYTES, "the archive is refused"),
];

const fn limit(name: &'static str, unit: &'static str, value: u64, when_hit: &'static str) -> SyncLimit {
    SyncLimit { name, unit, value, when_hit }
}

/// What an archive may hold. Anything beyond is a refusal that names the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Entries, with the directories that are only implied.
    pub entries: usize,
    /// Content bytes of all files together.
    pub content_bytes: u64,
    /// Bytes of all paths and link targets together.
    pub text_bytes: usize,
    /// Components of a path.
    pub depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { entries: ENTRIES, content_bytes: CONTENT_BYTES, text_bytes: TEXT_BYTES, depth: DEPTH }
    }
}

impl Limits {
    /// Counts what was sent on top of each figure, so that a tree above the limits that was sent on purpose
    /// can come back.
    #[must_use]
    pub fn beyond(self, sent: &crate::Manifest) -> Self {
        let text: usize =
            sent.iter().map(|(path, entry)| path.as_os_str().len() + entry.target_bytes()).sum();
        Self {
            entries: self.entries.saturating_add(sent.len()),
            content_bytes: self.content_bytes.saturating_add(sent.totals().1),
            text_bytes: self.text_bytes.saturating_add(text),
            depth: self.depth,
        }
    }
}
