//! Turns core modules into components.

use anyhow::{Context, Result};
use wit_component::{ComponentEncoder, StringEncoding, dummy_module, embed_component_metadata};
use wit_parser::{LiftLowerAbi, ManglingAndAbi, Resolve, WorldId};

/// A component of this world whose every function traps.
pub(crate) fn dummy(resolve: &Resolve, world: WorldId) -> Result<Vec<u8>> {
    core(dummy_module(resolve, world, ManglingAndAbi::Legacy(LiftLowerAbi::Sync)), resolve, world)
}

/// A component of this world around a core module.
pub(crate) fn core(mut module: Vec<u8>, resolve: &Resolve, world: WorldId) -> Result<Vec<u8>> {
    embed_component_metadata(&mut module, resolve, world, StringEncoding::UTF8)?;
    ComponentEncoder::default()
        .module(&module)
        .and_then(|encoder| encoder.validate(true).encode())
        .context("the core module does not fit its world")
}
