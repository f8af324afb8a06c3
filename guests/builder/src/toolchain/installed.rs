//! The toolchain in use, and rustup's way of extending it.

use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

use anyhow::Result;

use super::{Outcome, Toolchain, output, program, say};

const TARGET: &str = "wasm32-wasip2";

/// The route `installed`.
pub(super) fn ready() -> Result<Outcome> {
    let directory = output(Command::new(program("RUSTC", "rustc")).args([
        "--print",
        "target-libdir",
        "--target",
        TARGET,
    ]))?;
    if has_standard_library(&PathBuf::from(directory.trim())) {
        return Ok(Outcome::Ready(Toolchain { target: TARGET, rustc: None, linker: None }));
    }
    Ok(Outcome::NotHere(format!("the compiler in use has no standard library for {TARGET}")))
}

/// The route `rustup`.
pub(super) fn add_target() -> Result<Outcome> {
    if Command::new("rustup").arg("--version").output().is_err() {
        return Ok(Outcome::NotHere("rustup is not installed".into()));
    }
    say(&format!("guests: adding {TARGET} to the Rust toolchain (once)"));
    let mut command = Command::new("rustup");
    command.args(["target", "add", TARGET]);
    // Under cargo the toolchain in use is in this variable, and it need not be the default one.
    if let Some(name) = env::var_os("RUSTUP_TOOLCHAIN") {
        command.arg("--toolchain").arg(name);
    }
    output(&mut command)?;
    ready()
}

fn has_standard_library(directory: &PathBuf) -> bool {
    let Ok(entries) = fs::read_dir(directory) else { return false };
    entries.flatten().any(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        name.starts_with("libstd-") && name.ends_with(".rlib")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_counts_only_with_its_standard_library() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().to_path_buf();
        assert!(!has_standard_library(&path.join("missing")));
        fs::write(path.join("libcore-1.rlib"), "").unwrap();
        assert!(!has_standard_library(&path));
        fs::write(path.join("libstd-1.rlib"), "").unwrap();
        assert!(has_standard_library(&path));
    }
}
