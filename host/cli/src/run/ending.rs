//! How a run ended, as an exit code.

use super::cancel::Cancel;
use anyhow::Context as _;
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
        Ok((Exit::Signaled(signal), _)) => Ok(Ending::Signaled(number(&signal)?)),
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

/// Signals by number, from 1; providers name them so, or by number where a kernel of another kind numbers them.
const SIGNALS: [&str; 31] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE",
    "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ",
    "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
];

/// The number of a signal that was named as in `SIGKILL`, or given as a number.
fn number(signal: &str) -> anyhow::Result<i32> {
    let named = signal.strip_prefix("SIG").and_then(|name| SIGNALS.iter().position(|known| *known == name));
    let number = named.and_then(|at| i32::try_from(at + 1).ok()).or_else(|| signal.parse().ok());
    number.filter(|number| (1..=64).contains(number)).with_context(|| {
        let signal = leasehold::contract::text::plain(signal, 40);
        format!("the command was ended by `{signal}`, which is no signal of this machine")
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_read_by_name_and_by_number() {
        for (signal, expected) in [("SIGHUP", 1), ("SIGKILL", 9), ("SIGTERM", 15), ("SIGSYS", 31), ("9", 9)] {
            assert_eq!(number(signal).unwrap(), expected);
        }
        for signal in ["SIGNOPE", "KILL", "0", "-9", "1000", ""] {
            assert!(number(signal).is_err(), "{signal}");
        }
    }
}
