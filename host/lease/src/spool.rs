//! What the store did not take: one file a lease, whole or not there, on the disk before anything goes on.

use crate::fault::Step;
use crate::{CleanupRecord, Disposition, Lease, ProviderLease, StoreError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Records kept in memory where there is no folder or it fails as well. A host that loses more than this at
/// once has lost its disk; the creation names in the store still lead to what is left.
const IN_MEMORY: usize = 256;

/// The longest file that is read: a lease with the most metadata and configuration there can be, twice over.
const LONGEST: u64 = 1 << 20;

/// What was learned of a lease and could not be written down.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Spooled {
    /// The lease as it was stored last.
    pub(crate) lease: Lease,
    pub(crate) allocation: Option<ProviderLease>,
    pub(crate) cleanup: Option<CleanupRecord>,
    /// The proof of its end, where there is one.
    pub(crate) disposition: Option<Disposition>,
    pub(crate) reason: String,
    pub(crate) at_ms: u64,
}

/// The folder, and what it did not take either.
#[derive(Clone, Debug)]
pub(crate) struct Spool {
    folder: Option<PathBuf>,
    memory: Arc<Mutex<BTreeMap<String, Spooled>>>,
}

impl Spool {
    pub(crate) fn new(folder: Option<PathBuf>) -> Spool {
        Spool { folder, memory: Arc::default() }
    }

    /// Puts a record aside, in place of an earlier one of the same lease.
    pub(crate) async fn put(&self, spooled: &Spooled) {
        let (spool, spooled) = (self.clone(), spooled.clone());
        let put = tokio::task::spawn_blocking(move || spool.put_now(&spooled));
        if put.await.is_err() {
            tracing::error!("what the store did not take was lost as the runtime ended");
        }
    }

    fn put_now(&self, spooled: &Spooled) {
        let id = spooled.lease.id.as_str().to_owned();
        Step::Spool.before();
        let written = match &self.folder {
            Some(folder) => write(folder, &id, spooled),
            None => Err(io::Error::other("no folder was named")),
        };
        Step::Spool.after();
        let Err(error) = written else { return };
        tracing::error!(lease = id, %error, "what the store did not take is kept in memory only");
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        if memory.len() < IN_MEMORY || memory.contains_key(&id) {
            memory.insert(id, spooled.clone());
        }
    }

    /// Everything that was put aside. What is no record is left where it is and passed over.
    pub(crate) async fn all(&self) -> Result<Vec<Spooled>, StoreError> {
        let spool = self.clone();
        let read = tokio::task::spawn_blocking(move || spool.all_now());
        read.await.unwrap_or(Err(StoreError::Ended { doing: "reading what was put aside" }))
    }

    fn all_now(&self) -> Result<Vec<Spooled>, StoreError> {
        let memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<Spooled> = memory.values().cloned().collect();
        drop(memory);
        let Some(folder) = &self.folder else { return Ok(all) };
        let failed = |source| StoreError::Spool { path: folder.clone(), source };
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(all),
            Err(error) => return Err(failed(error)),
        };
        for entry in entries {
            let path = entry.map_err(failed)?.path();
            match read(&path) {
                Ok(Some(spooled)) => all.push(spooled),
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(path = %path.display(), %error, "is no record and is passed over")
                }
            }
        }
        Ok(all)
    }

    /// Forgets a record that the store has taken.
    pub(crate) async fn remove(&self, spooled: &Spooled) -> Result<(), StoreError> {
        let id = spooled.lease.id.as_str().to_owned();
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        let Some(folder) = &self.folder else { return Ok(()) };
        let path = file(folder, &id);
        match fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(StoreError::Spool { path, source })
            }
            _ => Ok(()),
        }
    }
}

fn file(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.json"))
}

/// Whole or not at all: written under another name, on the disk, then named.
fn write(folder: &Path, id: &str, spooled: &Spooled) -> io::Result<()> {
    let mut make = fs::DirBuilder::new();
    make.recursive(true);
    let mut create = OpenOptions::new();
    create.write(true).create(true).truncate(true);
    #[cfg(unix)]
    {
        std::os::unix::fs::DirBuilderExt::mode(&mut make, 0o700);
        std::os::unix::fs::OpenOptionsExt::mode(&mut create, 0o600);
    }
    make.create(folder)?;
    let unfinished = folder.join(format!(".{id}"));
    let written = create.open(&unfinished).and_then(|mut file| {
        file.write_all(&serde_json::to_vec(spooled)?)?;
        file.sync_all()
    });
    if let Err(error) = written {
        fs::remove_file(&unfinished).ok();
        return Err(error);
    }
    fs::rename(&unfinished, file(folder, id))?;
    File::open(folder)?.sync_all()
}

/// The record in a file; none when it is not one of ours by its name.
fn read(path: &Path) -> io::Result<Option<Spooled>> {
    if path.extension().is_none_or(|extension| extension != "json") {
        return Ok(None);
    }
    let found = fs::symlink_metadata(path)?;
    if !found.is_file() || found.len() > LONGEST {
        return Err(io::Error::other("no file, or too long"));
    }
    let spooled: Spooled = serde_json::from_slice(&fs::read(path)?)?;
    Ok(Some(spooled))
}
