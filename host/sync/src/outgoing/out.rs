//! The two forms in which a tree leaves: one archive, or entry by entry.

use super::{SourceEntry, SourceKind};
use crate::archive::{Writer, WriterEntry};
use crate::pipe::{self, ChunkWriter, Outlet};
use std::fs::File;
use std::io;
use tar::EntryType;
use tokio::sync::mpsc;

/// A form. What fails here means that nobody reads any more.
pub(super) trait Out {
    fn entry(&mut self, entry: &WriterEntry<'_>) -> io::Result<()>;
    /// Passes on what one read of a file brings, and shows it.
    fn read_from(&mut self, file: &File, expected: u64) -> io::Result<io::Result<&[u8]>>;
    fn end_file(&mut self, size: u64) -> io::Result<()>;
    fn finish(self, result: Result<(), String>) -> io::Result<()>;
}

impl Out for Writer<ChunkWriter> {
    fn entry(&mut self, entry: &WriterEntry<'_>) -> io::Result<()> {
        Writer::entry(self, entry)
    }

    fn read_from(&mut self, file: &File, expected: u64) -> io::Result<io::Result<&[u8]>> {
        self.inner().read_from(file, expected)
    }

    fn end_file(&mut self, size: u64) -> io::Result<()> {
        self.pad(size)
    }

    fn finish(self, result: Result<(), String>) -> io::Result<()> {
        match result {
            Ok(()) => Writer::finish(self)?.finish(Ok(())),
            failed => self.abandon().finish(failed),
        }
    }
}

/// An entry with the bytes of a file, or nothing after the last.
pub(super) type Item = io::Result<Option<(SourceEntry, Option<Outlet>)>>;

pub(super) struct Entries {
    pub(super) to: mpsc::Sender<Item>,
    pub(super) content: Option<ChunkWriter>,
}

impl Entries {
    fn send(&self, item: Item) -> io::Result<()> {
        self.to.blocking_send(item).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

impl Out for Entries {
    fn entry(&mut self, entry: &WriterEntry<'_>) -> io::Result<()> {
        let kind = match (entry.kind, entry.target) {
            (EntryType::Directory, _) => SourceKind::Directory,
            (EntryType::Symlink, target) => SourceKind::Link(target.unwrap_or(entry.path).into()),
            _ => SourceKind::File(entry.size),
        };
        let content = matches!(kind, SourceKind::File(_)).then(pipe::outward);
        let (writer, outlet) = content.unzip();
        self.content = writer;
        let described = SourceEntry { path: entry.path.into(), kind, mode: entry.mode };
        self.send(Ok(Some((described, outlet))))
    }

    fn read_from(&mut self, file: &File, expected: u64) -> io::Result<io::Result<&[u8]>> {
        match &mut self.content {
            Some(content) => content.read_from(file, expected),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn end_file(&mut self, _: u64) -> io::Result<()> {
        self.content.take().map_or(Ok(()), |content| content.finish(Ok(())))
    }

    fn finish(mut self, result: Result<(), String>) -> io::Result<()> {
        match result {
            Ok(()) => self.send(Ok(None)),
            Err(message) => {
                // Whoever reads the file's bytes is told, and whoever asks for the next entry.
                if let Some(content) = self.content.take() {
                    let _ = content.finish(Err(message.clone()));
                }
                self.send(Err(io::Error::other(message)))
            }
        }
    }
}

/// The bare bytes of one file, without any header.
impl Out for ChunkWriter {
    fn entry(&mut self, _: &WriterEntry<'_>) -> io::Result<()> {
        Ok(())
    }

    fn read_from(&mut self, file: &File, expected: u64) -> io::Result<io::Result<&[u8]>> {
        ChunkWriter::read_from(self, file, expected)
    }

    fn end_file(&mut self, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn finish(self, result: Result<(), String>) -> io::Result<()> {
        ChunkWriter::finish(self, result)
    }
}
