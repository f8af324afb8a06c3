//! A command and how it ends.

use std::time::Duration;

/// A command for a jail.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// The program and its arguments, passed on as they are. A program without a slash is looked for in
    /// the `PATH` of the command, inside the jail.
    pub argv: Vec<String>,
    /// Working directory inside the jail, absolute; `/workspace` when there is none.
    pub cwd: Option<String>,
    /// The whole environment. `PATH` and `HOME` are added when they are not in it.
    pub env: Vec<(String, String)>,
    /// How long it may run.
    pub timeout: Option<Duration>,
}

impl Command {
    /// A command with these arguments and nothing else set.
    pub fn new<S: Into<String>>(argv: impl IntoIterator<Item = S>) -> Command {
        Command { argv: argv.into_iter().map(Into::into).collect(), ..Command::default() }
    }
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code.
    Exited(i32),
    /// By this signal.
    Signaled(i32),
    /// By its timeout.
    TimedOut,
}

impl std::fmt::Display for Exit {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Exit::Exited(code) => write!(out, "code {code}"),
            Exit::Signaled(signal) => write!(out, "signal {signal}"),
            Exit::TimedOut => out.write_str("its timeout"),
        }
    }
}
