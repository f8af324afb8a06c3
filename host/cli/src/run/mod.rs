//! `leasehold run`: one command in a sandbox, with the folder it is about.

pub(crate) mod cancel;
pub(crate) mod ending;
mod folder;
mod rescue;
pub(crate) mod streams;

use crate::home;
use crate::host::{Host, complete};
use crate::progress::shown;
use crate::sync::would_send;
use anyhow::Context;
use cancel::Cancel;
use clap::Args;
use ending::Ending;
use leasehold::contract::text::plain;
use leasehold::{Command, Environment, For, Isolation, Layer, MergeReport, Progress, Session};
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// What `run --help` says of exit codes; scripts depend on them.
const EXIT_CODES: &str = "\
Exit codes:
  the command's own, and
  124  --timeout was over
  125  Leasehold itself failed; the message says what to do
  126  the program cannot be executed
  127  the program is not there
  128+N  signal N ended the command (137 also: a bound of the sandbox ended it),
         or this process was told to end by it (130 after Ctrl-C)";

/// Runs a command in a sandbox and brings what it changed back
///
/// Leases a sandbox, takes the current folder in (without heavy directories and what .gitignore names),
/// runs the command in it with its output as it comes, brings changed files back, and lets the sandbox go.
/// Standard input is passed through unless it is a terminal; standard output and error stay apart and come as
/// they are written. Nothing else is said unless something went wrong.
///
/// The sandbox has no network, sees of this machine only its programs and libraries, and is bounded: three
/// quarters of the memory, 256 processes a processor, half of the free disk. An environment of leasehold.toml
/// sets other bounds (memoryBytes, processes, cpuMillis, diskBytes).
#[derive(Args)]
#[command(after_help = EXIT_CODES, after_long_help = EXIT_CODES)]
pub(crate) struct Run {
    /// Provider to lease from.
    #[arg(long, value_name = "NAME", default_value = leasehold::LOCAL_PROVIDER, conflicts_with = "environment")]
    provider: String,
    /// Environment to lease from.
    #[arg(long, value_name = "NAME")]
    environment: Option<String>,
    /// Image to start from, for providers that have images.
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
    /// Folder to take in and bring back [default: the current one].
    #[arg(long, value_name = "DIR", conflicts_with = "no_sync")]
    sync: Option<PathBuf>,
    /// Take no folder in.
    #[arg(long)]
    no_sync: bool,
    /// End with 1 when the command succeeded and files were changed on both sides.
    #[arg(long)]
    strict: bool,
    /// Only list what would be taken in, and what would not and why.
    #[arg(long)]
    dry_run: bool,
    /// Variable for the command.
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = variable)]
    env: Vec<(String, String)>,
    /// Time the command may take, for example 90s, 10m, 2h [default: 4h].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    timeout: Option<Duration>,
    /// Do without a layer of isolation that this machine refuses.
    #[arg(long = "without", value_name = "LAYER", value_parser = layer)]
    without: Vec<Layer>,
    #[command(flatten)]
    host: Host,
    /// The command and its arguments.
    #[arg(required = true, last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl Run {
    /// Runs the command. Whatever fails before it runs ends with 125.
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        Ok(match complete(self.lease_and_run()) {
            Ok(ending) => ending.code(),
            Err(error) => {
                let _ = writeln!(std::io::stderr().lock(), "leasehold: {}", crate::told(&error));
                ExitCode::from(ending::OURS)
            }
        })
    }

    async fn lease_and_run(self) -> anyhow::Result<Ending> {
        let cancel = Cancel::on_signals()?;
        let folder = folder::choose(self.sync.clone(), self.no_sync)?;
        if self.dry_run {
            let text = match &folder {
                None => "nothing would be taken in\n".to_owned(),
                Some(folder) => would_send(&folder.path, folder.options(), false)?,
            };
            crate::table::print(&text)?;
            return Ok(Ending::Exited(0));
        }
        let argv = self.command.iter().map(text).collect::<anyhow::Result<Vec<_>>>()?;
        let isolation = self.without.iter().try_fold(Isolation::default(), |all, layer| all.waive(*layer))?;
        let local = self.environment.is_none() && self.provider == leasehold::LOCAL_PROVIDER;
        let isolated = |builder: leasehold::Builder| {
            let builder = builder.isolation(isolation);
            if local { builder.warm() } else { builder }
        };
        let runtime = self.host.open_with(isolated).await?;
        let mut environment = match &self.environment {
            Some(name) => runtime.environment(name).await?,
            None => Environment::of(&self.provider),
        };
        if let Some(image) = self.image {
            environment.config.insert("image".into(), image.into());
        }

        let acquiring = environment.acquire(&runtime, For::default());
        let session = tokio::select! {
            session = acquiring => session?,
            () = cancel.token.cancelled() => {
                runtime.idle().await;
                return Ok(cancel.ending());
            }
        };
        let command = Command { argv, cwd: None, env: self.env, timeout: self.timeout };
        let ended = in_session(&session, command, folder, self.strict, &cancel).await;
        let released = session.release().await;
        runtime.idle().await;
        let ending = ended?;
        released
            .context("the command ended, and its sandbox could not be let go; type `leasehold reconcile`")?;
        // Closing the store would write its log back and wait for the disk twice. The process ends now, and
        // whoever opens the store next finds all of it in the log.
        std::mem::forget(runtime);
        Ok(ending)
    }
}

async fn in_session(
    session: &Session,
    command: Command,
    folder: Option<folder::Folder>,
    strict: bool,
    cancel: &Cancel,
) -> anyhow::Result<Ending> {
    let synced = match folder {
        None => None,
        Some(folder) => Some(tokio::select! {
            synced = taken_in(session, &folder) => {
                synced.with_context(|| format!("taking {} in", folder.path.display()))?
            }
            () = cancel.token.cancelled() => return Ok(cancel.ending()),
        }),
    };
    let (streams, output) = streams::ours();
    let executed = session.execute(command, streams, cancel.token.clone()).await;
    output.finished().await;
    let ending = ending::of(executed, cancel)?;
    if let Some(synced) = synced {
        let progress = Progress::default();
        let back = session.sync_out_watched(synced, &progress);
        match shown("bringing files back", &progress, back).await {
            Ok(report) => {
                tell(&report);
                if strict && !report.conflicts.is_empty() && ending == Ending::Exited(0) {
                    return Ok(Ending::Exited(1));
                }
            }
            Err(error) => {
                // The sandbox goes, so its work must not: somebody may want it.
                let kept = rescue::rescue(session, &home::state()?.join("rescued")).await;
                return Err(match kept {
                    Ok(path) => anyhow::anyhow!(error).context(format!(
                        "the files could not be brought back; all the sandbox held is in {}",
                        path.display()
                    )),
                    Err(lost) => anyhow::anyhow!(error)
                        .context(format!("the files could not be brought back, and {lost:#}")),
                });
            }
        }
    }
    Ok(ending)
}

async fn taken_in(session: &Session, folder: &folder::Folder) -> Result<leasehold::Synced, leasehold::Error> {
    let progress = Progress::default();
    let taking = session.sync_in_watched(&folder.path, folder.options(), &progress);
    shown("taking files in", &progress, taking).await
}

/// What a person has to know: files that both sides changed, and work that was not taken back.
fn tell(report: &MergeReport) {
    let mut stderr = std::io::stderr().lock();
    let shown = |path: &Path| plain(&path.to_string_lossy(), 1_000);
    for conflict in &report.conflicts {
        let what = match &conflict.aside {
            Some(aside) => format!("the sandbox's is {}", shown(aside)),
            None => "the sandbox had deleted it".to_owned(),
        };
        let path = shown(&conflict.path);
        let _ = writeln!(stderr, "leasehold: {path} changed on both sides; yours was kept, {what}");
    }
    if !report.left_out.is_empty() {
        let paths: Vec<_> = report.left_out.iter().take(LEFT_OUT_SHOWN).map(|path| shown(path)).collect();
        let more = report.left_out.len().saturating_sub(LEFT_OUT_SHOWN);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let _ =
            writeln!(stderr, "leasehold: not brought back, as it is left out: {}{more}", paths.join(", "));
    }
}

/// Paths that were left out and are named; a build leaves thousands.
const LEFT_OUT_SHOWN: usize = 5;

pub(crate) fn text(argument: &OsString) -> anyhow::Result<String> {
    let text = argument.to_str().map(str::to_owned);
    text.with_context(|| format!("argument {argument:?} is not UTF-8, which a provider cannot be given"))
}

pub(crate) fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    let good = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) || !name.chars().all(good) {
        return Err(format!("`{name}` cannot name a variable: use letters, digits and `_`"));
    }
    Ok((name.to_owned(), value.to_owned()))
}

pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let expected = || format!("expected a time such as 90s, 10m or 2h, not `{text}`");
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let number: f64 = number.parse().map_err(|_| expected())?;
    let seconds = match unit {
        "ms" => number / 1e3,
        "" | "s" => number,
        "m" => number * 60.0,
        "h" => number * 3_600.0,
        _ => return Err(expected()),
    };
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => Err(expected()),
    }
}

fn layer(text: &str) -> Result<Layer, String> {
    let names = || Layer::ALL.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    Layer::from_name(text).ok_or_else(|| format!("there is no layer `{text}`; there are {}", names()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_write_them() {
        for (text, expected) in
            [("90s", 90_000), ("10m", 600_000), ("2h", 7_200_000), ("1.5", 1_500), ("5ms", 5)]
        {
            assert_eq!(duration(text), Ok(Duration::from_millis(expected)), "{text}");
        }
        for text in ["", "0", "-1s", "10 m", "1d", "nan", "1e3s"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn variables_have_names_that_shells_know() {
        assert_eq!(variable("A_1=b=c"), Ok(("A_1".into(), "b=c".into())));
        for text in ["A", "=b", "1A=b", "A-B=c", "A B=c"] {
            assert!(variable(text).is_err(), "{text}");
        }
    }
}
