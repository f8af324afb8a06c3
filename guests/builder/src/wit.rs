//! Resolves the contract, as it is or edited, and worlds made up for one fixture.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use wit_parser::{PackageId, Resolve, SourceMap, UnresolvedPackageGroup, WorldId};

use crate::layout;

/// The contract, read once; every fixture starts from a copy of its own.
pub(crate) struct Contract {
    resolve: Resolve,
    package: PackageId,
}

impl Contract {
    /// Reads the contract and its dependencies.
    pub(crate) fn load() -> Result<Contract> {
        let mut resolve = Resolve::default();
        let dir = layout::wit_dir();
        match resolve.push_dir(&dir) {
            Ok((package, _)) => Ok(Contract { resolve, package }),
            Err(error) => {
                let rendered = resolve.render_error(&error);
                Err(error
                    .context(format!("the interface files in {} do not parse:\n{rendered}", dir.display())))
            }
        }
    }

    /// A world of the contract.
    pub(crate) fn world(&self, name: &str) -> Result<(Resolve, WorldId)> {
        let world = self.resolve.select_world(&[self.package], Some(name))?;
        Ok((self.resolve.clone(), world))
    }

    /// A world made up of these items.
    pub(crate) fn world_of(&self, items: &[String]) -> Result<(Resolve, WorldId)> {
        world_of(self.resolve.clone(), items)
    }

    /// Adds `files` as one more package beside the contract.
    pub(crate) fn beside(&self, files: &[(PathBuf, String)]) -> Result<Resolve> {
        let mut resolve = self.resolve.clone();
        resolve.push_group(group(files)?)?;
        Ok(resolve)
    }
}

/// The interface files of the contract itself: name and text. Worlds are left out, since an edit may
/// rename what they export.
pub(crate) fn interface_files() -> Result<Vec<(PathBuf, String)>> {
    let mut files = Vec::new();
    let dir = layout::wit_dir();
    for entry in fs::read_dir(&dir).with_context(|| format!("reading {}", dir.display()))? {
        let path = entry?.path();
        let is_wit = path.extension().is_some_and(|e| e == "wit");
        if is_wit && path.file_stem().is_some_and(|stem| stem != "worlds") {
            let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
            files.push((path, text));
        }
    }
    files.sort();
    Ok(files)
}

/// Resolves `files` as a package in place of the contract, which must have the same dependencies.
pub(crate) fn in_place_of_contract(files: &[(PathBuf, String)]) -> Result<Resolve> {
    let dir = layout::wit_dir().join("deps");
    let mut dependencies = Vec::new();
    for entry in fs::read_dir(&dir).with_context(|| format!("reading {}", dir.display()))? {
        dependencies.push(UnresolvedPackageGroup::parse_dir(entry?.path())?);
    }
    let mut resolve = Resolve::default();
    resolve.push_groups(group(files)?, dependencies)?;
    Ok(resolve)
}

/// Adds a world with these items, in a package of its own.
pub(crate) fn world_of(mut resolve: Resolve, items: &[String]) -> Result<(Resolve, WorldId)> {
    let text = format!("package leasehold:fixture;\nworld fixture {{\n{}\n}}\n", items.join("\n"));
    match resolve.push_source("fixture.wit", &text) {
        Ok(package) => {
            let world = resolve.select_world(&[package], Some("fixture"))?;
            Ok((resolve, world))
        }
        Err(error) => {
            let rendered = resolve.render_error(&error);
            Err(error.context(format!("{text}\n{rendered}")))
        }
    }
}

fn group(files: &[(PathBuf, String)]) -> Result<UnresolvedPackageGroup> {
    let mut map = SourceMap::default();
    for (path, text) in files {
        map.push(Path::new(path), text.as_str());
    }
    map.parse().map_err(|(map, error)| anyhow!(error.render(&map)))
}
