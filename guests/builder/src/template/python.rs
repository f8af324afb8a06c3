//! Python, by componentize-py.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use super::{Job, WORLD, tool};
use crate::toolchain::output;

/// The tool is a Python package, and this is what its script does.
const RUN: &str = "import sys; from componentize_py import script; sys.exit(script())";

pub(super) fn build(job: &Job<'_>) -> Result<Vec<u8>> {
    let tool = tool::from_pypi("componentize-py", job.source)?;
    let modules = copied(job)?;
    let component = job.work.join("provider.wasm");
    output(
        Command::new(tool::python())
            .args(["-c", RUN, "--wit-path"])
            .arg(job.wit)
            .args(["--world", WORLD, "componentize", "--stub-wasi", "--python-path"])
            .arg(&modules)
            .args(["app", "--output"])
            .arg(&component)
            .env("PYTHONPATH", tool)
            .current_dir(job.work),
    )?;
    fs::read(&component).with_context(|| format!("reading {}", component.display()))
}

/// Copies the modules: the tool writes compiled ones beside those it reads, and a template's own folder is what
/// decides whether it is built anew.
fn copied(job: &Job<'_>) -> Result<PathBuf> {
    let modules = job.work.join("modules");
    _ = fs::remove_dir_all(&modules);
    fs::create_dir_all(&modules).with_context(|| format!("creating {}", modules.display()))?;
    for entry in fs::read_dir(job.source)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "py") {
            let to = modules.join(path.file_name().unwrap_or_default());
            fs::copy(&path, to).with_context(|| format!("copying {}", path.display()))?;
        }
    }
    Ok(modules)
}
