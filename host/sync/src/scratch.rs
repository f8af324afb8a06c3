//! Where transfers are under way, written down so that the next start finds what a crash left.

use crate::confine::scratch_name;
use crate::sweep::sweep;
use rustix::fs::{FlockOperation, flock};
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// A directory of notes, each naming a folder in which a transfer stages.
#[derive(Clone, Debug)]
pub struct Scratch(PathBuf);

/// A note. It goes away with this value, and is locked for as long as the process lives.
#[derive(Debug)]
pub struct Noted {
    path: PathBuf,
    _lock: File,
}

impl Drop for Noted {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Scratch {
    /// Notes in this directory, which is made, for its owner alone, when the first is written.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self(directory.into())
    }

    /// Notes a folder before anything is staged in it.
    ///
    /// # Errors
    /// When the note cannot be written.
    pub fn note(&self, folder: &Path) -> io::Result<Noted> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.0)?;
        let folder = std::path::absolute(folder)?;
        let path = self.0.join(scratch_name("")?);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        file.write_all(folder.as_os_str().as_bytes())?;
        Ok(Noted { path, _lock: file })
    }

    /// Removes what transfers of processes that died have staged. Returns how many files and directories went.
    ///
    /// # Errors
    /// When the notes cannot be read. A folder that cannot be swept keeps its note for the next time.
    pub fn sweep(&self) -> io::Result<usize> {
        let notes = match std::fs::read_dir(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
            notes => notes?,
        };
        let mut removed = 0;
        for note in notes {
            let path = note?.path();
            let Ok(file) = File::open(&path) else { continue };
            if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
                continue;
            }
            let folder = PathBuf::from(OsString::from_vec(std::fs::read(&path)?));
            if let Ok(swept) = sweep(&folder) {
                removed += swept;
                let _ = std::fs::remove_file(&path);
            }
        }
        Ok(removed)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

    use super::*;

    #[test]
    fn what_is_noted_is_swept_once_its_process_is_gone() {
        let (state, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let scratch = Scratch::new(state.path().join("scratch"));
        assert_eq!(scratch.sweep().unwrap(), 0);
        std::fs::create_dir(folder.path().join(".leasehold-stage-1")).unwrap();
        let noted = scratch.note(folder.path()).unwrap();
        assert_eq!(scratch.sweep().unwrap(), 0, "a live transfer is left alone");
        // As a crash leaves it: the note without its lock.
        let text = std::fs::read(&noted.path).unwrap();
        drop(noted);
        std::fs::write(state.path().join("scratch/left"), text).unwrap();
        assert_eq!(scratch.sweep().unwrap(), 1);
        assert_eq!(std::fs::read_dir(state.path().join("scratch")).unwrap().count(), 0);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
