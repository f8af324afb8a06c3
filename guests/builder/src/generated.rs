//! Fixtures that need no source: they follow from the contract.
//!
//! `dummy-full` and `dummy-minimal` have the exports of those worlds; `absent-<interface>` has all but
//! one. Every function traps, so these are for verification, not for calls.

use anyhow::Result;
use leasehold_contract::method::{INTERFACE_VERSION, METHODS, PROVIDER_PACKAGE};

use crate::encode;
use crate::wit::Contract;

/// The interfaces a provider can export, each once, in the order of the table of methods.
pub fn interfaces() -> Vec<&'static str> {
    let mut names: Vec<&str> = METHODS.iter().map(|method| method.interface).collect();
    // A table's neighbours: the functions of one interface are listed together.
    names.dedup();
    names
}

/// Name and component of every generated fixture.
///
/// # Errors
///
/// When the contract lacks an interface of the table.
pub(crate) fn components(contract: &Contract) -> Result<Vec<(String, Vec<u8>)>> {
    let mut made = Vec::new();
    for name in ["minimal", "full"] {
        let (resolve, world) = contract.world(name)?;
        made.push((format!("dummy-{name}"), encode::dummy(&resolve, world)?));
    }
    for absent in interfaces() {
        let mut items = vec![format!("include {PROVIDER_PACKAGE}/host-imports@{INTERFACE_VERSION};")];
        items.extend(interfaces().into_iter().filter(|name| *name != absent).map(export));
        let (resolve, world) = contract.world_of(&items)?;
        made.push((format!("absent-{absent}"), encode::dummy(&resolve, world)?));
    }
    Ok(made)
}

/// The world item that exports an interface of the contract.
pub(crate) fn export(interface: &str) -> String {
    format!("export {PROVIDER_PACKAGE}/{interface}@{INTERFACE_VERSION};")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_interface_is_left_out_once() {
        let names = interfaces();
        let mut unique = names.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), names.len());
        let (resolve, world) = Contract::load().unwrap().world("full").unwrap();
        assert_eq!(resolve.worlds[world].exports.len(), names.len(), "the table and the world `full` differ");
    }
}
