//! The thread that reads the folder.

use super::SendError;
use super::out::Out;
use crate::archive::WriterEntry;
use crate::confine::{became_other, split};
use crate::manifest::{Entry, Kind, MODE_MASK, Manifest, Timestamp};
use crate::progress::Progress;
use crate::tree::{Found, FoundKind, Tree};
use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use tar::EntryType;

/// What the sandbox is told, which must not learn a path of the host.
pub(super) const UNREADABLE: &str = "the host could not read all of it";

pub(super) struct Sending<'a, O> {
    tree: &'a Tree,
    /// The directory last opened: entries of one directory follow each other.
    parent: Option<(PathBuf, OwnedFd)>,
    to: O,
    progress: Progress,
}

impl<'a, O: Out> Sending<'a, O> {
    pub(super) fn new(tree: &'a Tree, to: O, progress: Progress) -> Self {
        Self { tree, parent: None, to, progress }
    }

    pub(super) fn entry(&mut self, found: &Found) -> Result<Entry, SendError> {
        let header = WriterEntry {
            path: &found.path,
            kind: EntryType::Directory,
            mode: found.mode,
            mtime: found.mtime,
            size: 0,
            target: None,
        };
        let kind = match found.kind {
            FoundKind::Directory => {
                self.put(&header)?;
                Kind::Directory
            }
            FoundKind::Link => {
                let target = self.target(&found.path)?;
                let kind = EntryType::Symlink;
                self.put(&WriterEntry { kind, target: Some(Path::new(&target)), ..header })?;
                Kind::Link { target }
            }
            FoundKind::File => return self.file(&found.path),
        };
        Ok(Entry { kind, mode: found.mode, mtime: found.mtime })
    }

    fn file(&mut self, path: &Path) -> Result<Entry, SendError> {
        let tree = self.tree;
        let opened = self.at(path, |parent, name| tree.open_file(parent, name))?;
        let sent = file(&opened, path, None, &mut self.to, &self.progress).map_err(|fault| match fault {
            Read::Unreadable(source) => self.unreadable(path, source),
            Read::Changed => self.changed(path),
            Read::Dropped => dropped(&self.tree.path),
        })?;
        let SentBytes { size, blake3, mode, mtime } = sent;
        Ok(Entry { kind: Kind::File { size, blake3 }, mode, mtime })
    }

    fn target(&mut self, path: &Path) -> Result<OsString, SendError> {
        let target =
            self.at(path, |parent, name| Ok(rustix::fs::readlinkat(parent, name, Vec::new())?.into_bytes()))?;
        Ok(OsString::from_vec(target))
    }

    fn at<T>(
        &mut self,
        path: &Path,
        with: impl FnOnce(&OwnedFd, &Path) -> io::Result<T>,
    ) -> Result<T, SendError> {
        let (parent, name) = split(path);
        if self.parent.as_ref().is_none_or(|(open, _)| open != parent) {
            let opened = self.tree.open_directory(parent).map_err(|source| self.unreadable(path, source))?;
            self.parent = Some((parent.to_owned(), opened));
        }
        let handle = self.parent.as_ref().map_or(&self.tree.root, |(_, handle)| handle);
        with(handle, name).map_err(|source| self.unreadable(path, source))
    }

    fn put(&mut self, entry: &WriterEntry<'_>) -> Result<(), SendError> {
        self.to.entry(entry).map_err(|_| dropped(&self.tree.path))
    }

    /// Announces the end, or the error that ended the stream.
    pub(super) fn end(self, result: Result<Manifest, SendError>) -> Result<Manifest, SendError> {
        let ended = self.to.finish(result.as_ref().map(drop).map_err(|_| UNREADABLE.into()));
        match (result, ended) {
            (Ok(_), Err(_)) => Err(dropped(&self.tree.path)),
            (result, _) => result,
        }
    }

    fn changed(&self, path: &Path) -> SendError {
        SendError::Changed { path: self.tree.path.join(path) }
    }

    fn unreadable(&self, path: &Path, source: io::Error) -> SendError {
        if became_other(&source) {
            self.changed(path)
        } else {
            SendError::Read { path: self.tree.path.join(path), source }
        }
    }
}

/// A file that was read whole.
pub(super) struct SentBytes {
    pub(super) size: u64,
    pub(super) blake3: blake3::Hash,
    pub(super) mode: u32,
    mtime: Timestamp,
}

/// What may go wrong while one file is read.
pub(super) enum Read {
    Unreadable(io::Error),
    Changed,
    Dropped,
}

/// Passes on one file: its header, then its bytes, each read once.
pub(super) fn file(
    file: &File,
    path: &Path,
    mode_wanted: Option<u32>,
    to: &mut impl Out,
    progress: &Progress,
) -> Result<SentBytes, Read> {
    let gone = |_| Read::Dropped;
    let before = file.metadata().map_err(Read::Unreadable)?;
    let (mode, mtime, size) = (mode_wanted.unwrap_or_else(|| mode(&before)), mtime(&before), before.len());
    let kind = EntryType::Regular;
    to.entry(&WriterEntry { path, kind, mode, mtime, size, target: None }).map_err(gone)?;
    let mut digest = blake3::Hasher::new();
    let mut left = size;
    while left > 0 {
        let bytes = to.read_from(file, left).map_err(gone)?.map_err(Read::Unreadable)?;
        digest.update(bytes);
        progress.bytes(bytes.len() as u64);
        left = left.checked_sub(bytes.len() as u64).filter(|_| !bytes.is_empty()).ok_or(Read::Changed)?;
    }
    to.end_file(size).map_err(gone)?;
    // Growth shows here as well: whoever writes changes the size or the time.
    let after = file.metadata().map_err(Read::Unreadable)?;
    let state = |metadata: &Metadata| (metadata.len(), metadata.mtime(), metadata.mtime_nsec());
    if state(&after) != state(&before) {
        return Err(Read::Changed);
    }
    progress.file();
    Ok(SentBytes { size, blake3: digest.finalize(), mode, mtime })
}

fn dropped(folder: &Path) -> SendError {
    SendError::Dropped { path: folder.into() }
}

pub(super) fn mode(metadata: &Metadata) -> u32 {
    metadata.mode() & MODE_MASK
}

fn mtime(metadata: &Metadata) -> Timestamp {
    Timestamp {
        seconds: metadata.mtime(),
        nanoseconds: u32::try_from(metadata.mtime_nsec()).unwrap_or_default(),
    }
}
