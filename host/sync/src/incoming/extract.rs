//! The pass that checks and unpacks. Every open is relative to a handle of the staging directory and follows
//! no link, and links are made last, so that none is there to follow.

use super::fault::{Fault, archive_error};
use super::staging::Staging;
use super::{ReceiveError, check};
use crate::archive::{Member, MemberKind, Reader};
use crate::confine::{open_directory, split};
use crate::exclude::Excludes;
use crate::limits::Limits;
use crate::manifest::{Entry, Kind, MODE_MASK, Manifest, Timestamp};
use crate::progress::Progress;
use crate::rule::Rule;
use rustix::fs::{Mode, OFlags, Timespec, Timestamps, UTIME_OMIT};
use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, Seek as _, SeekFrom, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

/// Zero bytes in a row that become a hole: a block of common file systems.
const HOLE: usize = 4096;

/// Takes a whole archive apart.
pub(super) fn archive(from: impl BufRead, mut extraction: Extraction<'_>) -> Result<Manifest, ReceiveError> {
    let mut archive = Reader::new(from);
    while let Some(member) = archive.next().map_err(archive_error)? {
        let raw = OsString::from_vec(member.path.clone());
        extraction.member(member, &mut archive).map_err(|fault| fault.at(raw.into()))?;
    }
    extraction.finish()
}

/// The bytes of the file at hand.
pub(super) trait Content {
    /// Says how many bytes there have to be.
    fn announce(&mut self, _size: u64) {}
    /// The next bytes; none at the end of the file.
    fn content(&mut self) -> Result<&[u8], Fault>;
    /// Takes them as read.
    fn consume(&mut self, length: usize);
}

impl<R: BufRead> Content for Reader<R> {
    fn content(&mut self) -> Result<&[u8], Fault> {
        Reader::content(self).map_err(Fault::Archive)
    }

    fn consume(&mut self, length: usize) {
        Reader::consume(self, length);
    }
}

pub(super) struct Extraction<'a> {
    pub(super) staging: &'a Staging,
    pub(super) limits: Limits,
    pub(super) known: Option<&'a Manifest>,
    /// What is passed over, as whoever made the archive was asked to.
    pub(super) exclude: &'a Excludes,
    pub(super) manifest: Manifest,
    /// Directories made for what they hold, for which an entry may still come.
    pub(super) implied: HashSet<PathBuf>,
    /// Paths by what they are without case, where the two differ.
    pub(super) folded: HashMap<PathBuf, PathBuf>,
    pub(super) content: u64,
    pub(super) text: usize,
    /// The directory last opened: entries of one directory follow each other.
    pub(super) parent: Option<(PathBuf, OwnedFd)>,
    pub(super) progress: Progress,
}

impl<'a> Extraction<'a> {
    pub(super) fn new(
        staging: &'a Staging,
        limits: Limits,
        known: Option<&'a Manifest>,
        exclude: &'a Excludes,
        progress: Progress,
    ) -> Self {
        Self {
            staging,
            limits,
            known,
            exclude,
            manifest: Manifest::default(),
            implied: HashSet::new(),
            folded: HashMap::new(),
            content: 0,
            text: 0,
            parent: None,
            progress,
        }
    }

    /// Takes one entry, with the bytes of a file behind it.
    pub(super) fn member(&mut self, member: Member, from: &mut impl Content) -> Result<(), Fault> {
        let is_directory = member.kind == MemberKind::Directory;
        let path = check::path(&member.path, is_directory, &self.limits)?;
        if path.as_os_str().is_empty() {
            return Ok(());
        }
        if self.exclude.matches(&path) {
            return Ok(());
        }
        let mode = member.mode & MODE_MASK;
        if is_directory && self.implied.remove(&path) {
            self.manifest.insert(path, Entry { kind: Kind::Directory, mode, mtime: member.mtime });
            return Ok(());
        }
        self.parents(&path)?;
        self.admit(&path)?;
        let kind = match member.kind {
            MemberKind::Directory => self.directory(&path)?,
            MemberKind::File => self.file(&path, mode, member.mtime, member.size, from)?,
            MemberKind::Link(target) => self.link(&path, target)?,
        };
        self.manifest.insert(path, Entry { kind, mode, mtime: member.mtime });
        Ok(())
    }

    pub(super) fn directory(&mut self, path: &Path) -> Result<Kind, Fault> {
        self.at(path, |parent, name| Ok(rustix::fs::mkdirat(parent, name, Mode::RWXU)?))?;
        Ok(Kind::Directory)
    }

    fn link(&mut self, path: &Path, target: Vec<u8>) -> Result<Kind, Fault> {
        self.add_text(target.len())?;
        let inside = check::stays_inside(path, &target);
        let kind = Kind::Link { target: OsString::from_vec(target) };
        let was_sent = self.known.and_then(|known| known.get(path)).is_some_and(|entry| entry.kind == kind);
        match kind {
            Kind::Link { target } if !inside && !was_sent => Err(Rule::LinkLeaves(target.into()).into()),
            kind => Ok(kind),
        }
    }

    fn file(
        &mut self,
        path: &Path,
        mode: u32,
        mtime: Timestamp,
        size: u64,
        from: &mut impl Content,
    ) -> Result<Kind, Fault> {
        self.content = self.content.saturating_add(size);
        if self.content > self.limits.content_bytes {
            return Err(Rule::TooManyBytes(self.limits.content_bytes).into());
        }
        from.announce(size);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let owner_only = Mode::RUSR | Mode::WUSR;
        let file = self.at(path, |parent, name| Ok(rustix::fs::openat(parent, name, flags, owner_only)?))?;
        rustix::fs::fchmod(&file, Mode::from_raw_mode(mode)).map_err(io::Error::from)?;
        let blake3 = write(&mut File::from(file), mtime, from, &self.progress)?;
        Ok(Kind::File { size, blake3 })
    }

    /// Makes the links, last of all.
    pub(super) fn finish(self) -> Result<Manifest, ReceiveError> {
        self.links()?;
        Ok(self.manifest)
    }

    fn links(&self) -> Result<(), ReceiveError> {
        for (path, entry) in self.manifest.iter() {
            let Kind::Link { target } = &entry.kind else { continue };
            let (parent, name) = split(path);
            open_directory(self.staging.root(), parent)
                .and_then(|parent| Ok(rustix::fs::symlinkat(target, parent, name)?))
                .map_err(|source| ReceiveError::Write { path: path.into(), source })?;
        }
        Ok(())
    }

    fn at<T>(
        &mut self,
        path: &Path,
        with: impl FnOnce(&OwnedFd, &Path) -> io::Result<T>,
    ) -> Result<T, Fault> {
        let (parent, name) = split(path);
        if self.parent.as_ref().is_none_or(|(open, _)| open != parent) {
            self.parent = Some((parent.to_owned(), open_directory(self.staging.root(), parent)?));
        }
        let handle = self.parent.as_ref().map_or(self.staging.root(), |(_, handle)| handle);
        Ok(with(handle, name)?)
    }
}

/// Writes all bytes to a new file, with long runs of zeros as holes.
pub(super) fn write(
    file: &mut File,
    mtime: Timestamp,
    from: &mut impl Content,
    progress: &Progress,
) -> Result<blake3::Hash, Fault> {
    let mut digest = blake3::Hasher::new();
    loop {
        let bytes = from.content()?;
        if bytes.is_empty() {
            break;
        }
        digest.update(bytes);
        if bytes.len() >= HOLE && bytes.iter().all(|byte| *byte == 0) {
            file.seek(SeekFrom::Current(i64::try_from(bytes.len()).unwrap_or_default()))?;
        } else {
            file.write_all(bytes)?;
        }
        let length = bytes.len();
        from.consume(length);
        progress.bytes(length as u64);
    }
    // A hole at the end is only there once the size is.
    file.set_len(digest.count())?;
    set_time(file, mtime)?;
    progress.file();
    Ok(digest.finalize())
}

fn set_time(file: &File, mtime: Timestamp) -> io::Result<()> {
    let last_modification = Timespec { tv_sec: mtime.seconds, tv_nsec: mtime.nanoseconds.into() };
    let last_access = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
    Ok(rustix::fs::futimens(file, &Timestamps { last_access, last_modification })?)
}
