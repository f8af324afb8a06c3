//! Where the sandbox's version goes when the host's stays.

use super::apply::Merging;
use super::decide::Host;
use super::place::{Spot, place};
use super::{Conflict, host};
use crate::confine::{became_other, open_directory, split};
use crate::limits::NAME_BYTES;
use crate::manifest::{Entry, Kind, Timestamp};
use rustix::fs::{Mode, mkdirat};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// What is added to a name, and a number after it if that name is taken.
const SUFFIX: &str = ".from-sandbox";

/// Names tried for one path. Whoever lets a thousand versions pile up does not look at them.
const ATTEMPTS: usize = 1000;

/// The mode of a directory made anew that came back without one.
const NEW_MODE: u32 = 0o755;

/// The directory of the host that stands for one of the sandbox.
pub(super) struct Home {
    pub(super) handle: OwnedFd,
    pub(super) path: PathBuf,
}

impl Merging<'_> {
    /// Finds the directory, makes it anew if the host removed it, and puts it aside if the host has
    /// something else there.
    pub(super) fn home(&mut self, directory: &Path) -> io::Result<Home> {
        let path = self.mapped(directory);
        match open_directory(self.root, &path) {
            Ok(handle) => return Ok(Home { handle, path }),
            Err(error) if became_other(&error) && !directory.as_os_str().is_empty() => {}
            Err(error) => return Err(error),
        }
        let (above, name) = split(directory);
        let above = self.home(above)?;
        let path = above.path.join(name);
        match mkdirat(&above.handle, name, Mode::RWXU) {
            Ok(()) => {
                self.modes
                    .push((path.clone(), self.back.get(directory).map_or(NEW_MODE, |entry| entry.mode)));
            }
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
        match open_directory(&above.handle, name) {
            Ok(handle) => Ok(Home { handle, path }),
            Err(error) if became_other(&error) => {
                let mode = self.back.get(directory).map_or(NEW_MODE, |entry| entry.mode);
                let mtime = Timestamp::default();
                self.put_aside(directory, &Entry { kind: Kind::Directory, mode, mtime })?;
                let path = self.mapped(directory);
                Ok(Home { handle: open_directory(self.root, &path)?, path })
            }
            Err(error) => Err(error),
        }
    }

    /// Keeps what the host has at a path. In a directory that is put aside itself there is room for the
    /// entry's own name, and its conflict is the one that is listed.
    pub(super) fn conflict(&mut self, path: &Path, entry: &Entry) -> io::Result<()> {
        let (parent, _) = split(path);
        if self.home(parent)?.path == parent {
            self.put_aside(path, entry)
        } else {
            self.put(path, entry, false).map(drop)
        }
    }

    /// Puts an entry beside its path under a name nobody has, and lists the conflict.
    pub(super) fn put_aside(&mut self, path: &Path, entry: &Entry) -> io::Result<()> {
        let (parent, name) = split(path);
        let home = self.home(parent)?;
        for attempt in 1..=ATTEMPTS {
            let beside = PathBuf::from(beside(name.as_os_str(), attempt));
            let at = home.path.join(&beside);
            let made = if entry.is_directory() {
                mkdirat(&home.handle, &beside, Mode::RWXU).map_err(io::Error::from)
            } else {
                let spot = Spot { directory: &home.handle, name: &beside, over: false };
                place(self.staging, path, entry, &spot)
            };
            match made {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    // A merge that is run again finds what it put there.
                    let there = host::state(self.root, &at, &[entry])?;
                    let same = matches!(there, Some(Host::Entry(there)) if there.same(entry));
                    if entry.is_directory() || !same {
                        continue;
                    }
                }
                other => other?,
            }
            if entry.is_directory() {
                self.moved.insert(path.into(), at.clone());
                self.modes.push((at.clone(), entry.mode));
            }
            self.report.conflicts.push(Conflict { path: path.into(), aside: Some(at) });
            return Ok(());
        }
        Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            format!("there are {ATTEMPTS} versions with {SUFFIX} beside it already; remove some"),
        ))
    }

    /// Where a directory of the sandbox is on the host.
    fn mapped(&self, directory: &Path) -> PathBuf {
        for above in directory.ancestors() {
            if let (Some(to), Ok(rest)) = (self.moved.get(above), directory.strip_prefix(above)) {
                return if rest.as_os_str().is_empty() { to.clone() } else { to.join(rest) };
            }
        }
        directory.into()
    }
}

fn beside(name: &OsStr, attempt: usize) -> OsString {
    let suffix = if attempt == 1 { SUFFIX.to_owned() } else { format!("{SUFFIX}.{attempt}") };
    let mut bytes = name.as_bytes().to_vec();
    let mut length = bytes.len().min(NAME_BYTES - suffix.len());
    // Not in the middle of a character.
    while length > 0 && bytes.get(length).is_some_and(|byte| byte & 0xc0 == 0x80) {
        length -= 1;
    }
    bytes.truncate(length);
    bytes.extend_from_slice(suffix.as_bytes());
    OsString::from_vec(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_beside_a_long_one_fits_and_splits_no_character() {
        assert_eq!(beside(OsStr::new("a.txt"), 1), "a.txt.from-sandbox");
        assert_eq!(beside(OsStr::new("a.txt"), 12), "a.txt.from-sandbox.12");
        for name in ["x".repeat(255), "é".repeat(127), "\u{10348}".repeat(63)] {
            let beside = beside(OsStr::new(&name), ATTEMPTS);
            assert!(beside.len() <= NAME_BYTES && beside.to_str().is_some(), "{beside:?}");
        }
    }
}
