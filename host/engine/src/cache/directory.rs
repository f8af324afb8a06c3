//! The cache's directory: who may write to it, its key, and how files come into it.

use super::CacheError;
use rustix::fs::OFlags;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Name of the file with the key that entries are authenticated with.
const KEY_FILE: &str = "key";

/// Makes the directory, or checks that nobody else could have put anything into it.
pub(super) fn prepare(directory: &Path) -> Result<(), CacheError> {
    let io = |source| CacheError::Io { path: directory.into(), source };
    // Without a slash at its end, or a link would be followed.
    let directory: &Path = &directory.components().collect::<std::path::PathBuf>();
    DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(io)?;
    let metadata = std::fs::symlink_metadata(directory).map_err(io)?;
    let refuse = |reason| Err(CacheError::Unsafe { path: directory.into(), reason });
    if !metadata.is_dir() {
        return refuse("it is no directory");
    }
    if metadata.mode() & 0o077 != 0 {
        return refuse("others can enter it");
    }
    if metadata.uid() != own_uid() {
        return refuse("it belongs to somebody else");
    }
    Ok(())
}

/// The key, made at the first use. Two processes that start together end with the same one.
pub(super) fn key(directory: &Path) -> Result<[u8; blake3::KEY_LEN], CacheError> {
    let path = directory.join(KEY_FILE);
    let io = |source| CacheError::Io { path: path.clone(), source };
    if let Some(key) = read_key(&path).map_err(io)? {
        return Ok(key);
    }
    let mut fresh = [0; blake3::KEY_LEN];
    getrandom::fill(&mut fresh).map_err(|error| io(io::Error::other(error)))?;
    let draft = temporary(&path).map_err(io)?;
    let linked = write_new(&draft, &fresh).and_then(|()| std::fs::hard_link(&draft, &path));
    let _ = std::fs::remove_file(&draft);
    match linked {
        Err(source) if source.kind() != io::ErrorKind::AlreadyExists => Err(io(source)),
        // Whoever was first decides, so the key is read back either way.
        _ => read_key(&path).map_err(io)?.ok_or_else(|| io(io::Error::other("the key vanished"))),
    }
}

/// Puts a file in place whole or not at all.
pub(super) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let draft = temporary(path)?;
    let written = write_new(&draft, bytes).and_then(|()| std::fs::rename(&draft, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&draft);
    }
    written
}

/// None when there is no key yet. A key that somebody else could have put there is none of ours.
fn read_key(path: &Path) -> io::Result<Option<[u8; blake3::KEY_LEN]>> {
    match read_own(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
        Ok(bytes) => match bytes.try_into() {
            Ok(key) => Ok(Some(key)),
            Err(_) => Err(io::Error::other("the key is damaged; delete the directory, it is only a cache")),
        },
    }
}

/// Reads a file that this user made and nobody else can write to. Links and pipes are refused unopened.
pub(super) fn read_own(path: &Path) -> io::Result<Vec<u8>> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let mut file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.uid() != own_uid() || metadata.mode() & 0o077 != 0 {
        return Err(io::Error::other(
            "it is not a file of this user alone; delete the directory, it is only a cache",
        ));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0));
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// A name beside `path` that no other writer uses.
fn temporary(path: &Path) -> io::Result<std::path::PathBuf> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{:016x}", u64::from_le_bytes(random)));
    Ok(path.with_file_name(name))
}

/// The user this process acts as: the owner of what it creates.
fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}
