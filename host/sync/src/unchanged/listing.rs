//! What a sandbox holds, as its own `find` lists it.

use super::Stamp;
use crate::manifest::{Entry, Kind, Manifest};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

/// Lists the working directory for [`Listing::parse`]. Needs GNU find.
pub const LIST: &str = r"find . -mindepth 1 -printf '%y %m %s %C@ %i %T@ %p\0%l\0'";

/// Every path of a sandbox's directory with its kind and its stamp.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing(pub(crate) BTreeMap<PathBuf, Listed>);

/// One entry of a sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    /// As `find` calls it: `d`, `f`, `l` and others.
    pub(crate) kind: u8,
    pub(crate) stamp: Stamp,
    mtime: i128,
    target: OsString,
}

impl Listed {
    /// As a record has it: for comparison with a later listing.
    pub(super) fn recorded(kind: u8, stamp: Stamp) -> Self {
        Self { kind, stamp, mtime: 0, target: OsString::new() }
    }

    /// Whether it is what was sent just now. Somebody in the sandbox may have been quicker than the listing.
    fn is(&self, sent: &Entry) -> bool {
        match &sent.kind {
            Kind::Directory => self.kind == b'd' && self.stamp.mode == sent.mode,
            Kind::Link { target } => self.kind == b'l' && self.target == *target,
            Kind::File { size, .. } => {
                let seconds = i128::from(sent.mtime.seconds) * 1_000_000_000;
                let time = seconds + i128::from(sent.mtime.nanoseconds);
                // Some ways carry whole seconds only.
                let same_time = self.mtime == time || self.mtime == seconds;
                self.kind == b'f' && self.stamp.mode == sent.mode && self.stamp.size == *size && same_time
            }
        }
    }
}

impl Listing {
    /// Reads a listing. `None` when it is none.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let mut all = BTreeMap::new();
        if !text.is_empty() && text.last() != Some(&0) {
            return None;
        }
        let mut texts = text.split(|byte| *byte == 0);
        while let (Some(line), Some(target)) = (texts.next(), texts.next()) {
            let mut fields = line.splitn(7, |byte| *byte == b' ');
            let kind = *fields.next()?.first()?;
            let mut number = || std::str::from_utf8(fields.next()?).ok();
            let mode = u32::from_str_radix(number()?, 8).ok()?;
            let size = number()?.parse().ok()?;
            let changed = nanoseconds(number()?)?;
            let inode = number()?.parse().ok()?;
            let mtime = nanoseconds(number()?)?;
            let path = fields.next()?.strip_prefix(b"./")?.to_vec();
            let stamp = Stamp { inode, mode, size: if kind == b'f' { size } else { 0 }, changed };
            let listed = Listed { kind, stamp, mtime, target: OsString::from_vec(target.to_vec()) };
            all.insert(OsString::from_vec(path).into(), listed);
        }
        // Names of transfers under way are nobody's.
        all.retain(|path: &PathBuf, _| !path.to_string_lossy().starts_with(".leasehold-"));
        Some(Self(all))
    }
}

impl Listing {
    /// Keeps what is as it was sent, for a record.
    #[must_use]
    pub fn of_sent(mut self, sent: &Manifest) -> Self {
        self.0.retain(|path, listed| sent.get(path).is_some_and(|entry| listed.is(entry)));
        self
    }
}

/// Seconds with a fraction, such as `1700000000.1234567890`.
fn nanoseconds(text: &str) -> Option<i128> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let whole: i128 = whole.parse().ok()?;
    let digits: String = fraction.chars().chain("000000000".chars()).take(9).collect();
    Some(whole * 1_000_000_000 + digits.parse::<i128>().ok()?)
}
