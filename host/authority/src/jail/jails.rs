//! All jails of one state directory.

use super::bounds::{Bounds, Enforcement};
use super::command::{Command, Exit};
use super::directory::{Root, check_name};
use super::layer::{Grant, Isolation, Layer};
use super::record::{self, Process, Record};
use super::running::{Running, clear};
use super::tar::{self, Moved};
use super::watch::Watch;
use super::{JailError, blocking, error::io_at, fetch, place, run};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::OwnedMutexGuard;

/// What this process runs under one name. Held while the jail is made, stopped or deleted.
type Slot = Arc<tokio::sync::Mutex<Option<Arc<Running>>>>;

/// The jails of one state directory.
///
/// Several processes may share the directory; each jail is run by one of them. Every jail this value runs
/// ends with it, and with the process, however that ends.
#[derive(Debug)]
pub struct Jails {
    root: Root,
    ceilings: Bounds,
    watch: Arc<Watch>,
    slots: Mutex<HashMap<String, Slot>>,
}

/// What came of making a jail.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Jail {
    /// Its name.
    pub name: String,
    /// What became of every layer.
    pub layers: BTreeMap<Layer, Grant>,
    /// Who holds every bound, by the bound's name.
    pub enforcement: BTreeMap<&'static str, Enforcement>,
}

/// What is known of a jail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Processes can run.
    Running,
    /// Its files are kept; nothing runs.
    Stopped,
}

impl Jails {
    /// Opens the state directory, making it if need be.
    ///
    /// Refused when others own it or can enter it: whoever can write there decides what runs.
    pub fn open(root: &Path) -> Result<Jails, JailError> {
        Ok(Jails {
            root: Root::open(root)?,
            ceilings: Bounds::default(),
            watch: Arc::default(),
            slots: Mutex::default(),
        })
    }

    /// Sets the most that a jail may ask for. What is not set stays at fifteen sixteenths of the machine's memory
    /// and free disk, and 1,024 processes a processor. What a jail gets that asks for nothing is cut to it.
    #[must_use]
    pub fn with_ceilings(mut self, ceilings: Bounds) -> Jails {
        self.ceilings = ceilings;
        self
    }

    /// Makes the jail and starts it. One of that name that runs here is taken as it is, with the bounds it
    /// has; one that is stopped is started with these bounds and keeps its files.
    ///
    /// Dropping the future does not undo it: the jail may come up and is then found by its name.
    pub async fn create(&self, name: &str, bounds: Bounds, isolation: &Isolation) -> Result<Jail, JailError> {
        check_name(name)?;
        let mut slot = self.slot(name).await;
        let (root, name, isolation) = (self.root.clone(), name.to_owned(), isolation.clone());
        let (watch, ceilings) = (Arc::clone(&self.watch), self.ceilings);
        blocking(&self.root.path(&name), move || {
            if let Some(running) = slot.as_ref() {
                if running.alive() {
                    return Ok(describe(running));
                }
                running.stop()?;
                *slot = None;
            }
            let bounds = root.fitted(&name, bounds, ceilings)?;
            let locked = root.lock_or_make(&name)?;
            let running = Arc::new(Running::start(&root, &name, locked, bounds, &isolation, watch.pulse())?);
            watch.add(&running).map_err(io_at("start a thread for", running.locked.path.clone()))?;
            let jail = describe(&running);
            *slot = Some(running);
            Ok(jail)
        })
        .await
    }

    /// Starts a jail that one of its bounds ended once more, so that its files can be read by its own programs.
    /// The disk it has filled is not counted against it this time. Any other jail is left as it is.
    pub async fn revive(&self, name: &str, isolation: &Isolation) -> Result<(), JailError> {
        let ended = self.running_here(name).await.filter(|running| running.limit().is_some());
        let Some(ended) = ended else { return Ok(()) };
        let bounds = Bounds { disk_bytes: None, ..ended.bounds };
        drop(ended);
        self.create(name, bounds, isolation).await.map(drop)
    }

    /// Looks a jail up, whichever process runs it; none when there is none of that name.
    pub async fn find(&self, name: &str) -> Result<Option<Standing>, JailError> {
        check_name(name)?;
        if let Some(running) = self.running_here(name).await {
            return Ok(Some(if running.alive() { Standing::Running } else { Standing::Stopped }));
        }
        self.standing(name)
    }

    /// Every jail there is, in the order of names.
    pub async fn list(&self) -> Result<Vec<(String, Standing)>, JailError> {
        let mut listed = Vec::new();
        for name in self.root.entries()?.0 {
            if let Some(standing) = self.find(&name).await? {
                listed.push((name, standing));
            }
        }
        Ok(listed)
    }

    /// Runs a command to its end, moving its streams as it goes.
    ///
    /// When its time is over, every process of its session is asked to end (SIGTERM) and made to (SIGKILL)
    /// two seconds later. Dropping the future ends them at once. What a finished command left in the
    /// background lives on until the jail is stopped; what it writes from then on is dropped.
    pub async fn run(
        &self,
        name: &str,
        command: &Command,
        input: impl AsyncRead + Send + Unpin,
        output: impl AsyncWrite + Send + Unpin,
        error: impl AsyncWrite + Send + Unpin,
    ) -> Result<Exit, JailError> {
        check_name(name)?;
        let Some(running) = self.running_here(name).await else { return Err(self.not_here(name)) };
        if !running.alive() {
            return Err(running.limit().map_or_else(|| JailError::Stopped { name: name.into() }, Into::into));
        }
        run::run(running, command, input, output, error).await
    }

    /// Puts one file's bytes at an absolute path in the jail, which may be stopped. Missing directories are
    /// made. Returns files and bytes.
    ///
    /// The target holds its old content or all of the new, never a part.
    pub async fn place(
        &self,
        name: &str,
        path: &str,
        mode: Option<u32>,
        from: impl AsyncRead + Send + Unpin,
    ) -> Result<Moved, JailError> {
        let (record, running) = (self.record(name)?, self.running_here(name).await);
        let used = running.as_ref().map(|running| &running.disk_used);
        let bytes = place::place(&self.root.path(name), &record, used, path, mode, from).await?;
        Ok(Moved { files: 1, bytes })
    }

    /// Reads one regular file at an absolute path in the jail, which may be stopped. Returns files and bytes.
    ///
    /// Only what the jail itself can write is reached, not the system it sees.
    pub async fn fetch(
        &self,
        name: &str,
        path: &str,
        into: impl AsyncWrite + Send + Unpin,
    ) -> Result<Moved, JailError> {
        self.record(name)?;
        let bytes = fetch::fetch(&self.root.path(name), path, into).await?;
        Ok(Moved { files: 1, bytes })
    }

    /// Unpacks a tar stream into a directory of a running jail, by the jail's own `tar`.
    pub async fn extract(
        &self,
        name: &str,
        path: &str,
        from: impl AsyncRead + Send + Unpin,
    ) -> Result<Moved, JailError> {
        tar::extract(self, name, path, from).await
    }

    /// Packs a directory of a running jail into a tar stream, by the jail's own `tar`. `excludes` are
    /// patterns of GNU tar; with `follow` links are replaced by what they lead to.
    pub async fn archive(
        &self,
        name: &str,
        path: &str,
        excludes: &[String],
        follow: bool,
        into: impl AsyncWrite + Send + Unpin,
    ) -> Result<Moved, JailError> {
        tar::archive(self, name, path, excludes, follow, into).await
    }

    /// Ends every process of the jail; keeps the files.
    pub async fn stop(&self, name: &str) -> Result<(), JailError> {
        check_name(name)?;
        let mut slot = self.slot(name).await;
        let (root, name) = (self.root.clone(), name.to_owned());
        blocking(&self.root.path(&name), move || {
            if let Some(running) = slot.as_ref() {
                running.stop()?;
                *slot = None;
                return Ok(());
            }
            // Not run here: by a host that died, by nobody, or by another host, which is an error.
            let locked = root.lock(&name)?.ok_or_else(|| JailError::Missing { name: name.clone() })?;
            clear(&name, &locked).map(|_| ())
        })
        .await
    }

    /// Ends every process and deletes the files. False when there was no such jail.
    pub async fn destroy(&self, name: &str) -> Result<bool, JailError> {
        check_name(name)?;
        let mut slot = self.slot(name).await;
        let (root, owned) = (self.root.clone(), name.to_owned());
        let existed = blocking(&self.root.path(name), move || {
            if let Some(running) = slot.as_ref() {
                running.stop()?;
                *slot = None;
            }
            let Some(locked) = root.lock(&owned)? else { return Ok(false) };
            clear(&owned, &locked)?;
            root.delete(locked)?;
            Ok(true)
        })
        .await?;
        self.forget_empty(name);
        Ok(existed)
    }

    /// Cleans up after hosts that died: ends what may still run, removes control groups, and finishes what
    /// was half deleted. Jails of live hosts are left alone. Returns the names of jails whose host had died
    /// while it ran them; their files are kept.
    pub async fn reap(&self) -> Result<Vec<String>, JailError> {
        let root = self.root.clone();
        blocking(&self.root.path("."), move || {
            let (names, gone) = root.entries()?;
            for path in gone {
                Root::delete_gone(&path)?;
            }
            let mut reaped = Vec::new();
            for name in names {
                let Some(locked) = root.try_lock(&name)? else { continue };
                let ran = locked.record()?.is_some_and(|record| record.owner.is_some());
                clear(&name, &locked)?;
                if ran {
                    reaped.push(name);
                }
            }
            Ok(reaped)
        })
        .await
    }

    /// The slot of that name, taken.
    async fn slot(&self, name: &str) -> OwnedMutexGuard<Option<Arc<Running>>> {
        loop {
            let slot = Arc::clone(self.table().entry(name.to_owned()).or_default());
            let guard = Arc::clone(&slot).lock_owned().await;
            // It may have been forgotten while this waited; then the name has another one by now.
            if self.table().get(name).is_some_and(|now| Arc::ptr_eq(now, &slot)) {
                return guard;
            }
        }
    }

    async fn running_here(&self, name: &str) -> Option<Arc<Running>> {
        let slot = Arc::clone(self.table().get(name)?);
        slot.lock().await.clone()
    }

    /// Drops the slot of a jail that is gone, so that names do not add up.
    fn forget_empty(&self, name: &str) {
        let mut table = self.table();
        if table.get(name).is_some_and(|slot| slot.try_lock().is_ok_and(|running| running.is_none())) {
            table.remove(name);
        }
    }

    fn table(&self) -> std::sync::MutexGuard<'_, HashMap<String, Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Standing of a jail that is not run here, by its record.
    fn standing(&self, name: &str) -> Result<Option<Standing>, JailError> {
        let path = self.root.path(name);
        if !path.is_dir() {
            return Ok(None);
        }
        let init = record::read(&path)?.and_then(|record| record.init);
        Ok(Some(if init.is_some_and(|init| init.alive()) { Standing::Running } else { Standing::Stopped }))
    }

    fn not_here(&self, name: &str) -> JailError {
        let path: PathBuf = self.root.path(name);
        match record::read(&path) {
            Err(error) => error,
            Ok(_) if !path.is_dir() => JailError::Missing { name: name.into() },
            Ok(record) => match record.and_then(|record| record.owner).filter(Process::alive) {
                Some(owner) => JailError::Busy { name: name.into(), owner: owner.pid },
                None => JailError::Stopped { name: name.into() },
            },
        }
    }

    fn record(&self, name: &str) -> Result<Record, JailError> {
        check_name(name)?;
        record::read(&self.root.path(name))?.ok_or_else(|| JailError::Missing { name: name.into() })
    }
}

impl Drop for Jails {
    /// Ends every jail now, although something that is just ending may still hold a part of it. Waits for
    /// their processes, which takes milliseconds.
    fn drop(&mut self) {
        let slots = std::mem::take(&mut *self.table());
        // One that is locked is being made, stopped or deleted; it ends with the last who holds it.
        let running = slots.values().filter_map(|slot| slot.try_lock().ok()?.take());
        for jail in running {
            if let Err(error) = jail.stop() {
                tracing::warn!(jail = jail.name, %error, "the jail could not be stopped");
            }
        }
    }
}

fn describe(running: &Running) -> Jail {
    Jail {
        name: running.name.clone(),
        layers: running.layers.clone(),
        enforcement: running.enforcement.clone(),
    }
}
