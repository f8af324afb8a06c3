//! One file that is offered.

use super::out::{Entries, Item, Out};
use super::sending::{self, Read};
use super::{SendError, SourceEntry, Summary, next};
use crate::confine::{open_directory, open_file, open_followed_file, open_root, split};
use crate::operation::Moved;
use crate::pipe::{self, Outlet};
use crate::progress::Progress;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use tokio::sync::{mpsc, oneshot};

/// A file that was read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentFile {
    /// Bytes of its content.
    pub bytes: u64,
    /// Digest of its content.
    pub blake3: blake3::Hash,
    /// Its permission bits.
    pub mode: u32,
}

/// A file that is offered. It can be taken once.
#[derive(Debug)]
pub struct FileSource {
    waiting: Option<Waiting>,
    entries: Option<mpsc::Receiver<Item>>,
    bytes: u64,
    mode: u32,
}

#[derive(Debug)]
struct Waiting {
    path: PathBuf,
    file: File,
    mode: Option<u32>,
    progress: Progress,
    done: oneshot::Sender<Result<SentFile, SendError>>,
}

impl FileSource {
    /// Opens a regular file below a folder, the folder's own path followed and nothing below it unless links are
    /// to be followed. Blocks on the disk.
    ///
    /// # Errors
    /// When there is no such file, or it cannot be read.
    pub fn open(
        folder: &Path,
        path: &Path,
        mode: Option<u32>,
        follow: bool,
        progress: Progress,
    ) -> Result<(Self, Summary<SentFile>), SendError> {
        let whole = folder.join(path);
        let (parent, name) = split(path);
        let opened = open_root(folder).and_then(|root| match follow {
            true => open_followed_file(open_root(&folder.join(parent))?, name),
            false => open_file(open_directory(&root, parent)?, name),
        });
        let opened = opened.and_then(|file| Ok((file.metadata()?, file)));
        let (metadata, file) = opened.map_err(|source| SendError::Read { path: whole.clone(), source })?;
        let (bytes, own_mode) = (metadata.len(), sending::mode(&metadata));
        progress.expect(Moved { files: 1, bytes });
        let (done, receiver) = oneshot::channel();
        let waiting = Waiting { path: whole.clone(), file, mode, progress, done };
        let source = Self { waiting: Some(waiting), entries: None, bytes, mode: mode.unwrap_or(own_mode) };
        Ok((source, Summary { receiver, path: whole }))
    }

    /// Its size when it was opened, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What it holds, as a tree says it.
    #[must_use]
    pub fn totals(&self) -> Moved {
        Moved { files: 1, bytes: self.bytes }
    }

    /// The mode of its target: what was asked for, else its own.
    #[must_use]
    pub fn mode(&self) -> u32 {
        self.mode
    }

    /// Its bare bytes. None when it was taken before.
    pub fn bare(&mut self) -> Option<Outlet> {
        let (chunks, outlet) = pipe::outward();
        self.waiting.take()?.send(chunks);
        Some(outlet)
    }

    /// The file as the only entry, with an empty path; none after it.
    ///
    /// # Errors
    /// When it cannot be read, or was taken as bare bytes.
    pub async fn next(&mut self) -> io::Result<Option<(SourceEntry, Option<Outlet>)>> {
        if let Some(waiting) = self.waiting.take() {
            let (to, entries) = mpsc::channel(1);
            waiting.send(Entries { to, content: None });
            self.entries = Some(entries);
        }
        next(&mut self.entries).await
    }
}

impl Waiting {
    fn send(self, mut to: impl Out + Send + 'static) {
        let Self { path, file, mode, progress, done } = self;
        tokio::task::spawn_blocking(move || {
            let read = sending::file(&file, Path::new(""), mode, &mut to, &progress);
            let result = read.map_err(|fault| match fault {
                Read::Unreadable(source) => SendError::Read { path: path.clone(), source },
                Read::Changed => SendError::Changed { path: path.clone() },
                Read::Dropped => SendError::Dropped { path: path.clone() },
            });
            let ended = to.finish(result.as_ref().map(drop).map_err(|_| sending::UNREADABLE.into()));
            let result = match ended {
                Err(_) if result.is_ok() => Err(SendError::Dropped { path }),
                _ => result,
            };
            // Nobody may be waiting.
            let _ = done.send(result.map(|sent| SentFile {
                bytes: sent.size,
                blake3: sent.blake3,
                mode: sent.mode,
            }));
        });
    }
}
