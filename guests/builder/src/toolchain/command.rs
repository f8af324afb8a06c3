//! Runs other programs.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, io};

use anyhow::{Context, Result, bail};

/// Runs a command to its end and returns what it wrote to standard output.
///
/// A failure holds what it wrote to standard error; a success keeps that quiet.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    // English whatever the user's language, because some of it is parsed.
    let done = command.env("LC_ALL", "C").output().with_context(|| format!("`{name}` cannot be run"))?;
    if !done.status.success() {
        let arguments: Vec<_> = command.get_args().map(|a| a.to_string_lossy().into_owned()).collect();
        let said = String::from_utf8_lossy(&done.stderr);
        bail!("`{name} {}` failed ({}): {}", arguments.join(" "), done.status, said.trim());
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

/// The program that `variable` names, else `default`. Cargo sets such variables for what it runs.
pub(crate) fn program(variable: &str, default: &str) -> OsString {
    env::var_os(variable).filter(|name| !name.is_empty()).unwrap_or_else(|| default.into())
}

/// Cargo, without settings meant for the host's own build.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(program("CARGO", "cargo"));
    for name in [
        "CARGO_BUILD_RUSTC",
        "CARGO_BUILD_RUSTC_WRAPPER",
        "CARGO_BUILD_RUSTFLAGS",
        "CARGO_BUILD_TARGET",
        "CARGO_BUILD_TARGET_DIR",
        "CARGO_ENCODED_RUSTFLAGS",
        "RUSTC_WORKSPACE_WRAPPER",
        "RUSTC_WRAPPER",
        "RUSTDOCFLAGS",
        "RUSTFLAGS",
    ] {
        command.env_remove(name);
    }
    command
}

/// Compiler flags, as cargo wants them in `CARGO_ENCODED_RUSTFLAGS`. Sources below `root` are called `name`
/// in what is built: a path of this machine in a component would make it differ between machines.
pub(crate) fn flags(more: &[&str], root: &Path, name: &str) -> String {
    let mut flags: Vec<String> = more.iter().map(|flag| flag.to_string()).collect();
    flags.push(format!("--remap-path-prefix={}={name}", root.display()));
    let cargo_home =
        env::var_os("CARGO_HOME").map(PathBuf::from).or_else(|| Some(env::home_dir()?.join(".cargo")));
    if let Some(home) = cargo_home {
        flags.push(format!("--remap-path-prefix={}=/cargo", home.display()));
    }
    flags.join("\u{1f}")
}

/// Tells the person who waits what is going on.
pub(crate) fn say(text: &str) {
    // Nobody to tell is no reason to stop.
    _ = writeln!(io::stderr().lock(), "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_carries_what_the_program_said() {
        let error = output(Command::new("sh").args(["-c", "echo why >&2; exit 3"])).unwrap_err().to_string();
        assert!(error.contains("why") && error.contains('3'), "{error}");
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = output(&mut Command::new("no-such-program-here")).unwrap_err().to_string();
        assert!(error.contains("no-such-program-here"), "{error}");
    }
}
