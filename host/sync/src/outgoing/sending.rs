//! The thread that reads the folder.

use super::SendError;
use crate::archive::{Writer, WriterEntry};
use crate::confine::{became_other, open_directory, open_file, split};
use crate::limits::CHUNK;
use crate::manifest::{Entry, Kind, MODE_MASK, Manifest, Timestamp};
use crate::pipe::ChunkWriter;
use crate::tree::{Found, FoundKind};
use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use tar::EntryType;

pub(super) struct Sending {
    folder: PathBuf,
    root: OwnedFd,
    /// The directory last opened: entries of one directory follow each other.
    parent: Option<(PathBuf, OwnedFd)>,
    archive: Writer<ChunkWriter>,
    piece: Vec<u8>,
}

impl Sending {
    pub(super) fn new(folder: PathBuf, root: OwnedFd, to: ChunkWriter) -> Self {
        Self { folder, root, parent: None, archive: Writer::new(to), piece: vec![0; CHUNK] }
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
                self.put(|archive| archive.entry(&header))?;
                Kind::Directory
            }
            FoundKind::Link => {
                let target = self.target(&found.path)?;
                let kind = EntryType::Symlink;
                self.put(|archive| {
                    archive.entry(&WriterEntry { kind, target: Some(Path::new(&target)), ..header })
                })?;
                Kind::Link { target }
            }
            FoundKind::File => return self.file(found),
        };
        Ok(Entry { kind, mode: found.mode, mtime: found.mtime })
    }

    fn file(&mut self, found: &Found) -> Result<Entry, SendError> {
        let path = &found.path;
        let mut file = self.open(path)?;
        let before = file.metadata().map_err(|source| self.unreadable(path, source))?;
        let (mode, mtime, size) = (before.mode() & MODE_MASK, mtime(&before), before.len());
        let kind = EntryType::Regular;
        self.put(|archive| archive.entry(&WriterEntry { path, kind, mode, mtime, size, target: None }))?;
        let mut digest = blake3::Hasher::new();
        let mut left = size;
        loop {
            let length = file.read(&mut self.piece).map_err(|source| self.unreadable(path, source))?;
            // One read beyond the size shows growth.
            if length as u64 > left || (length == 0 && left > 0) {
                return Err(self.changed(path));
            }
            if length == 0 {
                break;
            }
            left -= length as u64;
            let bytes = self.piece.get(..length).unwrap_or_default();
            digest.update(bytes);
            self.archive.write_all(bytes).map_err(|_| dropped(&self.folder))?;
        }
        self.put(|archive| archive.pad(size))?;
        let after = file.metadata().map_err(|source| self.unreadable(path, source))?;
        if (after.len(), after.mtime(), after.mtime_nsec()) != (size, before.mtime(), before.mtime_nsec()) {
            return Err(self.changed(path));
        }
        Ok(Entry { kind: Kind::File { size, blake3: digest.finalize() }, mode, mtime })
    }

    fn open(&mut self, path: &Path) -> Result<File, SendError> {
        self.at(path, |parent, name| open_file(parent, name))
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
            let opened =
                open_directory(&self.root, parent).map_err(|source| self.unreadable(path, source))?;
            self.parent = Some((parent.to_owned(), opened));
        }
        let handle = self.parent.as_ref().map_or(&self.root, |(_, handle)| handle);
        with(handle, name).map_err(|source| self.unreadable(path, source))
    }

    fn put(
        &mut self,
        with: impl FnOnce(&mut Writer<ChunkWriter>) -> io::Result<()>,
    ) -> Result<(), SendError> {
        with(&mut self.archive).map_err(|_| dropped(&self.folder))
    }

    /// Ends the archive, or the stream with the error.
    pub(super) fn end(self, result: Result<Manifest, SendError>) -> Result<Manifest, SendError> {
        let folder = self.folder;
        let ended = match &result {
            Ok(_) => self.archive.finish().and_then(|chunks| chunks.finish(Ok(()))),
            Err(error) => self.archive.abandon().finish(Err(error.to_string())),
        };
        match (result, ended) {
            (Ok(_), Err(_)) => Err(dropped(&folder)),
            (result, _) => result,
        }
    }

    fn changed(&self, path: &Path) -> SendError {
        SendError::Changed { path: self.folder.join(path) }
    }

    fn unreadable(&self, path: &Path, source: io::Error) -> SendError {
        if became_other(&source) {
            self.changed(path)
        } else {
            SendError::Read { path: self.folder.join(path), source }
        }
    }
}

fn dropped(folder: &Path) -> SendError {
    SendError::Dropped { path: folder.into() }
}

fn mtime(metadata: &Metadata) -> Timestamp {
    Timestamp {
        seconds: metadata.mtime(),
        nanoseconds: u32::try_from(metadata.mtime_nsec()).unwrap_or_default(),
    }
}
