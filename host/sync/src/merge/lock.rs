//! One merge of a folder at a time.

use super::MergeError;
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, flock, fstat, openat, statat, unlinkat};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;
use tokio::time::Instant;

/// The lock file, in the folder itself. Its name is reserved, so it never crosses.
const NAME: &str = ".leasehold-merge.lock";

/// How long another merge is waited for: longer than any but a huge one takes. Then it is an error, so that
/// a stuck one is seen.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often the lock is tried: nobody notices a twentieth of a second, and it costs nothing.
const POLL: Duration = Duration::from_millis(50);

/// Held until dropped, and by the kernel's doing no longer than the process lives.
#[derive(Debug)]
pub(super) struct Lock {
    root: OwnedFd,
    _file: OwnedFd,
}

pub(super) async fn wait(root: &OwnedFd, target: &Path) -> Result<Lock, MergeError> {
    let start = Instant::now();
    loop {
        match attempt(root) {
            Ok(Some(lock)) => return Ok(lock),
            Ok(None) if start.elapsed() >= PATIENCE => {
                return Err(MergeError::Busy { path: target.into(), waited: PATIENCE });
            }
            Ok(None) => tokio::time::sleep(POLL).await,
            Err(errno) => return Err(MergeError::Lock { path: target.join(NAME), source: errno.into() }),
        }
    }
}

fn attempt(root: &OwnedFd) -> Result<Option<Lock>, Errno> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(root, NAME, flags, Mode::RUSR | Mode::WUSR)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Ok(None),
        Err(errno) => return Err(errno),
    }
    // The holder before may have removed the file that is locked here, and another may be there by now.
    let locked = fstat(&file)?;
    match statat(root, NAME, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(there) if (there.st_dev, there.st_ino) == (locked.st_dev, locked.st_ino) => {
            Ok(Some(Lock { root: rustix::io::fcntl_dupfd_cloexec(root, 0)?, _file: file }))
        }
        Ok(_) | Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Still locked, so it is our own. A file that stays behind locks nobody out.
        let _ = unlinkat(&self.root, NAME, AtFlags::empty());
    }
}
