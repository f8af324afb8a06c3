//! Putting one staged file or link where it belongs, whole or not at all.

use crate::confine::{open_directory, open_file, scratch_name, split};
use crate::manifest::{Entry, Kind};
use rustix::fs::{
    AtFlags, Mode, OFlags, RenameFlags, Timespec, Timestamps, UTIME_OMIT, fchmod, fstat, futimens, openat,
    renameat, renameat_with, symlinkat, unlinkat,
};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

/// How a copy is called until it is whole.
pub(crate) const PLACING: &str = ".leasehold-place-";

/// Where something is put.
pub(super) struct Spot<'a> {
    pub(super) directory: &'a OwnedFd,
    pub(super) name: &'a Path,
    /// Whether what is there may be replaced. Otherwise anything there is [`io::ErrorKind::AlreadyExists`].
    pub(super) over: bool,
}

/// Moves a staged entry that is no directory.
pub(super) fn place(staging: &OwnedFd, path: &Path, entry: &Entry, spot: &Spot<'_>) -> io::Result<()> {
    let (parent, name) = split(path);
    let parent = open_directory(staging, parent)?;
    match rename(&parent, name, spot) {
        // The folder has another file system mounted inside.
        Err(Errno::XDEV) => copy(&parent, name, entry, spot),
        other => Ok(other?),
    }
}

fn rename(parent: &OwnedFd, name: &Path, spot: &Spot<'_>) -> Result<(), Errno> {
    if spot.over {
        return renameat(parent, name, spot.directory, spot.name);
    }
    match renameat_with(parent, name, spot.directory, spot.name, RenameFlags::NOREPLACE) {
        // Not every file system knows the flag; a hard link refuses to replace as well.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            rustix::fs::linkat(parent, name, spot.directory, spot.name, AtFlags::empty())?;
            unlinkat(parent, name, AtFlags::empty())
        }
        other => other,
    }
}

/// Copies to a name beside the spot first, so that the spot never holds half a file.
fn copy(parent: &OwnedFd, name: &Path, entry: &Entry, spot: &Spot<'_>) -> io::Result<()> {
    let scratch = scratch_name(PLACING)?;
    let copied = match &entry.kind {
        Kind::Link { target } => symlinkat(target, spot.directory, &scratch).map_err(io::Error::from),
        _ => copy_file(parent, name, spot.directory, &scratch, entry.mode),
    };
    let placed = copied.and_then(|()| Ok(rename(spot.directory, Path::new(&scratch), spot)?));
    placed.inspect_err(|_| unlinkat(spot.directory, &scratch, AtFlags::empty()).unwrap_or_default())
}

fn copy_file(from: &OwnedFd, name: &Path, to: &OwnedFd, scratch: &str, mode: u32) -> io::Result<()> {
    let mut from = open_file(from, name)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let to = openat(to, scratch, flags, Mode::RUSR | Mode::WUSR)?;
    fchmod(&to, Mode::from_raw_mode(mode))?;
    let mut to = File::from(to);
    io::copy(&mut from, &mut to)?;
    let status = fstat(&from)?;
    let last_modification =
        Timespec { tv_sec: status.st_mtime, tv_nsec: i64::try_from(status.st_mtime_nsec).unwrap_or(0) };
    let last_access = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
    Ok(futimens(&to, &Timestamps { last_access, last_modification })?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::confine::open_root;
    use crate::manifest::Timestamp;
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    #[test]
    fn a_copy_to_another_file_system_is_whole_or_not_there() {
        let (staging, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(staging.path().join("f"), "content").unwrap();
        fs::set_permissions(staging.path().join("f"), fs::Permissions::from_mode(0o751)).unwrap();
        let source = fs::metadata(staging.path().join("f")).unwrap();
        let (from, to) = (open_root(staging.path()).unwrap(), open_root(folder.path()).unwrap());
        let kind = Kind::File { size: 7, blake3: blake3::hash(b"content") };
        let file = Entry { kind, mode: 0o751, mtime: Timestamp::default() };
        let link = Entry { kind: Kind::Link { target: "f".into() }, ..file.clone() };
        let spot = |name, over| Spot { directory: &to, name: Path::new(name), over };
        copy(&from, Path::new("f"), &file, &spot("f", false)).unwrap();
        copy(&from, Path::new("f"), &link, &spot("l", false)).unwrap();
        let copied = fs::metadata(folder.path().join("f")).unwrap();
        assert_eq!((copied.mode(), copied.mtime_nsec()), (source.mode(), source.mtime_nsec()));
        assert_eq!(fs::read(folder.path().join("f")).unwrap(), b"content");
        assert_eq!(fs::read_link(folder.path().join("l")).unwrap(), Path::new("f"));

        let taken = copy(&from, Path::new("f"), &file, &spot("l", false)).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AlreadyExists);
        copy(&from, Path::new("missing"), &file, &spot("m", false)).unwrap_err();
        copy(&from, Path::new("f"), &file, &spot("l", true)).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
