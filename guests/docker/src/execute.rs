//! Commands of whoever leased.

use crate::config::Config;
use crate::container::metadata;
use crate::engine::Engine;
use crate::exec::{self, Attached, Command, Ended, Input, Name, Outcome, Outputs};
use crate::Docker;
use leasehold_sdk::{
    exited, failed, signaled, time, timed_out, Call, Error, Execute, ExecuteRequest, ExecuteResult, Streams,
};

/// The longest argument, in bytes: the kernel's limit for one.
const ARGUMENT_MAX: usize = 131_071;

/// How long what a killed command has left in its pipes is waited for, in milliseconds.
const LAST_WORDS_MS: u64 = 2_000;

/// Time that is kept of the call's own for ending a command and saying so, in milliseconds.
const MARGIN_MS: u64 = 10_000;

/// Signals by number, from 1.
const SIGNALS: [&str; 31] = [
    "SIGHUP",
    "SIGINT",
    "SIGQUIT",
    "SIGILL",
    "SIGTRAP",
    "SIGABRT",
    "SIGBUS",
    "SIGFPE",
    "SIGKILL",
    "SIGUSR1",
    "SIGSEGV",
    "SIGUSR2",
    "SIGPIPE",
    "SIGALRM",
    "SIGTERM",
    "SIGSTKFLT",
    "SIGCHLD",
    "SIGCONT",
    "SIGSTOP",
    "SIGTSTP",
    "SIGTTIN",
    "SIGTTOU",
    "SIGURG",
    "SIGXCPU",
    "SIGXFSZ",
    "SIGVTALRM",
    "SIGPROF",
    "SIGWINCH",
    "SIGIO",
    "SIGPWR",
    "SIGSYS",
];

impl Execute for Docker {
    fn execute(
        call: &Call<Config>,
        request: ExecuteRequest,
        streams: Streams,
    ) -> Result<ExecuteResult, Error> {
        let engine = Engine::of(&call.config);
        let id = &request.lease.id;
        checked(&request)?;
        let known = metadata(&request.lease);
        let podman = known.as_ref().is_some_and(|known| known.podman);
        let user = known.as_ref().map(|known| known.user.clone()).filter(|user| !user.is_empty());
        let cwd = request.cwd.or(known.map(|known| known.remote_cwd));
        let cwd = cwd.unwrap_or_else(|| call.config.workspace().to_owned());
        let name = Name::of(&call.context.invocation_id);
        let argv = exec::supervised(&name, &cwd, podman, &request.argv);
        let command = Command { argv, env: &request.env, user: user.as_deref(), input: true };

        let exec = engine.prepare(id, &command)?;
        let began = time::ticks_ms();
        let mut attached = Attached::start(engine, id, &exec)?;
        let left = call.context.remaining_ms.saturating_sub(MARGIN_MS).max(1);
        let until = Some(began + request.timeout_ms.unwrap_or(left));
        let Streams { input, output, error } = streams;
        let to = Outputs { output: &output, error: &error };
        let mut input = Input::Open(input);
        let outcome = match attached.watch(&mut input, &to, until)? {
            Ended::Stream => exec::settled(engine, id, &exec, &name, until)?,
            Ended::Time => Outcome::TimedOut,
        };
        match outcome {
            Outcome::TimedOut => {
                exec::killed(engine, id, &name)?;
                attached.watch(&mut Input::Closed, &to, Some(time::ticks_ms() + LAST_WORDS_MS))?;
                Ok(timed_out())
            }
            Outcome::Code { code, cut } => Ok(result(code, cut)),
        }
    }
}

fn checked(request: &ExecuteRequest) -> Result<(), Error> {
    let Some(program) = request.argv.first() else {
        return Err(failed("program_not_found", "the command is empty"));
    };
    if program.is_empty() {
        return Err(failed("program_not_found", "the program has no name"));
    }
    let variables = request.env.iter().map(|(name, value)| name.len() + value.len() + 1);
    let longest = request.argv.iter().map(String::len).chain(variables).max().unwrap_or(0);
    if longest > ARGUMENT_MAX {
        return Err(failed(
            "argument_too_long",
            format!("an argument has {longest} bytes, and one may have {ARGUMENT_MAX}; send it as input or a file"),
        ));
    }
    if request.argv.iter().any(|argument| argument.contains('\0')) {
        return Err(failed("argument_refused", "an argument holds a zero byte"));
    }
    Ok(())
}

fn result(code: i64, cut: bool) -> ExecuteResult {
    let signal = usize::try_from(code - 129).ok().and_then(|at| SIGNALS.get(at));
    let mut result = match signal {
        Some(signal) => signaled(signal),
        None => exited(i32::try_from(code).unwrap_or(i32::MAX)),
    };
    if cut {
        result.metadata = Some(r#"{"outputCut":true}"#.into());
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_sdk::Exit;

    #[test]
    fn a_code_above_128_is_the_signal_it_stands_for() {
        let exit = |code| match result(code, false).exit {
            Exit::Exited(code) => code.to_string(),
            Exit::Signaled(signal) => signal,
            Exit::TimedOut => "timed out".into(),
        };
        for (code, expected) in [
            (0, "0"),
            (1, "1"),
            (128, "128"),
            (129, "SIGHUP"),
            (137, "SIGKILL"),
            (143, "SIGTERM"),
            (159, "SIGSYS"),
            (160, "160"),
            (255, "255"),
        ] {
            assert_eq!(exit(code), expected);
        }
    }
}
