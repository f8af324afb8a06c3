//! Loading a component for commands that look at one.

use anyhow::Context;
use clap::Args;
use leasehold_engine::{Cache, Compiled, Engine, EngineOptions};
use std::path::PathBuf;

/// Which component, and where compiled code is kept.
#[derive(Args)]
pub(crate) struct Component {
    /// The component, in binary or text form.
    file: PathBuf,
    /// Directory for compiled code [default: leasehold/compiled in the user's cache directory].
    #[arg(long, value_name = "DIR", conflicts_with = "no_cache")]
    cache: Option<PathBuf>,
    /// Compile afresh and keep nothing.
    #[arg(long)]
    no_cache: bool,
}

impl Component {
    /// Loads the component. Nothing of it runs.
    pub(crate) fn load(&self) -> anyhow::Result<Compiled> {
        let engine = Engine::new(EngineOptions { cache: self.cache()?, ..EngineOptions::default() })?;
        engine.load_file(&self.file).with_context(|| self.name())
    }

    /// How the component is called in what people read.
    pub(crate) fn name(&self) -> String {
        self.file.display().to_string()
    }

    fn cache(&self) -> anyhow::Result<Option<Cache>> {
        if self.no_cache {
            return Ok(None);
        }
        match self.cache.clone().or_else(user_cache) {
            Some(directory) => Ok(Some(Cache::open(&directory)?)),
            None => Ok(None),
        }
    }
}

/// The user's cache directory by the rules of the desktop specification; none without a home.
fn user_cache() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(base.join("leasehold").join("compiled"))
}
