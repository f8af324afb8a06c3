//! What the tests share: archives made by hand, and a walker that knows nothing of the crate.

#![allow(dead_code, unreachable_pub, reason = "each test takes what it needs")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use leasehold_sync::{Baseline, Limits, ReceiveError, Received, Rule, Tree, WalkOptions, incoming, outgoing};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::io::AsyncReadExt as _;

/// Options that leave nothing out.
pub fn everything() -> WalkOptions {
    let mut options = WalkOptions::default();
    (options.skip_heavy, options.skip_ignored, options.skip_git) = (false, false, false);
    options
}

/// The archive of a folder and what is known of it.
pub async fn send(folder: &Path, options: WalkOptions) -> (Vec<u8>, Arc<Baseline>) {
    let (mut stream, summary) = outgoing(Tree::walk(folder, options).unwrap());
    let mut archive = Vec::new();
    stream.read_to_end(&mut archive).await.unwrap();
    (archive, Arc::new(summary.finish().await.unwrap()))
}

pub async fn receive(
    archive: &[u8],
    beside: &Path,
    known: Option<Arc<Baseline>>,
) -> Result<Received, ReceiveError> {
    incoming(archive, beside, Limits::default(), known).await
}

/// The rule an archive is refused by.
pub fn rule(result: Result<Received, ReceiveError>) -> Rule {
    match result {
        Err(ReceiveError::Refused { rule, .. }) => rule,
        other => panic!("not refused by a rule: {other:?}"),
    }
}

/// Everything below a folder, each path with its kind, mode and content.
pub fn snapshot(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let metadata = path.symlink_metadata().unwrap();
            let mode = metadata.permissions().mode() & 0o7777;
            let text = if metadata.is_dir() {
                waiting.push(path.clone());
                format!("directory {mode:o}")
            } else if metadata.is_symlink() {
                format!("link {:?}", fs::read_link(&path).unwrap())
            } else {
                format!("file {mode:o} {}", blake3::hash(&fs::read(&path).unwrap()))
            };
            found.insert(path.strip_prefix(folder).unwrap().to_owned(), text);
        }
    }
    found
}

/// A snapshot without the modes of directories, which a staging directory does not have.
pub fn contents(folder: &Path) -> BTreeMap<PathBuf, String> {
    let directory = |text: String| if text.starts_with("directory") { "directory".into() } else { text };
    snapshot(folder).into_iter().map(|(path, text)| (path, directory(text))).collect()
}

/// Writes a file with its mode, and the directories above it.
pub fn file(path: impl AsRef<Path>, content: impl AsRef<[u8]>, mode: u32) {
    let path = path.as_ref();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// An archive made by hand, so that it can be wrong.
#[derive(Clone, Default)]
pub struct Raw(pub Vec<u8>);

impl Raw {
    /// One header with the content behind it, whatever the kind.
    pub fn entry(self, kind: u8, path: impl AsRef<[u8]>, target: &str, content: &[u8]) -> Self {
        self.sized(kind, path, target, content, &format!("{:011o}\0", content.len()))
    }

    pub fn sized(
        mut self,
        kind: u8,
        path: impl AsRef<[u8]>,
        target: &str,
        content: &[u8],
        size: &str,
    ) -> Self {
        let mut block = [0_u8; 512];
        let mut put = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, path.as_ref());
        put(100, b"0000644\0");
        put(108, b"0000000\0");
        put(116, b"0000000\0");
        put(124, size.as_bytes());
        put(136, b"00000000000\0");
        put(148, b"        ");
        put(156, &[kind]);
        put(157, target.as_bytes());
        put(257, b"ustar\x0000");
        let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
        block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        self.0.extend_from_slice(&block);
        self.0.extend_from_slice(content);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
        self
    }

    pub fn file(self, path: impl AsRef<[u8]>, content: &str) -> Self {
        self.entry(b'0', path, "", content.as_bytes())
    }

    pub fn directory(self, path: impl AsRef<[u8]>) -> Self {
        self.entry(b'5', path, "", b"")
    }

    pub fn link(self, path: impl AsRef<[u8]>, target: &str) -> Self {
        self.entry(b'2', path, target, b"")
    }

    /// An extended header with these records.
    pub fn extended(self, kind: u8, records: &[(&str, &[u8])]) -> Self {
        let mut text = Vec::new();
        for (key, value) in records {
            let rest = key.len() + value.len() + 3;
            let length = (1..).map(|digits| rest + digits).find(|all| all.to_string().len() + rest == *all);
            text.extend_from_slice(format!("{} {key}=", length.unwrap()).as_bytes());
            text.extend_from_slice(value);
            text.push(b'\n');
        }
        self.entry(kind, "extended", "", &text)
    }

    pub fn end(mut self) -> Vec<u8> {
        self.0.resize(self.0.len() + 1024, 0);
        self.0
    }
}
