//! Which folder goes along.

use anyhow::Context;
use leasehold::WalkOptions;
use leasehold::contract::text::plain;
use std::path::{Path, PathBuf};

/// Bytes of a path that a message shows.
const SHOWN: usize = 1_000;

/// A folder to take in.
pub(super) struct Folder {
    pub(super) path: PathBuf,
    /// Whether somebody named it; then it may be as large as it is.
    named: bool,
}

impl Folder {
    /// What is left out, and how large it may be.
    pub(super) fn options(&self) -> WalkOptions {
        let mut options = WalkOptions::default();
        if self.named {
            options.max_entries = usize::MAX;
        }
        options
    }
}

/// The folder that was named, else the current one unless that would be a mistake.
pub(super) fn choose(named: Option<PathBuf>, none: bool) -> anyhow::Result<Option<Folder>> {
    if none {
        return Ok(None);
    }
    let real = |path: &Path| {
        let shown = plain(&path.to_string_lossy(), SHOWN);
        let real = path
            .canonicalize()
            .with_context(|| format!("give --sync a folder that is there; cannot use the folder {shown}"))?;
        anyhow::ensure!(real.is_dir(), "{shown} is no folder; --sync takes one");
        Ok(real)
    };
    if let Some(path) = named {
        return Ok(Some(Folder { path: real(&path)?, named: true }));
    }
    let path = real(Path::new("."))?;
    let mistake = if path == Path::new("/") {
        Some("the root directory")
    } else if std::env::var_os("HOME").map(PathBuf::from).and_then(|home| home.canonicalize().ok())
        == Some(path.clone())
    {
        Some("your home directory")
    } else {
        None
    };
    match mistake {
        Some(what) => anyhow::bail!(
            "the current folder is {what}, which is not taken in by itself; change to a project, name it with --sync, or use --no-sync"
        ),
        None => Ok(Some(Folder { path, named: false })),
    }
}
