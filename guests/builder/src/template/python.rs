//! Python, by componentize-py.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::{Job, WORLD, tool};
use crate::toolchain::output;

/// The tool is a Python package, and this is what its script does.
const RUN: &str = "import sys; from componentize_py import script; sys.exit(script())";

pub(super) fn build(job: &Job<'_>) -> Result<(Vec<u8>, Duration)> {
    let tool = tool::from_pypi("componentize-py", job.source)?;
    let component = job.work.join("provider.wasm");
    let started = Instant::now();
    output(
        Command::new(tool::python())
            .args(["-c", RUN, "--wit-path"])
            .arg(job.wit)
            .args(["--world", WORLD, "componentize", "--stub-wasi", "--python-path"])
            .arg(job.source)
            .args(["app", "--output"])
            .arg(&component)
            .env("PYTHONPATH", tool)
            // The template's own folder stays free of what running it leaves behind.
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .current_dir(job.work),
    )?;
    let bytes = fs::read(&component).with_context(|| format!("reading {}", component.display()))?;
    Ok((bytes, started.elapsed()))
}
