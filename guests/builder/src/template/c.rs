//! C, by zig's compiler, with bindings from the library that the `wit-bindgen` command uses.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use wit_bindgen_core::Files;
use wit_component::ComponentEncoder;
use wit_parser::Resolve;

use super::{Job, WORLD, tool};
use crate::toolchain::output;

/// Flags that a reader of the template's page types too. The stack is one megabyte, for zig's own choice of 16
/// would be a quarter of a call's memory; names stay out of the component, the section with its type stays in.
const FLAGS: &[&str] = &[
    "cc",
    "-target",
    "wasm32-wasi",
    "-mexec-model=reactor",
    "-std=c17",
    "-O2",
    "-g0",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wl,--strip-debug",
    "-Wl,-z,stack-size=1048576",
];

pub(super) fn build(job: &Job<'_>) -> Result<Vec<u8>> {
    let zig = tool::from_pypi("ziglang", job.source)?.join("ziglang/zig");
    // A first compilation also builds zig's libc, and keeps it here.
    let cache = tool::home()?.join("zig-cache");
    compile(job, &zig, &cache)
}

fn compile(job: &Job<'_>, zig: &PathBuf, cache: &PathBuf) -> Result<Vec<u8>> {
    let bindings = bindings(job)?;
    let mut sources = Vec::new();
    for dir in [job.source, &bindings] {
        for entry in fs::read_dir(dir)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "c" || extension == "o") {
                sources.push(path);
            }
        }
    }
    sources.sort();
    let module = job.work.join("provider.core.wasm");
    output(
        Command::new(zig)
            .args(FLAGS)
            .arg("-I")
            .arg(&bindings)
            .args(sources)
            .arg("-o")
            .arg(&module)
            .env("ZIG_GLOBAL_CACHE_DIR", cache)
            .env("ZIG_LOCAL_CACHE_DIR", job.work.join("zig-cache")),
    )?;
    let module = fs::read(&module).with_context(|| format!("reading {}", module.display()))?;
    ComponentEncoder::default()
        .module(&module)
        .and_then(|encoder| encoder.validate(true).encode())
        .context("the core module does not become a component")
}

/// Writes header, source and the object that carries the component's type.
fn bindings(job: &Job<'_>) -> Result<PathBuf> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(job.wit)?;
    let world = resolve.select_world(&[package], Some(WORLD))?;
    let mut files = Files::default();
    let options = wit_bindgen_c::Opts { autodrop_borrows: wit_bindgen_c::Enabled::No, ..Default::default() };
    options.build().generate(&mut resolve, world, &mut files)?;
    let dir = job.work.join("bindings");
    _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir)?;
    for (name, content) in files.iter() {
        fs::write(dir.join(name), content)?;
    }
    Ok(dir)
}
