//! Running one command to its end.

use super::command::{Command, Exit};
use super::error::{Limit, LimitHit, io_at};
use super::protocol::{Request, Stage, WORD, Word};
use super::running::Running;
use super::{JailError, init, launch, streams, watch};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::Signal;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::net::unix::pipe;
use tokio::sync::watch as signal;

/// Between the request to end and the end by force, after a timeout. Enough to write a file or remove
/// one; a command that needs longer is ended in the middle of it.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Runs a command in a running jail. Dropping the future ends the command.
pub(super) async fn run(
    running: Arc<Running>,
    command: &Command,
    input: impl AsyncRead + Send + Unpin,
    output: impl AsyncWrite + Send + Unpin,
    error: impl AsyncWrite + Send + Unpin,
) -> Result<Exit, JailError> {
    let (launch, size) = launch::write(command)?;
    let failed = |source| io_at("make pipes for a command in", running.locked.path.clone())(source);
    let pipe = || pipe_with(PipeFlags::CLOEXEC).map_err(|errno| failed(errno.into()));
    let ((input_there, input_here), (output_here, output_there)) = (pipe()?, pipe()?);
    let ((error_here, error_there), (report_here, report_there)) = (pipe()?, pipe()?);
    for output in [&output_here, &error_here] {
        // A user may have used up what all pipes together may hold; then it stays at the default.
        let _ = rustix::pipe::fcntl_setpipe_size(output, streams::PIECE);
    }
    let input_here = pipe::Sender::from_owned_fd(nonblocking(input_here)?).map_err(failed)?;
    let receiver = |handle| pipe::Receiver::from_owned_fd(nonblocking(handle)?).map_err(failed);
    let (output_here, error_here) = (receiver(output_here)?, receiver(error_here)?);
    let mut report = receiver(report_here)?;

    let id = running.number();
    let there = [&input_there, &output_there, &error_there, &report_there, &launch];
    running.commands.fetch_add(1, Ordering::AcqRel);
    let guard = EndCommand { running: &running, id, done: false };
    running.ask(Request::Run { id, size }, &there.map(|handle| handle.as_fd()))?;
    drop((input_there, output_there, error_there, report_there, launch));
    running.pulse.quicken();

    let (ended, end) = signal::channel(false);
    let waiting = async {
        let outcome = wait(&guard, command.timeout, &mut report).await;
        // The streams now only have to deliver what is already on its way.
        let _ = ended.send(true);
        outcome
    };
    let (outcome, (), (), ()) = tokio::join!(
        waiting,
        streams::feed(input, input_here, end.clone()),
        streams::deliver(output_here, output, end.clone()),
        streams::deliver(error_here, error, end.clone()),
    );
    guard.done();
    match outcome? {
        Outcome::Ended(exit) => limit_behind(&running, exit).await,
        Outcome::Failed { at, errno } => Err(failure(&running, command, at, errno)),
        Outcome::Gone => Err(running.end_reason()),
    }
}

fn nonblocking(handle: OwnedFd) -> Result<OwnedFd, JailError> {
    // Only this end: the flag is the open pipe's end's own, and commands expect theirs to block.
    rustix::io::ioctl_fionbio(&handle, true).map_err(|errno| io_at("prepare", "a pipe")(errno.into()))?;
    Ok(handle)
}

enum Outcome {
    Ended(Exit),
    Failed { at: u32, errno: i32 },
    Gone,
}

/// Waits for the report, and ends the command when its time is over.
async fn wait(
    guard: &EndCommand<'_>,
    timeout: Option<Duration>,
    report: &mut pipe::Receiver,
) -> Result<Outcome, JailError> {
    let mut hear = Box::pin(hear(report));
    let Some(timeout) = timeout else { return hear.await };
    if let Ok(outcome) = tokio::time::timeout(timeout, &mut hear).await {
        return outcome;
    }
    guard.end(Signal::TERM);
    let outcome = match tokio::time::timeout(LAST_WORDS, &mut hear).await {
        Ok(outcome) => outcome,
        Err(_) => {
            guard.end(Signal::KILL);
            hear.await
        }
    };
    // However it ended after that, it did so because of its timeout; but a jail that is gone is gone.
    Ok(match outcome? {
        Outcome::Ended(_) => Outcome::Ended(Exit::TimedOut),
        other => other,
    })
}

async fn hear(report: &mut pipe::Receiver) -> Result<Outcome, JailError> {
    let mut bytes = [0; WORD];
    match report.read_exact(&mut bytes).await {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(Outcome::Gone),
        Err(error) => return Err(io_at("read the report of", "a command")(error)),
    }
    Ok(match Word::decode(bytes) {
        Some(Word::Exited { code }) => Outcome::Ended(Exit::Exited(code)),
        Some(Word::Signaled { signal }) => Outcome::Ended(Exit::Signaled(signal)),
        Some(Word::Failed { at, errno }) => Outcome::Failed { at, errno },
        _ => Outcome::Gone,
    })
}

/// A command that was ended by the kernel because of a bound is told as that bound, not as a signal.
async fn limit_behind(running: &Arc<Running>, exit: Exit) -> Result<Exit, JailError> {
    const SIGXFSZ: i32 = 25;
    match (exit, running.bounds.disk_bytes) {
        (Exit::Signaled(SIGXFSZ), Some(allowed)) => {
            return Err(LimitHit { which: Limit::Disk, allowed, at: allowed }.into());
        }
        (Exit::Exited(0), _) => {}
        _ => watch::look_now(running).await,
    }
    running.limit().map_or(Ok(exit), |limit| Err(limit.into()))
}

fn failure(running: &Running, command: &Command, at: u32, errno: i32) -> JailError {
    let source = io::Error::from_raw_os_error(errno);
    let program = command.argv.first().cloned().unwrap_or_default();
    match (at, errno) {
        (Stage::EXEC, libc::ENOENT | libc::ENOTDIR) => JailError::NotFound { program },
        (Stage::EXEC, libc::E2BIG) => {
            let bytes = |text: &String| text.len() as u64 + 1;
            let one = command
                .argv
                .iter()
                .map(bytes)
                .chain(command.env.iter().map(|(name, value)| bytes(name) + bytes(value)));
            if let Some(at) = one.max().filter(|at| *at > ONE_ARGUMENT) {
                return LimitHit { which: Limit::Arguments, allowed: ONE_ARGUMENT, at }.into();
            }
            let at = command.argv.iter().map(bytes).sum::<u64>()
                + command.env.iter().map(|(name, value)| bytes(name) + bytes(value)).sum::<u64>();
            LimitHit { which: Limit::Arguments, allowed: argument_space(), at }.into()
        }
        (Stage::EXEC, _) => JailError::NotExecutable { program, source },
        (Stage::DIRECTORY, _) => {
            JailError::WorkingDirectory { path: command.cwd.clone().unwrap_or_default(), source }
        }
        (Stage::SLOTS, _) => {
            let commands = init::COMMANDS as u64;
            LimitHit { which: Limit::Commands, allowed: commands, at: commands + 1 }.into()
        }
        (Stage::FORK, libc::EAGAIN) if running.bounds.processes.is_some() => {
            let allowed = running.bounds.processes.map_or(0, u64::from);
            LimitHit { which: Limit::Processes, allowed, at: allowed + 1 }.into()
        }
        _ => io_at("start a command in", running.locked.path.clone())(source),
    }
}

/// Bytes the kernel takes as one argument or variable.
const ONE_ARGUMENT: u64 = 128 << 10;

/// Bytes the kernel gives to arguments and environment together: a quarter of the stack, 6 MiB at most.
fn argument_space() -> u64 {
    const MOST: u64 = 6 << 20;
    let stack = rustix::process::getrlimit(rustix::process::Resource::Stack).current;
    stack.map_or(MOST, |stack| (stack / 4).min(MOST))
}

/// Ends the command when nobody waits for it any more.
struct EndCommand<'a> {
    running: &'a Running,
    id: u64,
    done: bool,
}

impl EndCommand<'_> {
    fn end(&self, signal: Signal) {
        if let Err(error) = self.running.ask(Request::End { id: self.id, signal: signal.as_raw() }, &[]) {
            // Then the jail is gone, and the command with it.
            tracing::debug!(jail = self.running.name, %error, "a command could not be signalled");
        }
    }

    fn done(mut self) {
        self.done = true;
    }
}

impl Drop for EndCommand<'_> {
    fn drop(&mut self) {
        if !self.done {
            self.end(Signal::KILL);
        }
        self.running.commands.fetch_sub(1, Ordering::AcqRel);
    }
}
