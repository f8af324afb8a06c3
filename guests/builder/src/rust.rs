//! Rust guests: every package of the workspace in `guests`, built as one.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::layout;
use crate::toolchain::{Toolchain, cargo, flags, say};

/// Packages in `guests` that become no component.
const LIBRARIES: &[&str] = &["builder", "sdk"];

/// Name and component of every Rust guest.
///
/// # Errors
///
/// When a guest does not compile; what cargo says goes to standard error.
pub fn components(toolchain: &Toolchain) -> Result<Vec<(String, Vec<u8>)>> {
    let sources = layout::guests_sources();
    let target_dir = layout::target_dir().join("guests-build");
    if !target_dir.exists() {
        say("guests: building Rust guests for the first time, about a minute");
    }
    let mut command = cargo();
    command
        .args(["build", "--quiet", "--locked", "--release", "--target", toolchain.target])
        .current_dir(&sources)
        .env("CARGO_TARGET_DIR", &target_dir)
        .env("CARGO_ENCODED_RUSTFLAGS", flags(&[], &layout::workspace_root(), "/leasehold"));
    if let Some(rustc) = &toolchain.rustc {
        command.env("RUSTC", rustc);
    }
    if let Some(linker) = &toolchain.linker {
        let variable = format!("CARGO_TARGET_{}_LINKER", toolchain.target.to_uppercase().replace('-', "_"));
        command.env(variable, linker);
    }
    let status = command.status().context("cargo cannot be run")?;
    ensure!(
        status.success(),
        "the Rust guests in {} do not build with {}",
        sources.display(),
        toolchain.rustc.as_deref().unwrap_or(Path::new("rustc")).display()
    );

    let results = target_dir.join(toolchain.target).join("release");
    let mut names = packages(&sources)?;
    names.extend(packages(&layout::fixtures_dir().join("rust"))?);
    names
        .into_iter()
        .map(|name| {
            let path = results.join(format!("{}.wasm", name.replace('-', "_")));
            let bytes = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
            Ok((name, bytes))
        })
        .collect()
}

/// The components that packages directly in `dir` become, by directory name.
fn packages(dir: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).with_context(|| format!("reading {}", dir.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().join("Cargo.toml").exists() && !LIBRARIES.contains(&name.as_str()) {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}
