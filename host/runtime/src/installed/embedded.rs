//! The provider `local`, which is part of the host.
//!
//! It is a provider like any other: it has a row in the registry, may be disabled, and its leases are ended by
//! the component that made them. It only comes from here instead of from a file. When another version of the
//! host runs in the same directory it puts its own in place for new leases; both components stay on the shelf
//! for as long as leases pin them. That a newer one could end the leases of an older is true today (the name
//! of a lease is all it needs), but nothing would hold it to that, so nothing relies on it.

use crate::error::Error;
use leasehold_contract::declaration::ProviderManifest;
use leasehold_engine::Digest;
use leasehold_lease::registry::{ComponentRef, Package};
use std::sync::LazyLock;

/// The provider that is always installed: sandboxes on the host's own machine.
pub const LOCAL_PROVIDER: &str = "local";

/// Its component, built from `guests/local`.
pub(crate) const COMPONENT: &[u8] = include_bytes!("../../embedded/local.wasm");

/// What it declares.
const DECLARATION: &str = include_str!("../../embedded/local.json");

/// What it is granted unless somebody has said otherwise.
const GRANTS: &str = "[\"jail\"]";

/// Hashed once, on whichever thread asks first.
static DIGEST: LazyLock<Digest> = LazyLock::new(|| Digest::of(COMPONENT));

pub(crate) fn digest() -> Digest {
    *DIGEST
}

pub(crate) fn declared() -> Result<ProviderManifest, Error> {
    super::package::read_manifest(DECLARATION.as_bytes(), "the declaration of `local`")
}

/// It as it is to be in the registry, with what it is granted already.
pub(crate) fn package(grants: Option<String>) -> Result<Package, Error> {
    Ok(Package {
        id: LOCAL_PROVIDER.into(),
        manifest: declared()?,
        digest: digest().to_string(),
        grants: grants.unwrap_or_else(|| GRANTS.into()),
        source: "part of Leasehold".into(),
        embedded: true,
    })
}

/// Which component a host that leases from it will load, unless somebody has changed its grants.
pub(crate) fn pin() -> ComponentRef {
    let (provider, key) = (LOCAL_PROVIDER.to_owned(), LOCAL_PROVIDER.to_owned());
    ComponentRef { provider, key, digest: digest().to_string(), grants: GRANTS.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_embedded_declares_itself_rightly() {
        let package = package(None).unwrap();
        assert_eq!(package.manifest.plugin_key, LOCAL_PROVIDER);
        assert_eq!(package.manifest.version, env!("CARGO_PKG_VERSION"));
        let grants: Vec<leasehold_contract::authority::Grant> = serde_json::from_str(GRANTS).unwrap();
        let permissions = grants.iter().map(|grant| grant.permission());
        assert!(permissions.eq(package.manifest.permissions.iter().map(|ask| ask.permission())));
    }
}
