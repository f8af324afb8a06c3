//! JavaScript, by componentize-js.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};

use super::{Job, WORLD, tool};
use crate::toolchain::output;

pub(super) fn build(job: &Job<'_>) -> Result<Vec<u8>> {
    let files = ["package.json", "package-lock.json", "build.mjs"];
    let tool = tool::from_npm("componentize-js", job.source, &files)?;
    let component = job.work.join("provider.wasm");
    output(
        Command::new("node")
            .arg(tool.join("build.mjs"))
            .arg(job.source.join("provider.js"))
            .arg(job.wit)
            .arg(WORLD)
            .arg(&component)
            .current_dir(job.work),
    )?;
    fs::read(&component).with_context(|| format!("reading {}", component.display()))
}
