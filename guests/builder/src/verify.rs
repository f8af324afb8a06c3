//! The whole check, as a person and as continuous integration run it.
//!
//! Every step is named on standard error. The first that fails ends the check with its exit code. The last
//! line on standard output counts the tests.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::layout;
use crate::toolchain::{program, say};

/// A step that runs cargo: what it is for, its arguments, and what to do when it fails.
type Step = (&'static str, &'static [&'static str], &'static str);

const FORMAT: Step = ("format", &["fmt", "--all", "--check"], "type `cargo fmt --all`");
/// Guests are a workspace of their own.
const GUEST_FORMAT: Step = (
    "format of guests",
    &["fmt", "--all", "--check", "--manifest-path", "guests/Cargo.toml"],
    "type `cargo fmt --all --manifest-path guests/Cargo.toml`",
);
const LINTS: Step = (
    "lints",
    &["clippy", "--workspace", "--all-targets", "--locked", "--quiet", "--", "-Dwarnings"],
    "correct what clippy says above",
);
const DOCUMENTATION: Step = (
    "documentation",
    &["doc", "--workspace", "--no-deps", "--locked", "--quiet"],
    "correct what rustdoc says above",
);
/// Without `--no-fail-fast` the closing line would count only up to the first failure.
const TESTS: Step = (
    "tests",
    &["test", "--workspace", "--locked", "--quiet", "--no-fail-fast"],
    "correct the tests that fail above",
);

/// Guests as programs of this machine: what needs no host, and the examples in their documentation.
const GUEST_TESTS: Step = (
    "tests of guests",
    &[
        "test",
        "--manifest-path",
        "guests/Cargo.toml",
        "--locked",
        "--quiet",
        "--no-fail-fast",
        "-p",
        "leasehold-sdk",
        "-p",
        "docker",
    ],
    "correct the tests that fail above",
);

/// Runs every step; returns the exit code of the whole.
///
/// # Errors
///
/// When a step cannot be run at all, or guests do not build.
pub fn run() -> Result<i32> {
    for next in [FORMAT, GUEST_FORMAT] {
        let code = step(next)?;
        if code != 0 {
            return Ok(code);
        }
    }
    say("verify: guests");
    say(&crate::build_all()?.to_string());
    for next in [LINTS, DOCUMENTATION] {
        let code = step(next)?;
        if code != 0 {
            return Ok(code);
        }
    }
    let mut count = Count::default();
    let codes = [tests(GUEST_TESTS, &mut count)?, tests(TESTS, &mut count)?];
    writeln!(io::stdout(), "{count}")?;
    Ok(codes.into_iter().find(|code| *code != 0).unwrap_or(0))
}

fn command((name, arguments, _): Step) -> Command {
    say(&format!("verify: {name}"));
    let mut command = Command::new(program("CARGO", "cargo"));
    command.args(arguments).current_dir(layout::workspace_root()).stdin(Stdio::null());
    command.env("RUSTDOCFLAGS", "-Dwarnings");
    if arguments.contains(&"guests/Cargo.toml") {
        // Apart from the host's, which other versions of the same crates would otherwise make stale.
        command.env("CARGO_TARGET_DIR", layout::target_dir().join("guests-host"));
    }
    command
}

fn step(step: Step) -> Result<i32> {
    let status = command(step).status().context("cargo cannot be run")?;
    finish(step, status)
}

fn finish((name, _, advice): Step, status: std::process::ExitStatus) -> Result<i32> {
    if !status.success() {
        say(&format!("verify: {name} failed; {advice}"));
    }
    // A step ended by a signal has no code of its own.
    Ok(status.code().unwrap_or(1))
}

/// Runs tests, passes on what they print as it comes, and counts them.
fn tests(step: Step, count: &mut Count) -> Result<i32> {
    let mut child = command(step).stdout(Stdio::piped()).spawn().context("cargo cannot be run")?;
    let mut out = io::stdout();
    if let Some(stdout) = child.stdout.take() {
        let mut stdout = BufReader::new(stdout);
        let mut line = Vec::new();
        while stdout.read_until(b'\n', &mut line)? > 0 {
            out.write_all(&line)?;
            count.add(&String::from_utf8_lossy(&line));
            line.clear();
        }
    }
    finish(step, child.wait()?)
}

/// Tests, summed over all test binaries.
#[derive(Debug, Default, PartialEq, Eq)]
struct Count {
    passed: u64,
    failed: u64,
    ignored: u64,
}

impl Count {
    /// Adds what a line such as `test result: ok. 3 passed; 0 failed; 1 ignored; …` says.
    fn add(&mut self, line: &str) {
        let Some(result) = line.strip_prefix("test result: ") else { return };
        let words: Vec<&str> = result.split([' ', ';', '.']).filter(|word| !word.is_empty()).collect();
        for pair in words.windows(2) {
            let Ok(number) = pair[0].parse::<u64>() else { continue };
            match pair[1].trim() {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.ignored += number,
                _ => {}
            }
        }
    }
}

impl std::fmt::Display for Count {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        if self.ignored > 0 {
            write!(f, ", {} skipped", self.ignored)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(lines: &[&str]) -> String {
        let mut count = Count::default();
        lines.iter().for_each(|line| count.add(line));
        count.to_string()
    }

    #[test]
    fn the_results_of_all_binaries_are_summed() {
        let line = counted(&[
            "running 3 tests\n",
            "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s\n",
            "test result: FAILED. 4 passed; 2 failed; 0 ignored; 0 measured; 9 filtered out; finished in 1.20s\n",
        ]);
        assert_eq!(line, "7 passed, 2 failed");
    }

    #[test]
    fn skipped_tests_are_named_only_when_there_are_some() {
        let line = counted(&["test result: ok. 1 passed; 0 failed; 5 ignored; 0 measured; 0 filtered out\n"]);
        assert_eq!(line, "1 passed, 0 failed, 5 skipped");
    }

    #[test]
    fn what_a_test_prints_is_not_counted() {
        assert_eq!(counted(&["  test result: ok. 3 passed; 0 failed\n", "3 passed\n"]), "0 passed, 0 failed");
    }
}
