//! The record of a sync, on the disk of the host.

use super::listing::Listed;
use super::{Listing, Stamp};
use crate::manifest::{Entry, Kind, Manifest, Timestamp};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

/// Begins every record of this form; one of another form is no record.
const MAGIC: &[u8] = b"leasehold sync record 1\n";

/// What both sides held after a sync.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SyncRecord {
    /// What of the host was sent, and by which rules: another folder or other rules make it worthless.
    pub about: Vec<u8>,
    /// What was sent.
    pub manifest: Manifest,
    /// The host's stamps.
    pub host: BTreeMap<PathBuf, Stamp>,
    /// The sandbox's stamps.
    pub sandbox: Listing,
}

impl SyncRecord {
    /// The record as bytes, with a digest behind it.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut to = MAGIC.to_vec();
        text(&mut to, &self.about);
        number(&mut to, self.manifest.len() as u64);
        for (path, entry) in self.manifest.iter() {
            text(&mut to, path.as_os_str().as_bytes());
            number(&mut to, u64::from(entry.mode));
            to.extend_from_slice(&entry.mtime.seconds.to_le_bytes());
            number(&mut to, u64::from(entry.mtime.nanoseconds));
            match &entry.kind {
                Kind::Directory => to.push(b'd'),
                Kind::File { size, blake3 } => {
                    to.push(b'f');
                    number(&mut to, *size);
                    to.extend_from_slice(blake3.as_bytes());
                }
                Kind::Link { target } => {
                    to.push(b'l');
                    text(&mut to, target.as_bytes());
                }
            }
        }
        number(&mut to, self.host.len() as u64);
        for (path, stamp) in &self.host {
            text(&mut to, path.as_os_str().as_bytes());
            put_stamp(&mut to, stamp);
        }
        number(&mut to, self.sandbox.0.len() as u64);
        for (path, listed) in &self.sandbox.0 {
            text(&mut to, path.as_os_str().as_bytes());
            to.push(listed.kind);
            put_stamp(&mut to, &listed.stamp);
        }
        let digest = blake3::hash(&to);
        to.extend_from_slice(digest.as_bytes());
        to
    }

    /// Reads a record. `None` when it is damaged, cut short or of another form: then all is sent.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (body, digest) = bytes.split_at_checked(bytes.len().checked_sub(blake3::OUT_LEN)?)?;
        if blake3::hash(body).as_bytes() != digest {
            return None;
        }
        let mut from = From(body.strip_prefix(MAGIC)?);
        let mut record = Self { about: from.text()?.to_vec(), ..Self::default() };
        for _ in 0..from.number()? {
            let path = from.path()?;
            let mode = u32::try_from(from.number()?).ok()?;
            let seconds = i64::from_le_bytes(from.array()?);
            let mtime = Timestamp { seconds, nanoseconds: u32::try_from(from.number()?).ok()? };
            let kind = match from.array::<1>()? {
                [b'd'] => Kind::Directory,
                [b'f'] => {
                    Kind::File { size: from.number()?, blake3: blake3::Hash::from_bytes(from.array()?) }
                }
                [b'l'] => Kind::Link { target: OsString::from_vec(from.text()?.to_vec()) },
                _ => return None,
            };
            record.manifest.insert(path, Entry { kind, mode, mtime });
        }
        for _ in 0..from.number()? {
            let path = from.path()?;
            record.host.insert(path, from.stamp()?);
        }
        for _ in 0..from.number()? {
            let path = from.path()?;
            let [kind] = from.array()?;
            record.sandbox.0.insert(path, Listed::recorded(kind, from.stamp()?));
        }
        from.0.is_empty().then_some(record)
    }
}

fn number(to: &mut Vec<u8>, number: u64) {
    to.extend_from_slice(&number.to_le_bytes());
}

fn text(to: &mut Vec<u8>, text: &[u8]) {
    number(to, text.len() as u64);
    to.extend_from_slice(text);
}

fn put_stamp(to: &mut Vec<u8>, stamp: &Stamp) {
    number(to, stamp.inode);
    number(to, u64::from(stamp.mode));
    number(to, stamp.size);
    to.extend_from_slice(&stamp.changed.to_le_bytes());
}

struct From<'a>(&'a [u8]);

impl<'a> From<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn number(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let length = self.number()?;
        self.take(usize::try_from(length).ok()?)
    }

    fn path(&mut self) -> Option<PathBuf> {
        self.text().map(|text| OsString::from_vec(text.to_vec()).into())
    }

    fn stamp(&mut self) -> Option<Stamp> {
        Some(Stamp {
            inode: self.number()?,
            mode: u32::try_from(self.number()?).ok()?,
            size: self.number()?,
            changed: i128::from_le_bytes(self.array()?),
        })
    }
}
