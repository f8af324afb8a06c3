//! Loading a component for commands that look at one.

use crate::home;
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
        if let Some(directory) = &self.cache {
            return Ok(Some(Cache::open(directory)?));
        }
        // The usual cache only saves time; without it everything works the same.
        let opened = home::cache().map(|directory| Cache::open(&directory));
        Ok(opened.and_then(|opened| match opened {
            Ok(cache) => Some(cache),
            Err(error) => {
                let source = std::error::Error::source(&error).map(|source| format!(": {source}"));
                tracing::warn!("{error}{}", source.unwrap_or_default());
                None
            }
        }))
    }
}
