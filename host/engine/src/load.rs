//! From bytes to a compiled component. Everything that can be refused cheaply is refused before the
//! compiler sees it.

use crate::cache::CacheError;
use crate::engine::Engine;
use crate::inspect::Inspection;
use crate::limits::COMPONENT_BYTES_MAX;
use crate::provider::{Compiled, Digest};
use leasehold_contract::text::plain;
use std::borrow::Cow;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wasmtime::Precompiled;
use wasmtime::component::Component;

/// A file that is no component this engine can use.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The file is larger than any component may be.
    #[error(
        "the component has {bytes} bytes and may have {COMPONENT_BYTES_MAX}; strip debug sections or split it"
    )]
    TooLarge {
        /// Its size.
        bytes: u64,
    },
    /// Neither a WebAssembly binary nor its text form.
    #[error("this is no WebAssembly component: {reason}")]
    NotWebAssembly {
        /// What it looks like instead.
        reason: String,
    },
    /// A core module: the right tool makes a component of it.
    #[error(
        "this is a core module, not a component; build for `wasm32-wasip2`, or turn it into a component with `wasm-tools component new`"
    )]
    CoreModule,
    /// Code that somebody compiled already. It would run unchecked.
    #[error("this is precompiled code, which cannot be checked; give the component it was made from")]
    Precompiled,
    /// The text form has a mistake.
    #[error("the text form has a mistake: {0}")]
    Text(String),
    /// A component that is broken, or needs what this engine leaves off.
    #[error("the component is not valid here: {0}")]
    Invalid(String),
    /// The cache holds no usable entry and there are no bytes to compile.
    #[error(transparent)]
    Cache(#[from] CacheError),
}

/// The first bytes of every WebAssembly binary.
const MAGIC: &[u8] = b"\0asm";

/// Version and layer of a core module; anything else after the magic is left to the parser.
const CORE_MODULE: &[u8] = &[1, 0, 0, 0];

impl Engine {
    /// Loads a component from a file, in binary or text form. Blocks while compiling.
    ///
    /// # Errors
    /// When the file cannot be read, is too large, or is no component.
    pub fn load_file(&self, path: &Path) -> Result<Compiled, LoadError> {
        let unreadable = |source| LoadError::Unreadable { path: path.into(), source };
        // Without waiting: a pipe that nobody writes to would hold the caller for ever.
        let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let file = File::options().read(true).custom_flags(nonblocking).open(path).map_err(unreadable)?;
        let metadata = file.metadata().map_err(unreadable)?;
        if !metadata.is_file() {
            return Err(unreadable(std::io::Error::other("it is no regular file")));
        }
        let size = metadata.len();
        if size > COMPONENT_BYTES_MAX {
            return Err(LoadError::TooLarge { bytes: size });
        }
        // A file that grows meanwhile is cut one byte above what is allowed.
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
        file.take(COMPONENT_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
        self.load(&bytes)
    }

    /// Loads a component from bytes, in binary or text form, through the cache when there is one. Blocks
    /// while compiling.
    ///
    /// # Errors
    /// When the bytes are too many, or are no component.
    pub fn load(&self, bytes: &[u8]) -> Result<Compiled, LoadError> {
        let size = bytes.len() as u64;
        if size > COMPONENT_BYTES_MAX {
            return Err(LoadError::TooLarge { bytes: size });
        }
        let binary = binary(bytes)?;
        let digest = Digest::of(&binary);
        let component = match self.cache().and_then(|cache| cache.find(self, digest)) {
            Some(component) => component,
            None => self.compile(&binary, digest)?,
        };
        Ok(self.compiled(component, digest, binary.len() as u64))
    }

    /// Loads a component from the cache alone, by its digest.
    ///
    /// # Errors
    /// When there is no cache, no entry, or an entry that fails authentication.
    pub fn load_cached(&self, digest: Digest) -> Result<Compiled, LoadError> {
        let cache = self.cache().ok_or(CacheError::Missing { digest })?;
        let (component, component_bytes) = cache.load(self, digest)?;
        Ok(self.compiled(component, digest, component_bytes))
    }

    fn compile(&self, binary: &[u8], digest: Digest) -> Result<Component, LoadError> {
        // The compiler is large and its input is anybody's: a panic in it is this component's fault.
        let compile = || Component::from_binary(self.wasmtime(), binary);
        let component = match std::panic::catch_unwind(AssertUnwindSafe(compile)) {
            Ok(compiled) => compiled.map_err(|error| LoadError::Invalid(bounded(&format!("{error:#}"))))?,
            Err(_) => return Err(LoadError::Invalid("the compiler failed on it; please report this".into())),
        };
        if let Some(cache) = self.cache()
            && let Err(error) = cache.store(self, digest, binary.len() as u64, &component)
        {
            tracing::warn!(%digest, %error, "the compiled component was not cached");
        }
        Ok(component)
    }

    fn compiled(&self, component: Component, digest: Digest, component_bytes: u64) -> Compiled {
        let inspection = Arc::new(Inspection::of(self.wasmtime(), &component));
        Compiled { engine: self.clone(), component, digest, component_bytes, inspection }
    }
}

/// The binary form of a component, when the bytes could be one at all.
fn binary(bytes: &[u8]) -> Result<Cow<'_, [u8]>, LoadError> {
    if wasmtime::Engine::detect_precompiled(bytes)
        .is_some_and(|kind| matches!(kind, Precompiled::Component | Precompiled::Module))
    {
        return Err(LoadError::Precompiled);
    }
    if let Some(rest) = bytes.strip_prefix(MAGIC) {
        return match rest.get(..CORE_MODULE.len()) {
            Some(version) if version == CORE_MODULE => Err(LoadError::CoreModule),
            Some(_) => Ok(Cow::Borrowed(bytes)),
            None => Err(LoadError::NotWebAssembly { reason: "it ends after the first bytes".into() }),
        };
    }
    let not = |reason: &str| LoadError::NotWebAssembly { reason: reason.into() };
    if bytes.is_empty() {
        return Err(not("the file is empty"));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| not("it is neither the binary nor the text form"))?;
    if !text.trim_start().starts_with(['(', ';']) {
        return Err(not("it is neither the binary nor the text form"));
    }
    let binary = wat::parse_str(text).map_err(|error| LoadError::Text(bounded(&error.to_string())))?;
    if binary.get(MAGIC.len()..MAGIC.len() + CORE_MODULE.len()) == Some(CORE_MODULE) {
        return Err(LoadError::CoreModule);
    }
    Ok(Cow::Owned(binary))
}

/// A message of a parser may quote the file; more of it than this helps nobody.
const MESSAGE_MAX: usize = 1_000;

fn bounded(message: &str) -> String {
    plain(message, MESSAGE_MAX)
}
