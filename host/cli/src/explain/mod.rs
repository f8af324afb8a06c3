//! `leasehold explain`: what the contract's rules make of given inputs, one JSON line in, one out.

mod budget;
mod capabilities;
mod confine;
mod declaration;
mod exclude;
mod lines;
mod secrets;

use anyhow::Context;
use clap::{Args, Subcommand};
use lines::{Line, Lines};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Says what the contract's rules make of given inputs.
///
/// Reads one JSON value a line and writes one JSON line for each, at once. Blank lines are skipped. A line
/// that cannot be read or holds a wrong type gives `{"error":{"line":N,"message":"…"}}`, the lines after it
/// are still answered, and the exit code is 1.
#[derive(Args)]
pub(crate) struct Explain {
    #[command(subcommand)]
    subject: Subject,
}

#[derive(Subcommand)]
enum Subject {
    /// Which capabilities a run has, and why not the others
    ///
    /// Input, every key optional:
    ///   methods                  names of the methods, as if each were verified
    ///   declared                 the sandboxCapabilities object, or a whole driver declaration
    ///   supportsReusableLeases   the older declaration of reusable leases
    ///   leasePolicy              ephemeral, reuse_by_environment, reuse_by_execution_workspace
    ///                            or retain_on_failure
    ///   leaseMetadata            what the provider stored on the lease
    ///   configResolutionFailed   true or false
    ///   narrowing                the host application's own, for example {"nativeSyncIn":false}
    ///   identityFailed           true, or a text that says why
    ///
    /// Output: {"effective":{…},"reasons":{…}}. Whatever was not understood is listed in "ignored".
    #[command(verbatim_doc_comment)]
    Capabilities(Input),
    /// How long a call may take, and why
    ///
    /// Input, all but the method optional:
    ///   method                   for example environmentExecute
    ///   requestedTimeoutMs       the time the caller asks for; anything but a number is no request
    ///   config                   the environment's stored configuration
    ///   defaultAcquireTimeoutMs  what the driver declares
    ///   kind                     sandbox_provider (assumed when absent) or environment_driver
    ///
    /// Output: {"timeoutMs":31000,"because":"…"}. Keys that were not understood are listed in "ignored".
    #[command(verbatim_doc_comment)]
    Budget(Input),
    /// Whether a driver declaration or a provider's manifest is valid, with every fault in it
    ///
    /// Input: one driver declaration or one manifest (anything with environmentDrivers or pluginKey),
    /// whole on one line.
    ///
    /// Output: {"ok":false,"errors":[{"path":"…","message":"…"}]}. That a declaration is invalid is an
    /// answer like any other and does not change the exit code.
    #[command(verbatim_doc_comment)]
    Declaration(Input),
    /// Whether every path of file operations lies where it may, before anything would be sent
    ///
    /// Input:
    ///   sourceRoots, targetRoots   absolute directories; without any, nothing is allowed
    ///   operations                 as the contract has them: operationId, files (sourcePath, targetPath,
    ///                              kind, mode, exclude, followSymlinks), postUploadCommands (command,
    ///                              cwd, timeoutMs)
    ///
    /// Output: {"ok":false,"error":"…"}; the error is null when all is well. A refusal is an answer like
    /// any other and does not change the exit code.
    #[command(verbatim_doc_comment)]
    Confine(Input),
    /// Which paths a directory mapping keeps, by patterns as GNU tar's --exclude means them
    ///
    /// Input:
    ///   paths     [path, kind] pairs, relative to the directory; the kind is f, d or l
    ///   exclude   the patterns
    ///
    /// Output: {"kept":["…"]}, in the order given.
    #[command(verbatim_doc_comment)]
    Exclude(Input),
    /// Where a configuration holds secrets, and what a provider's metadata is stored as
    ///
    /// Input, every key optional:
    ///   schema                   the driver's configSchema
    ///   config                   a configuration; a binding to a version of a secret is an error in it
    ///   metadata                 what a provider returned for a lease
    ///
    /// Output: {"paths":["auth.key"],"stripped":{…}}. Nothing of a secret is read or shown.
    #[command(verbatim_doc_comment)]
    Secrets(Input),
}

#[derive(Args)]
struct Input {
    /// File to read; standard input when absent or `-`.
    file: Option<PathBuf>,
}

/// Answers one input, or says why it cannot.
type Answer = fn(&Value) -> Result<Value, String>;

impl Explain {
    /// Answers every line. Fails when the input cannot be opened or read, or the output not written.
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let (input, answer): (Input, Answer) = match self.subject {
            Subject::Capabilities(input) => (input, capabilities::explain),
            Subject::Budget(input) => (input, budget::explain),
            Subject::Declaration(input) => (input, declaration::explain),
            Subject::Confine(input) => (input, confine::explain),
            Subject::Exclude(input) => (input, exclude::explain),
            Subject::Secrets(input) => (input, secrets::explain),
        };
        let mut output = std::io::stdout().lock();
        match input.file.filter(|file| file.as_os_str() != "-") {
            None => answer_lines(std::io::stdin().lock(), &mut output, answer),
            Some(path) => {
                let file = File::open(&path).with_context(|| format!("cannot open {}", path.display()))?;
                answer_lines(BufReader::new(file), &mut output, answer)
            }
        }
    }
}

fn answer_lines(input: impl BufRead, output: &mut impl Write, answer: Answer) -> anyhow::Result<ExitCode> {
    let mut code = ExitCode::SUCCESS;
    let mut lines = Lines::new(input);
    while let Some(line) = lines.next().context("cannot read the input")? {
        let answered = match line {
            Line::Blank => continue,
            Line::Refused(message) => Err(message),
            Line::Json(value) => answer(&value),
        };
        let value = answered.unwrap_or_else(|message| {
            code = ExitCode::from(1);
            json!({"error": {"line": lines.number(), "message": message}})
        });
        // Flushed line by line, so that a program at the other end can ask and wait for its answer.
        match writeln!(output, "{value}").and_then(|()| output.flush()) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(code),
            written => written.context("cannot write the output")?,
        }
    }
    Ok(code)
}
