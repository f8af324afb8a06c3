//! Why a jail did not do what it was asked.

use super::Layer;
use std::io;
use std::path::PathBuf;

/// What went wrong. Each text names the jail, the layer, the limit or the path, and what helps.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JailError {
    /// A name that cannot be one of a jail.
    #[error("`{name}` cannot name a jail: use 1 to 200 letters, digits, `-` and `_`")]
    Name {
        /// The name asked for.
        name: String,
    },
    /// The directory of all jails could be read or written by somebody else.
    #[error("jails cannot be kept in {path}: {reason}; use a directory of your own with mode 0700", path = path.display())]
    UnsafeRoot {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// There is no jail of that name.
    #[error("there is no jail `{name}`")]
    Missing {
        /// The name asked for.
        name: String,
    },
    /// The jail is there and nothing can run in it.
    #[error("jail `{name}` is stopped; create it again to go on with its files")]
    Stopped {
        /// The jail.
        name: String,
    },
    /// Another process runs the jail.
    #[error("jail `{name}` is run by process {owner}; end that process, or ask it")]
    Busy {
        /// The jail.
        name: String,
        /// The process, or 0 when it is not known.
        owner: i32,
    },
    /// The jail ended while something was under way in it.
    #[error("jail `{name}` ended while the command ran")]
    Ended {
        /// The jail.
        name: String,
    },
    /// The kernel refuses a layer of isolation.
    #[error("the kernel refuses `{layer}` ({doing}): {source}; {}", layer.advice())]
    Unsupported {
        /// The layer.
        layer: Layer,
        /// The step that was refused.
        doing: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// A layer that cannot be given up.
    #[error("`{layer}` cannot be waived: a jail without it is none")]
    NotWaivable {
        /// The layer.
        layer: Layer,
    },
    /// A bound that no jail can work with, or above the host's ceiling.
    #[error("bound `{bound}` must be from {least} to {most} here, not {value}")]
    Bound {
        /// The bound.
        bound: &'static str,
        /// The smallest value that makes sense.
        least: u64,
        /// The largest value this host gives.
        most: u64,
        /// The value asked for.
        value: u64,
    },
    /// The machine has not enough left for a jail that asks for nothing.
    #[error(
        "a jail needs at least {least} of `{bound}` and would get {left}; free some, or keep jails elsewhere"
    )]
    NothingLeft {
        /// The bound.
        bound: &'static str,
        /// What the smallest jail needs.
        least: u64,
        /// What it would get.
        left: u64,
    },
    /// The program is not there.
    #[error("`{}` was not found in the sandbox", program.escape_debug())]
    NotFound {
        /// The program, as it was asked for.
        program: String,
    },
    /// The program is there and cannot be executed.
    #[error("`{}` cannot be executed in the sandbox: {source}", program.escape_debug())]
    NotExecutable {
        /// The program, as it was asked for.
        program: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The working directory cannot be entered.
    #[error("the working directory {} cannot be entered in the sandbox: {source}", path.escape_debug())]
    WorkingDirectory {
        /// The directory.
        path: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// A command that no kernel could start.
    #[error("the command cannot be started: {reason}")]
    Command {
        /// What is wrong with it.
        reason: String,
    },
    /// A limit was hit.
    #[error(transparent)]
    Limit(#[from] LimitHit),
    /// A path that cannot be used for a transfer.
    #[error("{path} cannot be used inside the jail: {reason}")]
    Path {
        /// The path as it was given.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The bytes did not get across.
    #[error("transfer of {path}: {source}")]
    Transfer {
        /// The path inside the jail.
        path: String,
        /// What was reported.
        source: io::Error,
    },
    /// `tar` in the jail reported a fault.
    #[error("tar of {path} ended with {exit}: {text}")]
    Tar {
        /// The path inside the jail.
        path: String,
        /// How it ended.
        exit: String,
        /// The first of what it wrote to standard error.
        text: String,
    },
    /// The host's own files or the kernel failed.
    #[error("{doing} {path}: {source}", path = path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To which file.
        path: PathBuf,
        /// What was reported.
        source: io::Error,
    },
    /// A jail that did not come up or did not go away in time.
    #[error("jail `{name}` did not {doing} within {seconds} s; its processes may hang in the kernel")]
    TooSlow {
        /// The jail.
        name: String,
        /// What it did not do.
        doing: &'static str,
        /// How long it was waited for.
        seconds: u64,
    },
}

/// A limit that was hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("limit `{which}` hit: {at} of {allowed} {}{}", which.unit(), which.advice())]
pub struct LimitHit {
    /// The limit.
    pub which: Limit,
    /// What is allowed.
    pub allowed: u64,
    /// What was counted, or asked for.
    pub at: u64,
}

/// The limits of a jail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Limit {
    /// Memory of all processes together; the jail's processes were ended.
    Memory,
    /// Processes and threads at one time; the jail's processes were ended.
    Processes,
    /// Bytes of the writable directories; the jail's processes were ended.
    Disk,
    /// Depth of directories, without which the disk bound cannot be measured; the processes were ended.
    Depth,
    /// Commands under way at one time; the command was not started.
    Commands,
    /// Bytes of arguments and environment; the command was not started.
    Arguments,
}

impl Limit {
    /// The name people see.
    pub const fn name(self) -> &'static str {
        match self {
            Limit::Memory => "memory",
            Limit::Processes => "processes",
            Limit::Disk => "disk",
            Limit::Depth => "depth",
            Limit::Commands => "commands",
            Limit::Arguments => "arguments",
        }
    }

    /// What to do about it, where it is not plain.
    const fn advice(self) -> &'static str {
        match self {
            Limit::Arguments => "; pass what is large in a file or on standard input",
            Limit::Commands => "; wait for one of them to end",
            Limit::Memory | Limit::Processes | Limit::Disk | Limit::Depth => "",
        }
    }

    /// What it is counted in.
    pub const fn unit(self) -> &'static str {
        match self {
            Limit::Memory | Limit::Disk | Limit::Arguments => "bytes",
            Limit::Processes => "processes and threads",
            Limit::Depth => "nested directories",
            Limit::Commands => "commands",
        }
    }
}

impl std::fmt::Display for Limit {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.name())
    }
}

/// Shorthand of this module: an I/O error with what was done and to which file.
pub(super) fn io_at(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> JailError {
    let path = path.into();
    move |source| JailError::Io { doing, path, source }
}
