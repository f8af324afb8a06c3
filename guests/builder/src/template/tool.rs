//! Installs a language's tool into the user's cache, pinned by a lock file that lies beside the template.
//!
//! A tool is made beside its place and moved there when it is complete. Its place is named by a digest of the
//! lock file, so that another version is another place and nothing has to be removed to change it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::toolchain::{cache, output, program, say};

/// Where tools are.
pub(super) fn home() -> Result<PathBuf> {
    cache::directory("guest-tools")
}

/// Installs what `requirements.txt` in `source` pins, from PyPI; returns the directory of its packages.
pub(super) fn from_pypi(name: &str, source: &Path) -> Result<PathBuf> {
    let requirements = source.join("requirements.txt");
    installed(name, &[&requirements], |making| {
        run(
            Command::new(python())
                .args(["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"])
                .args(["--no-deps", "--require-hashes", "--only-binary", ":all:", "--target"])
                .arg(making)
                .arg("--requirement")
                .arg(&requirements),
            name,
            "it needs `python3` 3.9 or later with pip, and PyPI",
        )
    })
}

/// Installs what `package-lock.json` in `source` pins, from npm, beside a copy of these files.
pub(super) fn from_npm(name: &str, source: &Path, files: &[&str]) -> Result<PathBuf> {
    let files: Vec<PathBuf> = files.iter().map(|file| source.join(file)).collect();
    let files: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
    installed(name, &files, |making| {
        for file in &files {
            fs::copy(file, making.join(file.file_name().unwrap_or_default()))?;
        }
        run(
            Command::new("npm")
                .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"])
                .current_dir(making),
            name,
            "it needs `node` 20 or later with npm, and npm's registry",
        )
    })
}

/// The interpreter that runs Python tools.
pub(super) fn python() -> std::ffi::OsString {
    program("PYTHON", "python3")
}

fn installed(name: &str, pins: &[&Path], install: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
    let mut hasher = blake3::Hasher::new();
    for pin in pins {
        hasher.update(&fs::read(pin).with_context(|| format!("reading {}", pin.display()))?);
    }
    let digest = hasher.finalize().to_hex();
    let home = home()?;
    let place = home.join(format!("{name}-{}", &digest[..16]));
    let _lock = cache::lock(&home.join(format!("{name}.lock")))?;
    if place.is_dir() {
        return Ok(place);
    }
    say(&format!("guests: installing {name} (once)"));
    let making = home.join(format!("{name}-making"));
    _ = fs::remove_dir_all(&making);
    fs::create_dir_all(&making).with_context(|| format!("creating {}", making.display()))?;
    install(&making)?;
    fs::rename(&making, &place).with_context(|| format!("moving {name} to {}", place.display()))?;
    Ok(place)
}

/// Runs an installer; a failure is one line, for the last thing an installer says is why.
fn run(command: &mut Command, name: &str, needs: &str) -> Result<()> {
    if let Err(error) = output(command) {
        let said = format!("{error:#}");
        let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        bail!("{name} cannot be installed; {needs}: {}", last.trim());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_that_cannot_be_installed_is_one_line_that_names_it_and_what_it_needs() {
        let script = "echo first >&2; echo the reason >&2; echo >&2; exit 1";
        let error = run(Command::new("sh").args(["-c", script]), "some-tool", "it needs luck").unwrap_err();
        assert_eq!(error.to_string(), "some-tool cannot be installed; it needs luck: the reason");
        let error = run(&mut Command::new("no-such-program-here"), "some-tool", "it needs luck").unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("some-tool cannot be installed; it needs luck: `no-such-program-here`")
        );
        assert_eq!(error.to_string().lines().count(), 1);
    }
}
