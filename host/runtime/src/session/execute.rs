//! Commands.

use super::Session;
use crate::error::Error;
use crate::installed::convert;
use bytes::Bytes;
use leasehold_contract::Method;
use leasehold_contract::capability::Capability;
use leasehold_engine::Bill;
use leasehold_engine::bindings::exports::execute::{ExecuteRequest, Exit};
use leasehold_engine::call::stream::Output;
use leasehold_engine::hook::Execute;
use std::time::Duration;
use tokio::io::AsyncRead;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use wasmtime_wasi::p2::pipe::AsyncReadStream;

/// A command to run.
#[derive(Clone, Debug, Default)]
pub struct Command {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Working directory inside the sandbox; none means the workspace.
    pub cwd: Option<String>,
    /// Variables to add.
    pub env: Vec<(String, String)>,
    /// How long it may run; none means until the backstop of four hours.
    pub timeout: Option<Duration>,
}

/// Where a command's streams lead.
pub struct Streams {
    /// What it reads.
    pub input: Box<dyn AsyncRead + Send + Unpin>,
    /// Takes its standard output as it comes. A full channel makes the command wait; a receiver that is dropped
    /// is a pipe that closes, which ends most commands. Who wants none of the output reads on and drops it.
    pub output: mpsc::Sender<Bytes>,
    /// Takes its standard error as it comes.
    pub error: mpsc::Sender<Bytes>,
}

/// Time of a command without one of its own: the contract's backstop for a run in a sandbox. Hit: the
/// command ends as if its own timeout had been reached.
const BACKSTOP: Duration = Duration::from_secs(4 * 60 * 60);

impl Session {
    /// Runs a command to its end.
    ///
    /// `cancel` ends it, as does dropping the future.
    ///
    /// # Errors
    /// When it could not be run; a timeout and any exit code are results.
    pub async fn execute(
        &self,
        command: Command,
        streams: Streams,
        cancel: CancellationToken,
    ) -> Result<(Exit, Bill), Error> {
        self.needs(&[Method::Execute])?;
        self.may_hold_work().await?;
        let (exit, bill) = self.run_command(command, streams, cancel).await?;
        self.record(&ended(&exit), &bill).await;
        Ok((exit, bill))
    }

    /// The same for a command of the host's own, which makes no work and is no part of the history.
    pub(super) async fn run_command(
        &self,
        command: Command,
        streams: Streams,
        cancel: CancellationToken,
    ) -> Result<(Exit, Bill), Error> {
        let Command { argv, cwd, env, timeout } = command;
        if let Some((name, _)) = env.iter().find(|(name, _)| !names_a_variable(name)) {
            return Err(Error::VariableName { name: name.clone() });
        }
        let timeout = timeout.unwrap_or(BACKSTOP);
        let bytes = |text: &String| text.len() as u64;
        let variables = env.iter().map(|(name, value)| bytes(name) + bytes(value));
        let arguments: u64 = argv.iter().map(bytes).chain(variables).sum();
        let request = ExecuteRequest {
            lease: self.allocation()?,
            argv,
            cwd,
            env,
            timeout_ms: Some(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)),
            // Without a session that stays, every command is one by itself.
            bypass_session: !self.capabilities().has(Capability::PersistentProcessSessions),
        };
        let provider = self.provider.with_arguments(arguments);
        let limits = &provider.limits;
        let hook = Execute {
            request,
            input: Box::new(AsyncReadStream::new(streams.input)),
            standard_output: Output::new(limits).with_live(streams.output),
            standard_error: Output::new(limits).with_live(streams.error),
        };
        let finished = self.call_with(&provider, Method::Execute, Some(timeout), hook, cancel).await?;
        let result = finished.answer?.map_err(convert::fault)?;
        Ok((result.exit, finished.bill))
    }
}

/// How a command ended, without what it was: arguments may hold secrets.
fn ended(exit: &Exit) -> String {
    match exit {
        Exit::Exited(code) => format!("a command ended with exit code {code}"),
        Exit::Signaled(signal) => format!("a command was ended by signal {signal}"),
        Exit::TimedOut => "a command was ended as its time was over".into(),
    }
}

/// The contract's rule for names of variables; providers put them into shells.
fn names_a_variable(name: &str) -> bool {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit()) && name.chars().all(good)
}
