//! One entry's header, put together from its parts.

use super::extension::{self, decimal};
use super::number::number;
use crate::manifest::Timestamp;
use crate::rule::Rule;
use tar::{EntryType, Header};

/// What a full size field of a plain header says when the size is in the extension.
const FULL: u64 = (1 << 33) - 1;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MemberKind {
    Directory,
    File,
    /// A symbolic link and its raw target.
    Link(Vec<u8>),
}

/// One entry's header, its path still as it came.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) path: Vec<u8>,
    pub(crate) kind: MemberKind,
    pub(crate) mode: u32,
    pub(crate) mtime: Timestamp,
    pub(crate) size: u64,
}

/// What extension headers said about the entry after them.
#[derive(Default)]
pub(super) struct Extended {
    pub(super) path: Option<Vec<u8>>,
    target: Option<Vec<u8>>,
    size: Option<u64>,
    mtime: Option<Timestamp>,
    records: bool,
}

impl Extended {
    pub(super) fn is_any(&self) -> bool {
        self.records || self.path.is_some() || self.target.is_some()
    }

    pub(super) fn take(&mut self, kind: EntryType, records: &[u8]) -> Result<(), Rule> {
        let text = || Some(records.strip_suffix(b"\0").unwrap_or(records).to_vec());
        match kind {
            EntryType::GNULongName => set(&mut self.path, text(), "path"),
            EntryType::GNULongLink => set(&mut self.target, text(), "link target"),
            EntryType::XGlobalHeader => each(records, |key, _| match key {
                b"path" => Err(Rule::Global("path")),
                b"linkpath" => Err(Rule::Global("link target")),
                b"size" => Err(Rule::Global("size")),
                _ => Ok(()),
            }),
            _ if self.records => Err(Rule::Disagreement("extended header")),
            _ => {
                self.records = true;
                each(records, |key, value| self.record(key, value))
            }
        }
    }

    fn record(&mut self, key: &[u8], value: &[u8]) -> Result<(), Rule> {
        match key {
            b"path" => set(&mut self.path, Some(value.to_vec()), "path"),
            b"linkpath" => set(&mut self.target, Some(value.to_vec()), "link target"),
            b"size" => {
                let size = decimal(value).ok_or(Rule::Field("size"))?;
                set(&mut self.size, Some(size), "size")
            }
            b"mtime" => {
                let time = extension::read_time(value).ok_or(Rule::Field("time"))?;
                set(&mut self.mtime, Some(time), "time")
            }
            _ if key.starts_with(b"GNU.sparse.") => Err(Rule::Sparse),
            // Owners, access times and attributes of the sandbox mean nothing here.
            _ => Ok(()),
        }
    }

    pub(super) fn member(self, header: &Header, plain_size: u64) -> Result<Member, Rule> {
        let target =
            || self.target.clone().or_else(|| header.link_name_bytes().map(|name| name.into_owned()));
        let kind = match header.entry_type() {
            EntryType::Regular | EntryType::Continuous => MemberKind::File,
            EntryType::Directory => MemberKind::Directory,
            EntryType::Symlink => MemberKind::Link(target().unwrap_or_default()),
            EntryType::Link => return Err(Rule::HardLink),
            EntryType::Char | EntryType::Block => return Err(Rule::Device),
            EntryType::Fifo => return Err(Rule::Pipe),
            EntryType::GNUSparse => return Err(Rule::Sparse),
            other => return Err(Rule::Kind(other.as_byte())),
        };
        // A size that the plain field has no room for is in the extension, and the field then holds nothing or its
        // maximum. Anywhere else two sizes are a way to hide entries from one of two readers.
        let size = self.size.unwrap_or(plain_size);
        if size != plain_size && !(size > FULL && matches!(plain_size, 0 | FULL)) {
            return Err(Rule::Disagreement("size"));
        }
        if size != 0 && kind != MemberKind::File {
            return Err(Rule::Content);
        }
        let mode = number(&header.as_old().mode).and_then(|mode| u32::try_from(mode).ok());
        let seconds = number(&header.as_old().mtime).and_then(|seconds| i64::try_from(seconds).ok());
        let plain_time = seconds.map(|seconds| Timestamp { seconds, nanoseconds: 0 });
        Ok(Member {
            path: self.path.unwrap_or_else(|| header.path_bytes().into_owned()),
            kind,
            mode: mode.ok_or(Rule::Field("mode"))?,
            mtime: self.mtime.or(plain_time).ok_or(Rule::Field("time"))?,
            size,
        })
    }
}

fn set<T>(place: &mut Option<T>, value: Option<T>, what: &'static str) -> Result<(), Rule> {
    if place.is_some() {
        return Err(Rule::Disagreement(what));
    }
    *place = value;
    Ok(())
}

fn each(mut records: &[u8], mut with: impl FnMut(&[u8], &[u8]) -> Result<(), Rule>) -> Result<(), Rule> {
    while !records.is_empty() {
        let (key, value) = extension::pop(&mut records).ok_or(Rule::Field("extended header"))?;
        with(key, value)?;
    }
    Ok(())
}
