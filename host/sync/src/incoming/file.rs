//! A place for one file: its bytes arrive beside the target and replace it as a whole.

use super::entries::{Bytes, now};
use super::extract;
use super::sink::{Arriving, SinkError, said};
use super::staging::{self, StagedFile};
use super::{PlaceError, ReceiveError};
use crate::confine::{made_directory, open_root, split};
use crate::manifest::MODE_MASK;
use crate::operation::Moved;
use crate::pipe::{self, Inlet};
use crate::progress::Progress;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use tokio::sync::oneshot;

/// Mode of a file when nobody says one.
const MODE: u32 = 0o644;

/// A file that arrived whole and is not yet in place. Dropping it removes it.
#[derive(Debug)]
pub struct ReceivedFile {
    staged: StagedFile,
    target: PathBuf,
    bytes: u64,
    blake3: blake3::Hash,
}

impl ReceivedFile {
    /// What arrived.
    #[must_use]
    pub fn moved(&self) -> Moved {
        Moved { files: 1, bytes: self.bytes }
    }

    /// Digest of its content.
    #[must_use]
    pub fn blake3(&self) -> blake3::Hash {
        self.blake3
    }

    /// Puts it in place of what is there, in one step. Blocks on the disk.
    ///
    /// # Errors
    /// When it cannot be put there; what was there is then as it was.
    pub fn place(self) -> Result<Moved, PlaceError> {
        let moved = self.moved();
        let Self { staged, target, .. } = self;
        staged.keep().map_err(|source| PlaceError::Place { path: target, source })?;
        Ok(moved)
    }
}

/// A place for one file.
#[derive(Debug)]
pub struct FileSink {
    fresh: Option<Fresh>,
    started: Option<(Inlet, oneshot::Receiver<Result<Moved, String>>)>,
    taken: Moved,
}

#[derive(Debug)]
struct Fresh {
    folder: PathBuf,
    path: PathBuf,
    mode: u32,
    most: u64,
    progress: Progress,
    done: oneshot::Sender<Result<ReceivedFile, ReceiveError>>,
}

impl FileSink {
    /// A sink for the file at `path` below `folder`. Directories on the way are made; links on the way are
    /// refused. The file gets its mode before any byte, and at most so many bytes are taken.
    #[must_use]
    pub fn new(
        folder: &Path,
        path: &Path,
        mode: Option<u32>,
        most: u64,
        progress: Progress,
    ) -> (Self, Arriving<ReceivedFile>) {
        let (done, arriving) = oneshot::channel();
        let mode = mode.unwrap_or(MODE) & MODE_MASK;
        let fresh = Fresh { folder: folder.into(), path: path.into(), mode, most, progress, done };
        (Self { fresh: Some(fresh), started: None, taken: Moved::default() }, Arriving(arriving))
    }

    /// Takes the bare bytes.
    ///
    /// # Errors
    /// When the sink was used before.
    pub fn bare(&mut self) -> Result<Inlet, SinkError> {
        let fresh = self.fresh.take().ok_or(SinkError::Used)?;
        let (inlet, reader) = pipe::inward();
        let (say, verdict) = oneshot::channel();
        self.started = Some((inlet.again(), verdict));
        tokio::task::spawn_blocking(move || {
            let Fresh { folder, path, mode, most, progress, done } = fresh;
            let received = receive(&folder, &path, mode, Bytes::unannounced(reader, most), &progress);
            // Whoever waits for either may be gone.
            let _ = say.send(received.as_ref().map(ReceivedFile::moved).map_err(ReceiveError::for_sandbox));
            let _ = done.send(received);
        });
        Ok(inlet)
    }

    /// Says that everything was written, and waits until it is on the disk.
    ///
    /// # Errors
    /// When it is refused. Without a call of this, all of it is thrown away.
    pub async fn finish(&mut self) -> Result<(), SinkError> {
        let (end, verdict) = self.started.take().ok_or(SinkError::Used)?;
        let _ = end.finish().await;
        self.taken = said(verdict).await?;
        Ok(())
    }

    /// What it took; known once it was finished.
    #[must_use]
    pub fn totals(&self) -> Moved {
        self.taken
    }
}

fn receive(
    folder: &Path,
    path: &Path,
    mode: u32,
    mut from: Bytes,
    progress: &Progress,
) -> Result<ReceivedFile, ReceiveError> {
    let target = folder.join(path);
    let (parent, name) = split(path);
    let staged = open_root(folder)
        .and_then(|root| made_directory(&root, parent))
        .and_then(|directory| StagedFile::create(directory, name, mode));
    let (staged, file) = staged.map_err(|source| staging::cannot(&target, source))?;
    let blake3 = extract::write(&mut File::from(file), now(), &mut from, progress)
        .map_err(|fault| fault.at(target.clone()))?;
    Ok(ReceivedFile { staged, target, bytes: from.came(), blake3 })
}

/// What the system says of a path that is no place for a file.
pub(super) fn no_place() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "the path ends in no name")
}
