//! A provider as it comes from somebody: a component, and a declaration beside it.

use crate::error::Error;
use leasehold_contract::authority::Permission;
use leasehold_contract::declaration::{ProviderManifest, REGISTER_DRIVERS, manifest};
use leasehold_engine::Inspection;
use leasehold_engine::inspect::Wanted;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// The declaration in a provider's folder.
const DECLARATION: &str = "provider.json";

/// The component in a provider's folder that holds several.
const COMPONENT: &str = "provider.wasm";

/// The longest declaration in bytes. Schemas are the bulk of one, and the longest known has a tenth of it; a
/// longer file is something else.
const DECLARATION_MAX: u64 = 1 << 20;

/// A provider to install: where its component is, and what it declares.
#[derive(Clone, Debug, PartialEq)]
pub struct ProviderFiles {
    /// The component.
    pub component: PathBuf,
    /// Its declaration; none where there is only a component. It then declares itself by its name and wants
    /// what it imports.
    pub manifest: Option<ProviderManifest>,
    /// The name of one without a declaration.
    pub name: String,
    /// Where it comes from, for people.
    pub source: String,
}

impl ProviderFiles {
    /// Looks at a folder, which holds one component and `provider.json`, or at the file of a component. A
    /// declaration elsewhere may be named.
    ///
    /// # Errors
    /// When there is no component, more than one, or a declaration with faults; all of them are named.
    pub fn at(path: &Path, named: Option<&Path>) -> Result<ProviderFiles, Error> {
        let unreadable = |source| Error::Directory { path: path.into(), source };
        let folder = std::fs::metadata(path).map_err(unreadable)?.is_dir();
        let component = if folder { component_in(path)? } else { path.to_owned() };
        let beside = || folder.then(|| path.join(DECLARATION));
        let declared = named.map(Path::to_owned).or_else(beside);
        let manifest = declared.as_deref().map(declaration).transpose()?;
        let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let source = path.canonicalize().unwrap_or_else(|_| path.to_owned()).display().to_string();
        Ok(ProviderFiles { component, manifest, name: stem.unwrap_or_default(), source })
    }
}

/// The one component of a folder.
fn component_in(folder: &Path) -> Result<PathBuf, Error> {
    let unreadable = |source| Error::Directory { path: folder.into(), source };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|extension| extension == "wasm") {
            found.push(path);
        }
    }
    found.sort();
    let named = folder.join(COMPONENT);
    if found.contains(&named) {
        return Ok(named);
    }
    let names =
        found.iter().filter_map(|path| path.file_name()).map(|name| name.to_string_lossy().into_owned());
    let names: Vec<_> = names.collect();
    match <[PathBuf; 1]>::try_from(found) {
        Ok([one]) => Ok(one),
        Err(_) => Err(Error::NotOneComponent { folder: folder.into(), found: names }),
    }
}

/// Reads at most this much of a file, whatever it really is.
pub(crate) fn read(path: &Path, most: u64) -> Result<Vec<u8>, Error> {
    let unreadable = |source| Error::Directory { path: path.into(), source };
    // Without waiting: a pipe that nobody writes to would hold the caller for ever.
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options().read(true).custom_flags(nonblocking).open(path).map_err(unreadable)?;
    if !file.metadata().map_err(unreadable)?.is_file() {
        return Err(unreadable(std::io::Error::other("it is no regular file")));
    }
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes).map_err(unreadable)?;
    Ok(bytes)
}

/// Reads a declaration from a file.
fn declaration(path: &Path) -> Result<ProviderManifest, Error> {
    let (bytes, source) = (read(path, DECLARATION_MAX + 1)?, path.display().to_string());
    if bytes.len() as u64 > DECLARATION_MAX {
        let faults = vec![format!("it has more than {DECLARATION_MAX} bytes, which no declaration needs")];
        return Err(Error::Declaration { of: source, faults });
    }
    read_manifest(&bytes, &source)
}

/// Reads a declaration; every fault in it at once.
pub(crate) fn read_manifest(bytes: &[u8], source: &str) -> Result<ProviderManifest, Error> {
    let refused = |faults| Error::Declaration { of: source.to_owned(), faults };
    let value: Value = serde_json::from_slice(bytes).map_err(|error| refused(vec![error.to_string()]))?;
    manifest(&value).map_err(|faults| refused(faults.iter().map(ToString::to_string).collect()))
}

/// What a component without a declaration declares: its name, and that it wants what it imports.
pub(crate) fn by_itself(name: &str, inspection: &Inspection) -> Result<ProviderManifest, Error> {
    let permissions: BTreeSet<_> = inspection.imports().iter().flat_map(wants).collect();
    let value = json!({
        "pluginKey": name, "version": "0", "capabilities": [REGISTER_DRIVERS], "permissions": permissions,
        "environmentDrivers":
            [{"driverKey": name, "kind": "sandbox_provider", "displayName": name, "configSchema": {}}],
    });
    let source = format!("`{name}` as the provider's name (name another with --name)");
    manifest(&value).map_err(|faults| {
        // The name stands in three places.
        let faults = faults.iter().take(1).map(|fault| fault.message.clone()).collect();
        Error::Declaration { of: source, faults }
    })
}

/// The permissions that would cover an import.
pub(crate) fn wants(import: &leasehold_engine::inspect::Import) -> Vec<Permission> {
    match import.need {
        Wanted::AnyOf(permissions) => permissions.to_vec(),
        _ => Vec::new(),
    }
}
