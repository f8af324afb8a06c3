//! The walk through what came back.

use super::decide::{Verdict, decide};
use super::place::{Spot, place};
use super::{Conflict, MergeError, MergeReport, host};
use crate::confine::{open_directory, open_file, split};
use crate::incoming::Received;
use crate::manifest::{Baseline, Entry, Manifest};
use rustix::fs::{AtFlags, Mode, fchmod, mkdirat, unlinkat};
use rustix::io::Errno;
use std::collections::{HashMap, HashSet};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// A merge under way.
pub(super) struct Merging<'a> {
    pub(super) sent: &'a Manifest,
    pub(super) back: &'a Manifest,
    pub(super) staging: &'a OwnedFd,
    pub(super) root: &'a OwnedFd,
    pub(super) report: MergeReport,
    /// Directories of the sandbox whose place on the host is taken, and where they are put instead.
    pub(super) moved: HashMap<PathBuf, PathBuf>,
    /// Directories of the host that made way for something else, with what they held.
    gone: HashSet<PathBuf>,
    /// Directories of the host and the modes they get once all is in them.
    pub(super) modes: Vec<(PathBuf, u32)>,
}

/// The path at which a merge stopped.
struct Stop(PathBuf, io::Error);

pub(super) fn apply(
    baseline: &Baseline,
    received: &Received,
    root: &OwnedFd,
    target: &Path,
    report: MergeReport,
) -> Result<MergeReport, MergeError> {
    let mut merging = Merging {
        sent: &baseline.manifest,
        back: &received.manifest,
        staging: received.staging.root(),
        root,
        report,
        moved: HashMap::new(),
        gone: HashSet::new(),
        modes: Vec::new(),
    };
    match merging.run(baseline) {
        Ok(()) => Ok(merging.report),
        Err(Stop(path, source)) => {
            Err(MergeError::Stopped { path: target.join(path), source, report: merging.report.into() })
        }
    }
}

impl Merging<'_> {
    fn run(&mut self, baseline: &Baseline) -> Result<(), Stop> {
        for (path, entry) in super::taken::taken(baseline, self.back) {
            self.came_back(path, entry).map_err(|source| Stop(path.into(), source))?;
        }
        // What is new is in place before anything old goes.
        self.deletions(Path::new(""))?;
        // Those inside first: a directory may end up closed to its owner.
        self.modes.sort_unstable();
        for (path, mode) in std::mem::take(&mut self.modes).into_iter().rev() {
            let changed = open_directory(self.root, &path)
                .and_then(|directory| Ok(fchmod(directory, Mode::from_raw_mode(mode))?));
            changed.map_err(|source| Stop(path, source))?;
        }
        Ok(())
    }

    fn came_back(&mut self, path: &Path, entry: &Entry) -> io::Result<()> {
        let sent = self.sent.get(path);
        if sent.is_some_and(|sent| sent.same(entry)) {
            return Ok(());
        }
        if path.ancestors().skip(1).any(|above| self.moved.contains_key(above)) {
            // Part of a conflict that is listed.
            return self.put(path, entry, false).map(drop);
        }
        let compare: Vec<&Entry> = sent.into_iter().chain([entry]).collect();
        let host = host::state(self.root, path, &compare)?;
        let verdict = decide(sent, Some(entry), host.as_ref());
        let (placed, list) = match (verdict, sent) {
            (Verdict::Add, _) => (self.put(path, entry, false)?, &mut self.report.added),
            (Verdict::Replace, Some(sent)) => (self.replace(path, sent, entry)?, &mut self.report.changed),
            (Verdict::Conflict, _) => return self.conflict(path, entry),
            _ => return Ok(()),
        };
        if placed {
            list.push(path.into());
        }
        Ok(())
    }

    /// Puts an entry where it belongs, or beside it if that place was taken meanwhile. Returns whether it is
    /// at its own path.
    pub(super) fn put(&mut self, path: &Path, entry: &Entry, over: bool) -> io::Result<bool> {
        let (parent, name) = split(path);
        let home = self.home(parent)?;
        let made = if entry.is_directory() {
            mkdirat(&home.handle, name, Mode::RWXU).map_err(io::Error::from)
        } else {
            place(self.staging, path, entry, &Spot { directory: &home.handle, name, over })
        };
        match made {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                self.put_aside(path, entry)?;
                return Ok(false);
            }
            other => other?,
        }
        if entry.is_directory() {
            self.modes.push((home.path.join(name), entry.mode));
        }
        Ok(home.path == parent)
    }

    /// Puts an entry in place of one that is still as it was sent.
    fn replace(&mut self, path: &Path, sent: &Entry, entry: &Entry) -> io::Result<bool> {
        let (parent, name) = split(path);
        let parent = open_directory(self.root, parent)?;
        match (sent.is_directory(), entry.is_directory()) {
            (true, true) => self.modes.push((path.into(), entry.mode)),
            (true, false) => {
                self.deletions(path).map_err(|Stop(_, source)| source)?;
                self.gone.insert(path.into());
                if !remove(&parent, name, true)? {
                    self.put_aside(path, entry)?;
                    return Ok(false);
                }
                return self.put(path, entry, false);
            }
            (false, true) => {
                remove(&parent, name, false)?;
                return self.put(path, entry, false);
            }
            // Only the mode: the content keeps its time.
            (false, false) if sent.kind == entry.kind => {
                fchmod(open_file(&parent, name)?, Mode::from_raw_mode(entry.mode))?;
            }
            (false, false) => return self.put(path, entry, true),
        }
        Ok(true)
    }

    /// Takes away what the sandbox deleted, below a path and not the path itself.
    fn deletions(&mut self, below: &Path) -> Result<(), Stop> {
        for (path, sent) in self.sent.below(below).rev() {
            let gone = path.ancestors().any(|above| self.gone.contains(above));
            if !gone && self.back.get(path).is_none() {
                self.deleted(path, sent).map_err(|source| Stop(path.into(), source))?;
            }
        }
        Ok(())
    }

    fn deleted(&mut self, path: &Path, sent: &Entry) -> io::Result<()> {
        let host = host::state(self.root, path, &[sent])?;
        match decide(Some(sent), None, host.as_ref()) {
            Verdict::Delete => {
                let (parent, name) = split(path);
                if remove(&open_directory(self.root, parent)?, name, sent.is_directory())? {
                    self.report.deleted.push(path.into());
                }
            }
            Verdict::Conflict => self.report.conflicts.push(Conflict { path: path.into(), aside: None }),
            _ => {}
        }
        Ok(())
    }
}

/// Returns whether it was removed: a directory that holds something stays, and what is gone is gone.
fn remove(parent: &OwnedFd, name: &Path, is_directory: bool) -> io::Result<bool> {
    let flags = if is_directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
    match unlinkat(parent, name, flags) {
        Ok(()) => Ok(true),
        Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOENT) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}
