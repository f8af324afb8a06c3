//! The pass that checks and unpacks. Every open is relative to a handle of the staging directory and follows
//! no link, and links are made last, so that none is there to follow.

use super::fault::{Fault, archive_error};
use super::staging::Staging;
use super::{ReceiveError, check};
use crate::archive::{Member, MemberKind, Reader};
use crate::confine::{open_directory, split};
use crate::limits::Limits;
use crate::manifest::{Entry, Kind, MODE_MASK, Manifest, Timestamp};
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

pub(super) fn extract(
    from: impl BufRead,
    staging: &Staging,
    limits: Limits,
    known: Option<&Manifest>,
) -> Result<Manifest, ReceiveError> {
    let mut extraction = Extraction {
        archive: Reader::new(from),
        staging,
        limits,
        known,
        manifest: Manifest::default(),
        implied: HashSet::new(),
        folded: HashMap::new(),
        content: 0,
        text: 0,
        parent: None,
    };
    while let Some(member) = extraction.archive.next().map_err(archive_error)? {
        let raw = OsString::from_vec(member.path.clone());
        extraction.member(member).map_err(|fault| fault.at(raw.into()))?;
    }
    extraction.links()?;
    Ok(extraction.manifest)
}

pub(super) struct Extraction<'a, R> {
    pub(super) archive: Reader<R>,
    pub(super) staging: &'a Staging,
    pub(super) limits: Limits,
    pub(super) known: Option<&'a Manifest>,
    pub(super) manifest: Manifest,
    /// Directories made for what they hold, for which an entry may still come.
    pub(super) implied: HashSet<PathBuf>,
    /// Paths by what they are without case, where the two differ.
    pub(super) folded: HashMap<PathBuf, PathBuf>,
    pub(super) content: u64,
    pub(super) text: usize,
    /// The directory last opened: entries of one directory follow each other.
    pub(super) parent: Option<(PathBuf, OwnedFd)>,
}

impl<R: BufRead> Extraction<'_, R> {
    fn member(&mut self, member: Member) -> Result<(), Fault> {
        let is_directory = member.kind == MemberKind::Directory;
        let path = check::path(&member.path, is_directory, &self.limits)?;
        if path.as_os_str().is_empty() {
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
            MemberKind::File => self.file(&path, mode, member.mtime, member.size)?,
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

    fn file(&mut self, path: &Path, mode: u32, mtime: Timestamp, size: u64) -> Result<Kind, Fault> {
        self.content = self.content.saturating_add(size);
        if self.content > self.limits.content_bytes {
            return Err(Rule::TooManyBytes(self.limits.content_bytes).into());
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let owner_only = Mode::RUSR | Mode::WUSR;
        let file = self.at(path, |parent, name| Ok(rustix::fs::openat(parent, name, flags, owner_only)?))?;
        rustix::fs::fchmod(&file, Mode::from_raw_mode(mode)).map_err(io::Error::from)?;
        let mut file = File::from(file);
        let mut digest = blake3::Hasher::new();
        loop {
            let bytes = self.archive.content().map_err(Fault::Archive)?;
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
            self.archive.consume(length);
        }
        // A hole at the end is only there once the size is.
        file.set_len(size)?;
        set_time(&file, mtime)?;
        Ok(Kind::File { size, blake3: digest.finalize() })
    }

    fn links(&mut self) -> Result<(), ReceiveError> {
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

fn set_time(file: &File, mtime: Timestamp) -> io::Result<()> {
    let last_modification = Timespec { tv_sec: mtime.seconds, tv_nsec: mtime.nanoseconds.into() };
    let last_access = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
    Ok(rustix::fs::futimens(file, &Timestamps { last_access, last_modification })?)
}
