//! What the host has, as a stream.
//!
//! Memory stays flat: a file is read once, in pieces, and digested on its way. A tree is offered as a POSIX tar
//! archive with relative names, without an entry for the folder itself, or entry by entry; a file as its bare
//! bytes. Whoever does not read to the end gets no record of what was sent.

mod error;
mod file;
mod out;
mod sending;

pub use error::SendError;
pub use file::{FileSource, SentFile};

use crate::archive::{Dialect, Writer};
use crate::manifest::{Baseline, Manifest};
use crate::operation::Moved;
use crate::pipe::{self, Outlet};
use crate::progress::Progress;
use crate::tree::Tree;
use out::{Entries, Item, Out};
use sending::Sending;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use tokio::sync::{mpsc, oneshot};

/// One entry of what is offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceEntry {
    /// Path relative to the tree; empty for a file that is offered alone.
    pub path: PathBuf,
    /// What it is.
    pub kind: SourceKind,
    /// Permission bits.
    pub mode: u32,
}

/// What an entry is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceKind {
    /// A regular file of so many bytes.
    File(u64),
    /// A directory.
    Directory,
    /// A link to this target, as it is written.
    Link(OsString),
}

/// What is known once everything was read.
#[derive(Debug)]
pub struct Summary<T = Baseline> {
    receiver: oneshot::Receiver<Result<T, SendError>>,
    path: PathBuf,
}

impl<T> Summary<T> {
    /// What was sent, or the typed reason why the stream failed.
    ///
    /// # Errors
    /// When something could not be read or changed meanwhile, or not everything was taken.
    pub async fn finish(self) -> Result<T, SendError> {
        let Self { receiver, path } = self;
        receiver.await.unwrap_or(Err(SendError::Dropped { path }))
    }
}

/// A folder that is offered. It can be taken once, in one of its forms.
#[derive(Debug)]
pub struct TreeSource {
    waiting: Option<Waiting>,
    entries: Option<mpsc::Receiver<Item>>,
    totals: Moved,
}

#[derive(Debug)]
struct Waiting {
    tree: Tree,
    progress: Progress,
    done: oneshot::Sender<Result<Baseline, SendError>>,
}

impl TreeSource {
    /// Offers a folder. Its forms want a tokio runtime around them.
    #[must_use]
    pub fn new(tree: Tree, progress: Progress) -> (Self, Summary) {
        let (done, receiver) = oneshot::channel();
        let summary = Summary { receiver, path: tree.path.clone() };
        let (files, bytes) = tree.totals();
        let totals = Moved { files, bytes };
        progress.expect(totals);
        (Self { waiting: Some(Waiting { tree, progress, done }), entries: None, totals }, summary)
    }

    /// What it holds. A folder that holds something else by the time it is read fails to be sent.
    #[must_use]
    pub fn totals(&self) -> Moved {
        self.totals
    }

    /// As one archive. None when the folder was taken before. The work waits while nobody reads.
    pub fn tar(&mut self) -> Option<Outlet> {
        self.archive(Dialect::Pax)
    }

    /// As one archive with long names as GNU tar once wrote them, which small userlands read as well. Times are
    /// whole seconds.
    pub fn tar_for_small_userlands(&mut self) -> Option<Outlet> {
        self.archive(Dialect::Gnu)
    }

    fn archive(&mut self, dialect: Dialect) -> Option<Outlet> {
        let waiting = self.waiting.take()?;
        let (chunks, outlet) = pipe::outward();
        waiting.send(Writer::new(chunks, dialect));
        Some(outlet)
    }

    /// The next entry and, for a file, its bytes, which have to be read to their end; none after the last.
    ///
    /// # Errors
    /// When something cannot be read, or the folder was taken as an archive.
    pub async fn next(&mut self) -> io::Result<Option<(SourceEntry, Option<Outlet>)>> {
        if let Some(waiting) = self.waiting.take() {
            let (to, entries) = mpsc::channel(1);
            waiting.send(Entries { to, content: None });
            self.entries = Some(entries);
        }
        next(&mut self.entries).await
    }
}

async fn next(
    entries: &mut Option<mpsc::Receiver<Item>>,
) -> io::Result<Option<(SourceEntry, Option<Outlet>)>> {
    let Some(receiver) = entries else {
        return Err(io::Error::other("it was taken as a stream before; use one of the two ways"));
    };
    let item = receiver.recv().await.unwrap_or_else(|| Err(io::ErrorKind::UnexpectedEof.into()));
    if matches!(item, Ok(None)) {
        // The end stays the end.
        let (to, ended) = mpsc::channel(1);
        let _ = to.try_send(Ok(None));
        *entries = Some(ended);
    }
    item
}

impl Waiting {
    fn send(self, to: impl Out + Send + 'static) {
        let Self { tree, progress, done } = self;
        tokio::task::spawn_blocking(move || {
            let mut sending = Sending::new(&tree, to, progress);
            let manifest = tree.found.iter().try_fold(Manifest::default(), |mut manifest, found| {
                let entry = sending.entry(found)?;
                manifest.insert(found.path.clone(), entry);
                Ok(manifest)
            });
            let sent = sending.end(manifest);
            // Nobody may be waiting.
            let _ = done.send(sent.map(|manifest| Baseline {
                manifest,
                rules: tree.rules,
                skipped: tree.skipped,
            }));
        });
    }
}

/// Starts to stream a folder as an archive.
#[must_use]
pub fn outgoing(tree: Tree) -> (Outlet, Summary) {
    let (done, receiver) = oneshot::channel();
    let summary = Summary { receiver, path: tree.path.clone() };
    let (chunks, outlet) = pipe::outward();
    Waiting { tree, progress: Progress::default(), done }.send(Writer::new(chunks, Dialect::Pax));
    (outlet, summary)
}
