//! `leasehold capabilities`: what a component and its declaration give a run, and why not more.

use crate::load::Component;
use crate::narrowing;
use crate::table::{print, section};
use anyhow::Context;
use clap::Args;
use leasehold_contract::capability::{Effective, Narrowing, resolve};
use leasehold_contract::declaration::{DriverDeclaration, Fault, driver, manifest};
use serde_json::{Value, json};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Shows which capabilities a run has: verified ∩ declared ∩ narrowing, with a reason for every no
#[derive(Args)]
pub(crate) struct Capabilities {
    #[command(flatten)]
    component: Component,
    /// JSON file with a driver declaration or a provider's manifest.
    #[arg(long, value_name = "FILE")]
    declaration: PathBuf,
    /// The driver of a manifest that has several.
    #[arg(long, value_name = "KEY")]
    driver: Option<String>,
    /// What the run takes away: {"nativeSyncIn":false}, or facts of the run such as
    /// {"leasePolicy":"ephemeral","leaseMetadata":{…},"configResolutionFailed":true}.
    #[arg(long, value_name = "JSON", value_parser = narrowing::of_argument)]
    narrowing: Option<Narrowing>,
    /// Print JSON for machines.
    #[arg(long)]
    json: bool,
}

impl Capabilities {
    /// Resolves the capabilities. Fails when the component or the declaration is not valid.
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let narrowing = self.narrowing.unwrap_or_else(Narrowing::none);
        let declaration = read(&self.declaration, self.driver.as_deref())?;
        let compiled = self.component.load()?;
        let verification = compiled.inspection().verification();
        let effective = resolve(verification, &declaration.capabilities, &narrowing);
        print(&match self.json {
            true => {
                let driver = declaration.driver_key;
                format!("{:#}\n", json!({"driver": driver, "capabilities": effective}))
            }
            false => section(&format!("capabilities of `{}`", declaration.driver_key), &rows(&effective)),
        })?;
        Ok(ExitCode::SUCCESS)
    }
}

fn rows(effective: &Effective) -> Vec<Vec<String>> {
    let answer = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
    let head = ["", "verified", "declared", "narrowed", "effective", ""].map(str::to_owned).to_vec();
    let rows = effective.iter().map(|(capability, found)| {
        vec![
            capability.to_string(),
            answer(found.verified()),
            found.declared().map_or_else(|| "-".to_owned(), answer),
            answer(found.narrowed()),
            answer(found.effective()),
            found.reason().unwrap_or_default().to_owned(),
        ]
    });
    std::iter::once(head).chain(rows).collect()
}

/// The largest declaration. A schema of a few hundred fields has a tenth of it. Hit: it is refused.
const DECLARATION_BYTES_MAX: u64 = 1 << 20;

/// A file's text, when it is a file and not too large.
fn whole(path: &Path) -> anyhow::Result<String> {
    let metadata = std::fs::metadata(path)?;
    anyhow::ensure!(metadata.is_file(), "it is no regular file");
    let mut text = String::new();
    std::fs::File::open(path)?.take(DECLARATION_BYTES_MAX + 1).read_to_string(&mut text)?;
    let size = text.len() as u64;
    anyhow::ensure!(size <= DECLARATION_BYTES_MAX, "it has more than {DECLARATION_BYTES_MAX} bytes");
    Ok(text)
}

/// The declaration in a file: the driver itself, or the one of a manifest that is meant.
fn read(path: &Path, key: Option<&str>) -> anyhow::Result<DriverDeclaration> {
    let shown = path.display();
    let text = whole(path).with_context(|| format!("cannot read {shown}"))?;
    let value: Value = serde_json::from_str(&text).with_context(|| format!("{shown} is no JSON"))?;
    let faulty = |faults: Vec<Fault>| {
        let lines: String = faults.iter().map(|fault| format!("\n  {fault}")).collect();
        anyhow::anyhow!("{shown} is no valid declaration:{lines}")
    };
    if value.get("environmentDrivers").is_none() {
        return driver(&value).map_err(faulty);
    }
    let mut drivers = manifest(&value).map_err(faulty)?.environment_drivers;
    let keys: Vec<_> = drivers.iter().map(|driver| driver.driver_key.clone()).collect();
    let position = match key {
        None if drivers.len() == 1 => Some(0),
        None => anyhow::bail!("{shown} has several drivers; choose one with --driver: {}", keys.join(", ")),
        Some(key) => keys.iter().position(|known| known == key),
    };
    match position {
        Some(position) => Ok(drivers.swap_remove(position)),
        None => {
            anyhow::bail!("{shown} has no driver `{}`; it has {}", key.unwrap_or_default(), keys.join(", "))
        }
    }
}
