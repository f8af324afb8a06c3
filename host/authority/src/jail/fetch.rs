//! One file's bytes out of a jail, running or stopped.

use super::directory::files_of;
use super::{JailError, beneath};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::path::Path;
use tokio::io::{AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// Bytes moved at a time.
const PIECE: usize = 256 << 10;

/// Reads a regular file. Returns how many bytes it had.
pub(super) async fn fetch(
    jail: &Path,
    path: &str,
    mut into: impl AsyncWrite + Send + Unpin,
) -> Result<u64, JailError> {
    let (files, source) = (files_of(jail), path.to_owned());
    let file = super::blocking(jail, move || open(&files, &source)).await?;
    let fail = |source| JailError::Transfer { path: path.into(), source };
    let mut file = tokio::fs::File::from_std(file);
    let (mut piece, mut bytes) = (vec![0; PIECE], 0);
    loop {
        let length = file.read(&mut piece).await.map_err(fail)?;
        if length == 0 {
            break;
        }
        into.write_all(piece.get(..length).unwrap_or_default()).await.map_err(fail)?;
        bytes += length as u64;
    }
    into.flush().await.map_err(fail)?;
    Ok(bytes)
}

fn open(files: &Path, path: &str) -> Result<std::fs::File, JailError> {
    let refuse = |reason: &str| JailError::Path { path: path.into(), reason: reason.into() };
    let fail = |errno: Errno| JailError::Transfer { path: path.into(), source: errno.into() };
    if !path.starts_with('/') {
        return Err(refuse("it must be absolute"));
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let files = rustix::fs::open(files, flags, Mode::empty()).map_err(fail)?;
    // Without blocking: a pipe that nobody writes to must not hold the host up.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = match beneath::open(&files, path, flags) {
        // A socket, or a device without a driver.
        Err(Errno::NXIO | Errno::NODEV) => return Err(refuse("it is no regular file")),
        other => other.map_err(fail)?,
    };
    if beneath::is_file(&file).map_err(fail)? {
        Ok(file.into())
    } else {
        Err(refuse("it is no regular file"))
    }
}
