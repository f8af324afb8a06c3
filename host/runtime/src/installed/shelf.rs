//! Components of installed providers, kept by provider and digest for as long as somebody may need them.
//!
//! `<provider>/<digest>.wasm` and, beside it, what that component declared. Files are complete or not there.
//! What is no longer needed is taken away only while nobody installs or acquires, which a lock on the
//! directory says.

use crate::error::Error;
use leasehold_contract::declaration::ProviderManifest;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Locked together by whoever adds or uses something, and alone by whoever takes something away.
const LOCK: &str = ".lock";

/// Where components are kept.
#[derive(Clone, Debug)]
pub(crate) struct Shelf {
    directory: PathBuf,
}

/// As long as it lives nothing is taken off the shelf.
#[derive(Debug)]
pub(crate) struct InUse {
    _lock: File,
}

impl Shelf {
    pub(crate) fn new(directory: PathBuf) -> Shelf {
        Shelf { directory }
    }

    /// Keeps everything where it is for a while.
    pub(crate) fn in_use(&self) -> Result<InUse, Error> {
        let lock = self.lock().and_then(|lock| lock.lock_shared().map(|()| lock));
        Ok(InUse { _lock: lock.map_err(self.unusable(&self.directory))? })
    }

    /// Keeps a component and what it declares.
    pub(crate) fn keep(
        &self,
        _: &InUse,
        provider: &str,
        digest: &str,
        component: &[u8],
        manifest: &ProviderManifest,
    ) -> Result<(), Error> {
        let folder = self.directory.join(provider);
        let kept = || -> io::Result<()> {
            make(&folder)?;
            let declaration = serde_json::to_vec(manifest).map_err(io::Error::other)?;
            // The component last: where it is, its declaration is too.
            write(&folder, &format!("{digest}.json"), &declaration)?;
            write(&folder, &format!("{digest}.wasm"), component)?;
            File::open(&folder)?.sync_all()
        };
        kept().map_err(self.unusable(&folder))
    }

    /// Whether the component is there.
    pub(crate) fn has(&self, provider: &str, digest: &str) -> bool {
        self.directory.join(provider).join(format!("{digest}.wasm")).exists()
    }

    /// The file of a component.
    pub(crate) fn component(&self, provider: &str, digest: &str) -> PathBuf {
        self.directory.join(provider).join(format!("{digest}.wasm"))
    }

    /// What the component declared when it was installed.
    pub(crate) fn manifest(&self, provider: &str, digest: &str) -> Result<ProviderManifest, Error> {
        let path = self.directory.join(provider).join(format!("{digest}.json"));
        let bytes = fs::read(&path).map_err(self.unusable(&path))?;
        super::package::read_manifest(&bytes, &path.display().to_string())
    }

    /// Takes away everything that is not needed. Nothing when somebody uses the shelf at this moment; the
    /// next time will do.
    pub(crate) fn collect(&self, needed: impl Fn(&str, &str) -> bool) -> Result<(), Error> {
        let collected = || -> io::Result<()> {
            let lock = match self.lock() {
                // Nothing was ever put here.
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                lock => lock?,
            };
            if lock.try_lock().is_err() {
                return Ok(());
            }
            for provider in fs::read_dir(&self.directory)? {
                let provider = provider?;
                if provider.file_type()?.is_dir() {
                    collect_one(&provider.path(), &provider.file_name().to_string_lossy(), &needed)?;
                }
            }
            Ok(())
        };
        collected().map_err(self.unusable(&self.directory))
    }

    fn lock(&self) -> io::Result<File> {
        let path = self.directory.join(LOCK);
        let open = || OpenOptions::new().create(true).write(true).truncate(false).mode(0o600).open(&path);
        match open() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make(&self.directory)?;
                open()
            }
            opened => opened,
        }
    }

    fn unusable(&self, path: &Path) -> impl FnOnce(io::Error) -> Error {
        let path = path.to_owned();
        move |source| Error::Directory { path, source }
    }
}

fn collect_one(folder: &Path, provider: &str, needed: impl Fn(&str, &str) -> bool) -> io::Result<()> {
    let mut left = false;
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if needed(provider, &stem) {
            left = true;
        } else {
            fs::remove_file(&path)?;
        }
    }
    if left { Ok(()) } else { fs::remove_dir(folder) }
}

fn make(directory: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

/// Writes a file whole, or not at all; one that is there already stays, as its name says what it holds.
fn write(folder: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    let path = folder.join(name);
    let other = folder.join(format!(".{name}.{}", crate::id::random("new")));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&other)?;
    let written =
        file.write_all(content).and_then(|()| file.sync_all()).and_then(|()| fs::rename(&other, &path));
    if written.is_err() {
        // Half a file would only be in the way; the fault itself is reported.
        let _ = fs::remove_file(&other);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    fn manifest() -> ProviderManifest {
        super::super::embedded::declared().unwrap()
    }

    #[test]
    fn what_is_kept_is_read_back_and_only_the_unneeded_is_taken_away() {
        let directory = TempDir::new().unwrap();
        let shelf = Shelf::new(directory.path().join("providers"));
        shelf.collect(|_, _| false).unwrap();
        let in_use = shelf.in_use().unwrap();
        for (provider, digest) in [("a", "1"), ("a", "2"), ("b", "1")] {
            shelf.keep(&in_use, provider, digest, b"component", &manifest()).unwrap();
        }
        assert_eq!(shelf.manifest("a", "1").unwrap(), manifest());
        let needed = |provider: &str, digest: &str| (provider, digest) == ("a", "2");
        shelf.collect(needed).unwrap();
        assert!(shelf.has("a", "1"), "it is in use");
        drop(in_use);
        shelf.collect(needed).unwrap();
        assert!(!shelf.has("a", "1") && shelf.has("a", "2"));
        assert!(!directory.path().join("providers/b").exists());
    }
}
