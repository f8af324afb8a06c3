//! Runs the real binary in a directory of its own.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]
#![allow(dead_code, reason = "each file of tests uses what it needs")]

pub(crate) mod sandbox;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// A directory with a cache that starts empty.
pub(crate) struct Place {
    directory: TempDir,
}

/// What a run of the binary gave.
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Place {
    pub(crate) fn new() -> Self {
        Place { directory: TempDir::new().unwrap() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Writes a file and gives its name.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        std::fs::write(self.path().join(name), content).unwrap();
        name.to_owned()
    }

    /// Copies a fixture here and gives its name.
    pub(crate) fn fixture(&self, name: &str) -> String {
        self.write(&format!("{name}.wasm"), leasehold_builder::fixture(name).unwrap())
    }

    pub(crate) fn cache(&self) -> PathBuf {
        self.path().join("cache")
    }

    /// A folder below this one, made if need be.
    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        let folder = self.path().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// Runs the binary with leases and jails of this place.
    pub(crate) fn host(&self, arguments: &[&str]) -> Ran {
        ran(self.command(arguments).output().unwrap())
    }

    /// The same, ready for more.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
        command.args(arguments).current_dir(self.path()).env("XDG_CACHE_HOME", self.cache());
        command.env("XDG_STATE_HOME", self.path().join("state")).stdin(std::process::Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
        command.args(arguments).current_dir(self.path()).env("XDG_CACHE_HOME", self.cache());
        ran(command.output().unwrap())
    }
}

fn ran(Output { status, stdout, stderr }: Output) -> Ran {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ran { code: status.code(), stdout: text(stdout), stderr: text(stderr) }
}

impl Ran {
    /// Standard output of a run that succeeded without a word on standard error.
    pub(crate) fn quiet(self) -> String {
        assert_eq!((self.code, self.stderr.as_str()), (Some(0), ""), "{}", self.stdout);
        self.stdout
    }

    /// Standard error of a run that ended with this code and no output.
    pub(crate) fn refused(self, code: i32) -> String {
        assert_eq!((self.code, self.stdout.as_str()), (Some(code), ""), "{}", self.stderr);
        self.stderr
    }

    /// Standard output of a run that succeeded, as JSON.
    pub(crate) fn json(self) -> serde_json::Value {
        serde_json::from_str(&self.quiet()).unwrap()
    }
}
