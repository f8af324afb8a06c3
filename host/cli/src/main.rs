//! The command line of Leasehold.

mod audit;
mod capabilities;
mod cp;
mod env;
mod explain;
mod home;
mod host;
mod input;
mod inspect;
mod lease;
mod limits;
mod load;
mod narrowing;
mod progress;
mod provider;
mod reconcile;
mod run;
mod settings;
mod sync;
mod table;
mod telemetry;
mod when;

use clap::{Parser, Subcommand};
use leasehold_contract::text::plain;
use std::io::Write;
use std::process::ExitCode;

/// What `--help` says of exit codes; scripts depend on them.
const EXIT_CODES: &str = "\
Exit codes:
  0  the command did what was asked
  1  what was asked about failed, or some input could not be read
  2  wrong usage: unknown command, option or argument
  `run` and `lease exec` end with the command's own code, or 124 to 127; see `leasehold run --help`.";

/// Runs sandbox providers as WebAssembly components.
#[derive(Parser)]
#[command(name = "leasehold", version, after_help = EXIT_CODES)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(run::Run),
    Provider(provider::Provider),
    Env(env::Env),
    Lease(lease::Lease),
    Sync(sync::Sync),
    #[command(name = "cp")]
    Copy(cp::Copy),
    Reconcile(reconcile::Reconcile),
    Audit(audit::Audit),
    Inspect(inspect::Inspect),
    Capabilities(capabilities::Capabilities),
    Limits(limits::Limits),
    Explain(explain::Explain),
}

fn main() -> ExitCode {
    let _telling = telemetry::Telemetry::begin();
    let result = match CommandLine::parse().command {
        Command::Run(run) => run.run(),
        Command::Provider(provider) => host::complete(provider.run()),
        Command::Env(env) => host::complete(env.run()),
        Command::Lease(lease) => lease.run(),
        Command::Sync(sync) => host::complete(sync.run()),
        Command::Copy(copy) => host::complete(copy.run()),
        Command::Reconcile(reconcile) => reconcile.run(),
        Command::Audit(audit) => host::complete(audit.run()),
        Command::Inspect(inspect) => inspect.run(),
        Command::Capabilities(capabilities) => capabilities.run(),
        Command::Limits(limits) => limits.run(),
        Command::Explain(explain) => explain.run(),
    };
    result.unwrap_or_else(|error| {
        // Nothing is left to tell when standard error itself is closed.
        let _ = writeln!(std::io::stderr().lock(), "leasehold: {}", told(&error));
        ExitCode::from(1)
    })
}

/// An error with its causes, each said once, and with nothing in it that a terminal would act on.
pub(crate) fn told(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if !text.contains(&cause) {
            let separator = if text.is_empty() { "" } else { ": " };
            text.extend([separator, &cause]);
        }
    }
    let lines: Vec<_> = text.lines().map(|line| plain(line, LINE_MAX)).collect();
    lines.join("\n")
}

/// Bytes of a line of an error; what is longer quotes its cause at length.
const LINE_MAX: usize = 2_000;
