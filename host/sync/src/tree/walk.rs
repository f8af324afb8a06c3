//! One pass over a folder, each directory opened by handle.

use super::{Found, FoundKind, Rules, Tree, WalkError, WalkOptions, ignores, mtime};
use crate::confine::{became_other, open_directory, open_root};
use crate::limits::{DEPTH, PATH_BYTES};
use crate::manifest::MODE_MASK;
use crate::unchanged::Stamp;
use rustix::fs::{AtFlags, Dir, FileType, statat};
use rustix::io::Errno;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

pub(super) fn walk(root: &Path, below: &Path, options: WalkOptions) -> Result<Tree, WalkError> {
    let folder = &if below.as_os_str().is_empty() { root.to_owned() } else { root.join(below) };
    let root = open_root(root).and_then(|root| open_directory(root, below));
    let root = root.map_err(|source| WalkError::Open { path: folder.into(), source })?;
    let ignores = if options.skip_ignored { ignores::Ignores::above(folder) } else { Default::default() };
    let WalkOptions { exclude, follow_symlinks: follow, .. } = options.clone();
    let rules = Rules { heavy: options.skip_heavy, git: options.skip_git, exclude, ignores };
    let mut tree = Tree {
        root,
        path: folder.into(),
        found: Vec::new(),
        rules,
        follow,
        skipped: 0,
        left_out: Vec::new(),
    };
    // A directory stands right before what it holds, so that whoever unpacks it can set its time when it is done
    // with it. No handle is kept for one that waits, so that depth costs none.
    let mut waiting = list(&mut tree, Path::new(""), &options, 0)?;
    while let Some(directory) = waiting.pop() {
        let path = directory.path.clone();
        tree.found.push(directory);
        let inner = list(&mut tree, &path, &options, waiting.len())?;
        waiting.extend(inner);
    }
    Ok(tree)
}

/// Lists one directory: what is no directory goes to the tree, and those inside are returned, the last first.
fn list(
    tree: &mut Tree,
    directory: &Path,
    options: &WalkOptions,
    waiting: usize,
) -> Result<Vec<Found>, WalkError> {
    let mut directories = Vec::new();
    let folder = tree.path.clone();
    let fail = |path: &Path| {
        let path = folder.join(path);
        move |source: io::Error| match became_other(&source) {
            true => WalkError::Changed { path },
            false => WalkError::Read { path, source },
        }
    };
    let handle = tree.open_directory(directory).map_err(fail(directory))?;
    if options.skip_ignored
        && let Some(text) = ignores::read(&handle)
    {
        tree.rules.add_ignore_file(directory.into(), &text);
    }
    let clock = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    let now = i128::from(clock.tv_sec) * 1_000_000_000 + i128::from(clock.tv_nsec);
    for name in names(&handle).map_err(fail(directory))? {
        let path = directory.join(&name);
        let status = match statat(&handle, &name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(status) => status,
            // Gone since it was listed, so it is not part of the folder.
            Err(Errno::NOENT) => continue,
            Err(errno) => return Err(fail(&path)(errno.into())),
        };
        let is_link = FileType::from_raw_mode(status.st_mode) == FileType::Symlink;
        let status = match is_link && tree.follow {
            // Left out before it is followed: what it leads to may be gone.
            true if tree.rules.leaves_out(&path, false) => continue,
            true => statat(&handle, &name, AtFlags::empty())
                .map_err(|errno| dangling(folder.join(&path), errno))?,
            false => status,
        };
        let file_type = FileType::from_raw_mode(status.st_mode);
        if is_link && file_type == FileType::Directory {
            no_loop(&folder, &path, &status)?;
        }
        if let Some(why) = tree.rules.why(&path, file_type == FileType::Directory) {
            if options.remember_left_out {
                tree.left_out.push((path, why));
            }
            continue;
        }
        let kind = match file_type {
            FileType::Directory => FoundKind::Directory,
            FileType::RegularFile => FoundKind::File,
            FileType::Symlink => FoundKind::Link,
            _ => {
                tree.skipped += 1;
                continue;
            }
        };
        if path.as_os_str().as_bytes().len() > PATH_BYTES {
            return Err(WalkError::TooLong { path: folder.join(path), limit: PATH_BYTES });
        }
        if path.components().count() > DEPTH {
            return Err(WalkError::TooDeep { path: folder.join(path), limit: DEPTH });
        }
        if tree.found.len() + waiting + directories.len() >= options.max_entries {
            return Err(WalkError::TooMany { path: folder, limit: options.max_entries });
        }
        let size = if kind == FoundKind::File { u64::try_from(status.st_size).unwrap_or(0) } else { 0 };
        let mode = status.st_mode & MODE_MASK;
        let stamp = stamp(&status, size, now);
        let found = Found { path, kind, mode, size, mtime: mtime(&status), stamp };
        match kind {
            FoundKind::Directory => directories.push(found),
            _ => tree.found.push(found),
        }
    }
    directories.reverse();
    Ok(directories)
}

/// What an entry is stamped with. One changed within the last ticks of the kernel's clock could change again without
/// a new time, so it gets a stamp that stands for none.
fn stamp(status: &rustix::fs::Stat, size: u64, now: i128) -> Stamp {
    let changed = i128::from(status.st_ctime) * 1_000_000_000 + i128::from(status.st_ctime_nsec);
    if changed > now - TICKS {
        return Stamp::default();
    }
    Stamp { inode: status.st_ino, mode: status.st_mode & 0o7777, size, changed }
}

/// Two ticks of the slowest clock a kernel is built with, in nanoseconds.
const TICKS: i128 = 20_000_000;

fn dangling(path: PathBuf, errno: Errno) -> WalkError {
    WalkError::Read { path, source: errno.into() }
}

/// Refuses a followed link to a directory above itself.
fn no_loop(folder: &Path, path: &Path, status: &rustix::fs::Stat) -> Result<(), WalkError> {
    for above in path.ancestors().skip(1) {
        let above = folder.join(above);
        let there = rustix::fs::stat(&above).map_err(|errno| dangling(above, errno))?;
        if (there.st_dev, there.st_ino) == (status.st_dev, status.st_ino) {
            return Err(WalkError::Loop { path: folder.join(path) });
        }
    }
    Ok(())
}

/// The names of a directory, sorted, so that the same folder makes the same archive.
fn names(handle: &OwnedFd) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(handle.as_fd())? {
        let name = entry?.file_name().to_bytes().to_vec();
        if name != b"." && name != b".." {
            names.push(OsString::from_vec(name));
        }
    }
    names.sort_unstable();
    Ok(names)
}
