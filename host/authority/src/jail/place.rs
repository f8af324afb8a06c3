//! One file's bytes into a jail, running or stopped.

use super::beneath::{self, Place};
use super::directory::files_of;
use super::error::{Limit, LimitHit};
use super::record::Record;
use super::{JailError, usage};
use rustix::fs::{AtFlags, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};

/// Prefix of a file that is not whole yet; the same as every transfer into a sandbox uses.
const STAGED: &str = ".leasehold-upload.";

/// Mode of a file when the caller says nothing.
const MODE: u32 = 0o644;

/// Bytes moved at a time.
const PIECE: usize = 256 << 10;

/// A staged file. It vanishes with this value unless it was put in place.
struct Staged {
    place: Place,
    name: String,
    kept: bool,
}

/// Writes the bytes beside the target and puts them in place as a whole. Returns how many there were.
///
/// `known` is what the jail's files take; without it they are counted first.
pub(super) async fn place(
    jail: &Path,
    record: &Record,
    known: Option<&AtomicU64>,
    path: &str,
    mode: Option<u32>,
    mut from: impl AsyncRead + Send + Unpin,
) -> Result<u64, JailError> {
    let allowed = record.bounds.disk_bytes;
    let (files, owner, target) = (files_of(jail), record.host_id, path.to_owned());
    let mode = mode.unwrap_or(MODE) & 0o777;
    let counted = known.map(|known| known.load(Ordering::Acquire));
    let (mut staged, file, used) = super::blocking(jail, move || {
        let used = match (allowed, counted) {
            (None, _) => 0,
            (_, Some(counted)) => counted,
            (_, None) => usage::disk(&files)?,
        };
        let (staged, file) = stage(&files, &target, mode, owner)?;
        Ok((staged, file, used))
    })
    .await?;
    let fail = |source| JailError::Transfer { path: path.into(), source };
    let mut file = tokio::fs::File::from_std(file.into());
    let (mut piece, mut bytes) = (vec![0; PIECE], 0);
    loop {
        let length = from.read(&mut piece).await.map_err(fail)?;
        if length == 0 {
            break;
        }
        bytes += length as u64;
        if let Some(allowed) = allowed.filter(|allowed| used + bytes > *allowed) {
            return Err(LimitHit { which: Limit::Disk, allowed, at: used + bytes }.into());
        }
        file.write_all(piece.get(..length).unwrap_or_default()).await.map_err(fail)?;
    }
    file.flush().await.map_err(fail)?;
    let target = path.to_owned();
    super::blocking(jail, move || staged.keep(&target)).await?;
    if let Some(known) = known {
        // What it replaced is counted until the next count, which then finds less.
        known.fetch_add(bytes, Ordering::AcqRel);
    }
    Ok(bytes)
}

fn stage(files: &Path, path: &str, mode: u32, owner: Option<u32>) -> Result<(Staged, OwnedFd), JailError> {
    let fail = |errno: Errno| JailError::Transfer { path: path.into(), source: errno.into() };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let files = rustix::fs::open(files, flags, Mode::empty()).map_err(fail)?;
    let place = beneath::place(&files, path, owner)?;
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(|_| fail(Errno::IO))?;
    let name = format!("{STAGED}{:016x}", u64::from_ne_bytes(random));
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(&place.directory, &name, flags, Mode::RUSR | Mode::WUSR).map_err(fail)?;
    let staged = Staged { place, name, kept: false };
    if let Some(id) = owner {
        rustix::fs::fchown(&file, Some(Uid::from_raw(id)), Some(Gid::from_raw(id))).map_err(fail)?;
    }
    // Before the first byte, so that at no moment anybody can read what the mode forbids.
    rustix::fs::fchmod(&file, Mode::from_raw_mode(mode)).map_err(fail)?;
    Ok((staged, file))
}

impl Staged {
    fn keep(&mut self, path: &str) -> Result<(), JailError> {
        let directory = &self.place.directory;
        rustix::fs::renameat(directory, &self.name, directory, &self.place.name)
            .map_err(|errno| JailError::Transfer { path: path.into(), source: errno.into() })?;
        self.kept = true;
        Ok(())
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if !self.kept {
            let _ = rustix::fs::unlinkat(&self.place.directory, &self.name, AtFlags::empty());
        }
    }
}
