//! Making an archive.

use super::{BLOCK, extension, padding};
use crate::manifest::Timestamp;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use tar::{EntryType, Header};

/// The largest size and time a plain header holds: eleven octal digits.
const OCTAL_MAX: u64 = (1 << 33) - 1;

/// What one entry's header says. The owner is always 0: an id of this host means nothing elsewhere.
pub(crate) struct WriterEntry<'a> {
    pub(crate) path: &'a Path,
    pub(crate) kind: EntryType,
    pub(crate) mode: u32,
    pub(crate) mtime: Timestamp,
    pub(crate) size: u64,
    pub(crate) target: Option<&'a Path>,
}

pub(crate) struct Writer<W>(W);

impl<W: Write> Writer<W> {
    pub(crate) fn new(to: W) -> Self {
        Self(to)
    }

    /// Writes the header. The content follows by `Write` and is closed by [`Writer::pad`].
    pub(crate) fn entry(&mut self, entry: &WriterEntry<'_>) -> io::Result<()> {
        let mut header = Header::new_ustar();
        let mut records = Vec::new();
        // A path with slashes is split between two fields first: readers without extensions see it whole.
        let mut name = entry.path.as_os_str().as_bytes().to_vec();
        if entry.kind == EntryType::Directory {
            name.push(b'/');
        }
        if header.set_path(Path::new(std::ffi::OsStr::from_bytes(&name))).is_err() {
            extension::push(&mut records, "path", &name);
            header = Header::new_ustar();
            put(&mut header.as_old_mut().name, &name);
        }
        if let Some(target) = entry.target {
            let target = target.as_os_str().as_bytes();
            // By hand: a target is kept to the byte, and the header's own setter tidies it.
            if target.len() > header.as_old().linkname.len() {
                extension::push(&mut records, "linkpath", target);
            }
            put(&mut header.as_old_mut().linkname, target);
        }
        if entry.size > OCTAL_MAX {
            extension::push(&mut records, "size", entry.size.to_string().as_bytes());
        }
        let seconds = u64::try_from(entry.mtime.seconds).ok().filter(|seconds| *seconds <= OCTAL_MAX);
        if seconds.is_none() || entry.mtime.nanoseconds != 0 {
            extension::push(&mut records, "mtime", extension::show_time(entry.mtime).as_bytes());
        }
        if !records.is_empty() {
            self.extension(&records)?;
        }
        header.set_entry_type(entry.kind);
        header.set_mode(entry.mode);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(seconds.unwrap_or_default());
        header.set_size(if entry.size > OCTAL_MAX { 0 } else { entry.size });
        header.set_cksum();
        self.0.write_all(header.as_bytes())
    }

    fn extension(&mut self, records: &[u8]) -> io::Result<()> {
        let mut header = Header::new_ustar();
        put(&mut header.as_old_mut().name, b"PaxHeaders/entry");
        header.set_entry_type(EntryType::XHeader);
        header.set_mode(0o644);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        header.set_size(records.len() as u64);
        header.set_cksum();
        self.0.write_all(header.as_bytes())?;
        self.0.write_all(records)?;
        self.pad(records.len() as u64)
    }

    /// Fills up the last block of a content of that size.
    pub(crate) fn pad(&mut self, size: u64) -> io::Result<()> {
        let zeros = [0; BLOCK];
        let length = usize::try_from(padding(size)).unwrap_or_default();
        self.0.write_all(zeros.get(..length).unwrap_or_default())
    }

    /// Marks the end of the archive.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.0.write_all(&[0; 2 * BLOCK])?;
        Ok(self.0)
    }

    /// Gives up what it wrote to, with the archive unfinished.
    pub(crate) fn abandon(self) -> W {
        self.0
    }
}

impl<W: Write> Write for Writer<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Fills a field from its start; what does not fit is in an extension.
fn put(field: &mut [u8], text: &[u8]) {
    field.fill(0);
    for (to, from) in field.iter_mut().zip(text) {
        *to = *from;
    }
}
