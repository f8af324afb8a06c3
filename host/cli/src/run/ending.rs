//! How a run ended, as an exit code.

use super::cancel::Cancel;
use leasehold::{Bill, Error, Exit, engine::CallError};
use std::process::ExitCode;

/// Leasehold itself failed; as `docker run` and `env` say it.
pub(crate) const OURS: u8 = 125;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The command ended by itself.
    Exited(i32),
    /// A signal ended it.
    Signaled(i32),
    /// Its time was over.
    TimedOut,
    /// The program is not there.
    NotFound,
    /// The program cannot be executed.
    NotExecutable,
    /// A bound of the sandbox was reached, which ends everything in it by force.
    Bounded,
    /// This process was asked to end, by this signal.
    Cancelled(i32),
}

/// What became of a command. Whatever is no ending of the command itself is an error.
pub(crate) fn of(executed: Result<(Exit, Bill), Error>, cancel: &Cancel) -> anyhow::Result<Ending> {
    match executed {
        Ok((Exit::Exited(code), _)) => Ok(Ending::Exited(code)),
        Ok((Exit::Signaled(signal), _)) => Ok(Ending::Signaled(signal.parse().unwrap_or(0))),
        Ok((Exit::TimedOut, _)) => Ok(Ending::TimedOut),
        Err(Error::Call(CallError::Cancelled)) => Ok(cancel.ending()),
        Err(error) if error.is_program_not_found() => told(&error, Ending::NotFound),
        Err(error) if error.is_program_not_executable() => told(&error, Ending::NotExecutable),
        Err(error) if error.is_bound_reached() => told(
            &format!("{error}; let the command use less, or give its environment more in leasehold.toml"),
            Ending::Bounded,
        ),
        Err(error) => Err(error.into()),
    }
}

fn told(why: &dyn std::fmt::Display, ending: Ending) -> anyhow::Result<Ending> {
    use std::io::Write as _;
    let why = crate::told(&anyhow::anyhow!("{why}"));
    let _ = writeln!(std::io::stderr().lock(), "leasehold: {why}");
    Ok(ending)
}

impl Ending {
    /// The exit code, as shells have them.
    pub(crate) fn code(self) -> ExitCode {
        ExitCode::from(match self {
            Ending::Exited(code) => u8::try_from(code & 0xff).unwrap_or(OURS),
            Ending::Signaled(signal) => u8::try_from(128 + signal).unwrap_or(OURS),
            Ending::TimedOut => 124,
            Ending::NotFound => 127,
            Ending::NotExecutable => 126,
            // As after SIGKILL, which is what it comes to.
            Ending::Bounded => 137,
            Ending::Cancelled(signal) => u8::try_from(128 + signal).unwrap_or(OURS),
        })
    }
}
