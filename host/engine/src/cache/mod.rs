//! Compiled components kept on disk.
//!
//! Compiled code runs as it is: whoever can write an entry runs code in the host. So the directory belongs
//! to one user and is closed to all others, every entry carries a keyed hash over all of its bytes, and an
//! entry is loaded only from the very bytes that were authenticated. An entry that fails is removed and
//! compiled again.

mod directory;
mod entry;

use crate::engine::Engine;
use crate::provider::Digest;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wasmtime::component::Component;

/// A directory of compiled components. Cheap to clone. Several processes may share one directory.
#[derive(Clone, Debug)]
pub struct Cache(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    directory: PathBuf,
    key: [u8; blake3::KEY_LEN],
}

/// The cache, or one of its entries, cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CacheError {
    /// The directory cannot be made, read or written.
    #[error("the cache at {} cannot be used", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// Others could write to the directory.
    #[error("the cache at {} is not safe: {reason}; give a new one that only you can enter", path.display())]
    Unsafe {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// There is no entry for this component and engine.
    #[error("the cache has no entry for {digest}; load the component's file once")]
    Missing {
        /// The component.
        digest: Digest,
    },
    /// The entry is not what this host wrote.
    #[error(
        "the cache entry for {digest} is not what this host wrote; it was removed, load the component's file again"
    )]
    Tampered {
        /// The component.
        digest: Digest,
    },
}

impl Cache {
    /// Opens a cache, making the directory when it is not there.
    ///
    /// # Errors
    /// When the directory cannot be used, or others could write to it.
    pub fn open(directory: &Path) -> Result<Cache, CacheError> {
        directory::prepare(directory)?;
        let key = directory::key(directory)?;
        Ok(Cache(Arc::new(Inner { directory: directory.into(), key })))
    }

    /// Where the entries are.
    pub fn directory(&self) -> &Path {
        &self.0.directory
    }

    /// The entry of a component; none when there is none that can be used. A bad one is removed.
    pub(crate) fn find(&self, engine: &Engine, digest: Digest) -> Option<Component> {
        match self.load(engine, digest) {
            Ok((component, _)) => Some(component),
            Err(CacheError::Missing { .. }) => None,
            Err(error) => {
                tracing::warn!(%error, "compiling again");
                None
            }
        }
    }

    /// The entry of a component, and the size of the file it was compiled from.
    pub(crate) fn load(&self, engine: &Engine, digest: Digest) -> Result<(Component, u64), CacheError> {
        let path = self.path(engine, digest);
        let bytes = match directory::read_own(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(CacheError::Missing { digest });
            }
            Err(source) => return Err(CacheError::Io { path, source }),
        };
        let loaded = entry::open(&self.0.key, digest, &bytes).and_then(|(size, code)| {
            entry::component(engine.wasmtime(), code).map(|component| (component, size))
        });
        loaded.ok_or_else(|| {
            // Left in place it would be refused at every start; whoever damaged it gains nothing by it.
            let _ = std::fs::remove_file(&path);
            CacheError::Tampered { digest }
        })
    }

    /// Keeps a compiled component.
    pub(crate) fn store(
        &self,
        engine: &Engine,
        digest: Digest,
        size: u64,
        component: &Component,
    ) -> Result<(), CacheError> {
        let path = self.path(engine, digest);
        let io = |source| CacheError::Io { path: path.clone(), source };
        let code = component.serialize().map_err(|error| io(io::Error::other(format!("{error:#}"))))?;
        let sealed = entry::seal(&self.0.key, digest, size, &code);
        directory::write_whole(&path, &sealed).map_err(io)
    }

    /// An entry fits one component and one build of the engine with its settings.
    fn path(&self, engine: &Engine, digest: Digest) -> PathBuf {
        self.0.directory.join(format!("{digest}-{}.code", entry::compatibility(engine.wasmtime())))
    }
}
