//! A tree that comes entry by entry.

use super::ReceiveError;
use super::extract::{Content, Extraction};
use super::fault::Fault;
use crate::archive::{ArchiveError, Member, MemberKind};
use crate::manifest::{Manifest, Timestamp};
use crate::outgoing::SourceKind;
use crate::pipe::ChunkReader;
use crate::rule::Rule;
use std::io::BufRead as _;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;
use std::time::SystemTime;
use tokio::sync::mpsc;

/// One entry that a sandbox announces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SinkEntry {
    /// Path relative to the tree; empty for the tree itself.
    pub path: PathBuf,
    /// What it is.
    pub kind: SourceKind,
    /// Permission bits.
    pub mode: u32,
}

/// An entry with the bytes of a file, or nothing after the last.
pub(super) type Item = Option<(SinkEntry, Option<ChunkReader>)>;

pub(super) fn entries(
    mut from: mpsc::Receiver<Item>,
    mut extraction: Extraction<'_>,
) -> Result<Manifest, ReceiveError> {
    loop {
        match from.blocking_recv() {
            None => return Err(ReceiveError::Cancelled),
            Some(None) => return extraction.finish(),
            Some(Some((entry, content))) => {
                let path = entry.path.clone();
                extraction.member(member(entry), &mut Bytes::new(content)).map_err(|fault| fault.at(path))?;
            }
        }
    }
}

fn member(entry: SinkEntry) -> Member {
    let (kind, size) = match entry.kind {
        SourceKind::Directory => (MemberKind::Directory, 0),
        SourceKind::File(size) => (MemberKind::File, size),
        SourceKind::Link(target) => (MemberKind::Link(target.into_vec()), 0),
    };
    Member { path: entry.path.into_os_string().into_vec(), kind, mode: entry.mode, mtime: now(), size }
}

/// Entries carry no time, so a file is as old as its arrival.
pub(super) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp {
        seconds: i64::try_from(since.as_secs()).unwrap_or_default(),
        nanoseconds: since.subsec_nanos(),
    }
}

/// Bytes of one file, of which neither more nor fewer may come than were announced.
pub(super) struct Bytes {
    from: Option<ChunkReader>,
    announced: Option<u64>,
    most: u64,
    came: u64,
}

impl Bytes {
    pub(super) fn new(from: Option<ChunkReader>) -> Self {
        Self { from, announced: None, most: u64::MAX, came: 0 }
    }

    /// Bytes whose number nobody announced, up to a limit.
    pub(super) fn unannounced(from: ChunkReader, most: u64) -> Self {
        Self { from: Some(from), announced: None, most, came: 0 }
    }

    pub(super) fn came(&self) -> u64 {
        self.came
    }
}

impl Content for Bytes {
    fn announce(&mut self, size: u64) {
        self.announced = Some(size);
    }

    fn content(&mut self) -> Result<&[u8], Fault> {
        let Some(from) = &mut self.from else { return Ok(&[]) };
        let bytes = from.fill_buf().map_err(|error| Fault::Archive(ArchiveError::Stream(error)))?;
        let all = self.came + bytes.len() as u64;
        if all > self.most {
            return Err(Rule::TooManyBytes(self.most).into());
        }
        match self.announced {
            Some(size) if all > size || (bytes.is_empty() && all < size) => Err(Rule::Size(size).into()),
            _ => Ok(bytes),
        }
    }

    fn consume(&mut self, length: usize) {
        if let Some(from) = &mut self.from {
            from.consume(length);
            self.came += length as u64;
        }
    }
}
