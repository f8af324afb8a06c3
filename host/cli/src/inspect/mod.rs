//! `leasehold inspect`: what a component really is.

mod json;
mod text;

use crate::load::Component;
use crate::table::print;
use clap::Args;
use leasehold_contract::capability::{Declared, Effective, Narrowing, resolve};
use leasehold_engine::Compiled;
use std::process::ExitCode;

/// Shows what a component really exports and wants; nothing of it runs
///
/// Reads the component's type: each method of the contract is verified, absent, of another shape (with the
/// place of the first difference) or of a version that is not served. Capabilities are shown as they are
/// without a declaration; `leasehold capabilities` takes one into account.
#[derive(Args)]
pub(crate) struct Inspect {
    #[command(flatten)]
    component: Component,
    /// Print JSON for machines.
    #[arg(long)]
    json: bool,
}

/// A component, and what its methods alone give.
struct Report {
    name: String,
    compiled: Compiled,
    effective: Effective,
}

impl Inspect {
    /// Inspects the component. Fails when it is none.
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let compiled = self.component.load()?;
        let verification = compiled.inspection().verification();
        let effective = resolve(verification, &Declared::nothing(), &Narrowing::none());
        let report = Report { name: self.component.name(), compiled, effective };
        print(&if self.json { json::write(&report) } else { text::write(&report) })?;
        Ok(ExitCode::SUCCESS)
    }
}
