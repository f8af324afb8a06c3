//! Files and folders in and out.
//!
//! Every path of an operation is confined before anything of it is sent. Providers with both transfer methods get
//! the content through their hooks; all others get it as base64 over commands, with the same result.

mod changes;
mod fallback;
mod native;
mod workspace;

pub use workspace::Synced;

use super::Session;
use crate::error::Error;
use leasehold_contract::Method;
use leasehold_contract::capability::native_sync;
use leasehold_engine::Bill;
use leasehold_sync::fallback::{FallbackError, Line, Shell as _, quote};
use leasehold_sync::{MappingKind, Moved, Noted, Operation, Progress, Roots, Scratch, confine};
use std::path::Path;

/// Operations and where their paths may lie.
#[derive(Clone, Debug, Default)]
pub struct Transfer {
    /// What is moved, in order.
    pub operations: Vec<Operation>,
    /// Directories that sources have to lie under.
    pub sources: Roots,
    /// Directories that targets have to lie under.
    pub targets: Roots,
    /// Counts on the way.
    pub progress: Progress,
}

/// The ways to move files that a provider offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Its own hooks, which count only as a pair.
    Native,
    /// Base64 over its commands.
    Fallback,
}

impl Transfer {
    fn confined(&self) -> Result<Vec<Operation>, Error> {
        let operations = confine(&self.operations, &self.sources, &self.targets)?;
        for mapping in operations.iter().flat_map(|operation| &operation.mappings) {
            // A directory replaces all that its target holds.
            if mapping.kind == MappingKind::Directory && mapping.target == Path::new("/") {
                return Err(Error::WholeRoot);
            }
        }
        Ok(operations)
    }
}

impl Session {
    /// Moves files from the host into the sandbox, operation by operation; the first that fails is the last.
    /// Returns what each moved.
    ///
    /// # Errors
    /// When a path lies where it may not, something cannot be read or sent whole, a command after an upload
    /// fails, or the provider's numbers are not the host's. Operations before it stay done.
    pub async fn transfer_in(&self, transfer: &Transfer) -> Result<Vec<Moved>, Error> {
        let way = self.way()?;
        let mut moved = Vec::new();
        for operation in transfer.confined()? {
            moved.push(match way {
                Way::Native => Box::pin(self.native_in(&operation, transfer)).await?,
                Way::Fallback => Box::pin(self.fallback_in(&operation, transfer)).await?,
            });
        }
        Ok(moved)
    }

    /// Moves files from the sandbox to the host, operation by operation; the first that fails is the last.
    /// Each file and directory is checked whole before it replaces its target. Returns what each moved.
    ///
    /// # Errors
    /// When a path lies where it may not, the provider does not deliver everything, or what it delivers breaks a
    /// rule; the target is then as it was. Operations before it stay done.
    pub async fn transfer_out(&self, transfer: &Transfer) -> Result<Vec<Moved>, Error> {
        let way = self.way()?;
        let mut moved = Vec::new();
        for operation in transfer.confined()? {
            let targets = operation.mappings.iter().filter_map(|mapping| mapping.target.parent());
            let _noted = targets.map(|folder| self.note(folder)).collect::<Result<Vec<_>, _>>()?;
            moved.push(match way {
                Way::Native => Box::pin(self.native_out(&operation, transfer)).await?,
                Way::Fallback => Box::pin(self.fallback_out(&operation, transfer)).await?,
            });
        }
        Ok(moved)
    }

    /// Writes into the lease's history what went in.
    async fn went_in(&self, moved: Moved, bill: &Bill) {
        self.record(&format!("{} files of {} bytes went in", moved.files, moved.bytes), bill).await;
    }

    /// Writes into the lease's history what came back.
    async fn came_back(&self, moved: Moved, bill: &Bill) {
        self.record(&format!("{} files of {} bytes came back", moved.files, moved.bytes), bill).await;
    }

    /// Notes that something is staged in a folder, so that it is found if this process dies.
    fn note(&self, folder: &Path) -> Result<Noted, Error> {
        let scratch = Scratch::new(self.state.join("scratch"));
        scratch.note(folder).map_err(|source| Error::Directory { path: self.state.clone(), source })
    }

    /// What stands at a path of the sandbox: a file or a directory, reached without a link at its end; none for
    /// anything else.
    ///
    /// # Errors
    /// When the provider runs no commands, or the sandbox cannot be asked.
    pub async fn kind_of(&self, path: &str) -> Result<Option<MappingKind>, Error> {
        self.needs(&[Method::Execute])?;
        let at = quote(path);
        let text = format!(
            "if [ -L {at} ]; then :; elif [ -d {at} ]; then echo d; elif [ -f {at} ]; then echo f; fi"
        );
        let ran = self.run(Line { text, ..Line::default() }).await;
        let ran =
            ran.map_err(|source| FallbackError::Shell { doing: "looking at", path: path.into(), source })?;
        Ok(match ran.output.first() {
            Some(b'd') => Some(MappingKind::Directory),
            Some(b'f') => Some(MappingKind::File),
            _ => None,
        })
    }

    fn way(&self) -> Result<Way, Error> {
        let native = self.native_transfer && native_sync(&self.capabilities, true);
        match self.needs(&[Method::SyncIn, Method::SyncOut]) {
            Ok(()) if native => Ok(Way::Native),
            Ok(()) => self.needs(&[Method::Execute]).map(|()| Way::Fallback),
            Err(missing) => self.needs(&[Method::Execute]).map(|()| Way::Fallback).map_err(|_| missing),
        }
    }
}

/// The path as the interfaces of a sandbox have it.
fn sandbox_path(path: &Path) -> Result<String, Error> {
    path.to_str().map(str::to_owned).ok_or_else(|| Error::NotText { path: path.into() })
}

/// Work that waits on the disk, on a thread where that is allowed.
async fn blocking<T: Send + 'static>(
    doing: &'static str,
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(work).await.map_err(|_| Error::CutOff { doing })?
}
