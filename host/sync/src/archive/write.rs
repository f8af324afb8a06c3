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

/// How what a plain header has no room for is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// Extended headers as POSIX has them, with times to the nanosecond.
    Pax,
    /// Entries for long names and large numbers as GNU tar has them, which busybox reads too.
    Gnu,
}

pub(crate) struct Writer<W> {
    to: W,
    dialect: Dialect,
}

impl<W: Write> Writer<W> {
    pub(crate) fn new(to: W, dialect: Dialect) -> Self {
        Self { to, dialect }
    }

    pub(crate) fn inner(&mut self) -> &mut W {
        &mut self.to
    }

    /// Writes the header. The content follows by `Write` and is closed by [`Writer::pad`].
    pub(crate) fn entry(&mut self, entry: &WriterEntry<'_>) -> io::Result<()> {
        let mut header = Header::new_ustar();
        // A path with slashes is split between two fields first: readers without extensions see it whole.
        let mut name = entry.path.as_os_str().as_bytes().to_vec();
        if entry.kind == EntryType::Directory {
            name.push(b'/');
        }
        let long_name = header.set_path(Path::new(std::ffi::OsStr::from_bytes(&name))).is_err();
        if long_name {
            header = Header::new_ustar();
            put(&mut header.as_old_mut().name, &name);
        }
        let target = entry.target.map(|target| target.as_os_str().as_bytes());
        if let Some(target) = target {
            // By hand: a target is kept to the byte, and the header's own setter tidies it.
            put(&mut header.as_old_mut().linkname, target);
        }
        let long_target = target.filter(|target| target.len() > header.as_old().linkname.len());
        header.set_entry_type(entry.kind);
        header.set_mode(entry.mode);
        header.set_uid(0);
        header.set_gid(0);
        let seconds = u64::try_from(entry.mtime.seconds).ok().filter(|seconds| *seconds <= OCTAL_MAX);
        header.set_mtime(seconds.unwrap_or_default());
        let long_name = long_name.then_some(name.as_slice());
        match self.dialect {
            Dialect::Pax => {
                header.set_size(if entry.size > OCTAL_MAX { 0 } else { entry.size });
                self.extended(entry, long_name, long_target, seconds.is_some())?;
            }
            Dialect::Gnu => {
                header.set_size(entry.size);
                if entry.kind == EntryType::Directory {
                    // Small userlands set modes at once, and then cannot fill the directory.
                    header.set_mode(entry.mode | 0o700);
                }
                for (kind, text) in
                    [(EntryType::GNULongName, long_name), (EntryType::GNULongLink, long_target)]
                {
                    if let Some(text) = text {
                        self.extension(kind, b"././@LongLink", &[text, b"\0"].concat())?;
                    }
                }
            }
        }
        header.set_cksum();
        self.to.write_all(header.as_bytes())
    }

    fn extended(
        &mut self,
        entry: &WriterEntry<'_>,
        name: Option<&[u8]>,
        target: Option<&[u8]>,
        time_fits: bool,
    ) -> io::Result<()> {
        let mut records = Vec::new();
        if let Some(name) = name {
            extension::push(&mut records, "path", name);
        }
        if let Some(target) = target {
            extension::push(&mut records, "linkpath", target);
        }
        if entry.size > OCTAL_MAX {
            extension::push(&mut records, "size", entry.size.to_string().as_bytes());
        }
        if !time_fits || entry.mtime.nanoseconds != 0 {
            extension::push(&mut records, "mtime", extension::show_time(entry.mtime).as_bytes());
        }
        if records.is_empty() {
            Ok(())
        } else {
            self.extension(EntryType::XHeader, b"PaxHeaders/entry", &records)
        }
    }

    fn extension(&mut self, kind: EntryType, name: &[u8], records: &[u8]) -> io::Result<()> {
        let mut header = Header::new_ustar();
        put(&mut header.as_old_mut().name, name);
        header.set_entry_type(kind);
        header.set_mode(0o644);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        header.set_size(records.len() as u64);
        header.set_cksum();
        self.to.write_all(header.as_bytes())?;
        self.to.write_all(records)?;
        self.pad(records.len() as u64)
    }

    /// Fills up the last block of a content of that size.
    pub(crate) fn pad(&mut self, size: u64) -> io::Result<()> {
        let zeros = [0; BLOCK];
        let length = usize::try_from(padding(size)).unwrap_or_default();
        self.to.write_all(zeros.get(..length).unwrap_or_default())
    }

    /// Marks the end of the archive.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.to.write_all(&[0; 2 * BLOCK])?;
        Ok(self.to)
    }

    /// Gives up what it wrote to, with the archive unfinished.
    pub(crate) fn abandon(self) -> W {
        self.to
    }
}

impl<W: Write> Write for Writer<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.to.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Fills a field from its start; what does not fit is in an extension.
fn put(field: &mut [u8], text: &[u8]) {
    field.fill(0);
    for (to, from) in field.iter_mut().zip(text) {
        *to = *from;
    }
}
