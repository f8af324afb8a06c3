//! Commands of the provider's own, and what every command needs.

mod attach;
mod frames;
mod record;
mod supervise;
mod waiting;

pub(crate) use attach::{Attached, Ended, Input, Outputs};
pub(crate) use record::{settled, Outcome};
pub(crate) use supervise::{killed, supervised, Name};

use crate::engine::{Engine, Refused};
use leasehold_sdk::http::encoded;
use leasehold_sdk::{failed, Error};
use serde::Deserialize;
use serde_json::json;

/// Where the records of commands are, in a file system in memory.
pub(crate) const RECORDS: &str = "/run/leasehold";

/// Bytes kept of what a command of the provider's own writes.
const OUTPUT_MAX: usize = 64 << 10;

/// A command for the engine.
#[derive(Debug)]
pub(crate) struct Command<'a> {
    /// The argument vector.
    pub(crate) argv: Vec<&'a str>,
    /// Variables to add.
    pub(crate) env: &'a [(String, String)],
    /// The user; none for the container's own.
    pub(crate) user: Option<&'a str>,
    /// Whether it reads anything.
    pub(crate) input: bool,
}

/// What a command of the provider's own wrote, and how it ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i64,
    pub(crate) output: String,
    pub(crate) error: String,
}

/// How an exec stands.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Standing {
    pub(crate) running: bool,
    pub(crate) exit_code: Option<i64>,
}

impl Engine<'_> {
    /// Prepares a command in a container; its id.
    pub(crate) fn prepare(&self, id: &str, command: &Command<'_>) -> Result<String, Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Created {
            id: String,
        }
        let env: Vec<_> = command.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mut body = json!({
            "AttachStdin": command.input, "AttachStdout": true, "AttachStderr": true, "Tty": false,
            "Cmd": command.argv, "Env": env,
        });
        if let Some(user) = command.user {
            body["User"] = user.into();
        }
        match self.post(&format!("/containers/{}/exec", encoded(id)), &body)? {
            Ok(answer) => Ok(answer.json::<Created>()?.id),
            Err(refused) => Err(self.why_not(id, refused)),
        }
    }

    /// Why a command cannot run: by what the container is doing, for engines say it in different ways.
    pub(crate) fn why_not(&self, id: &str, refused: Refused) -> Error {
        match self.running(id) {
            Err(error) => error,
            Ok(container) if container.state.paused => {
                failed("sandbox_paused", "the container is paused; take the lease up again to continue it")
            }
            Ok(_) => refused.into_error("running a command"),
        }
    }

    /// How an exec stands; none when the engine knows nothing of it any more.
    pub(crate) fn standing(&self, exec: &str) -> Result<Option<Standing>, Error> {
        match self.get(&format!("/exec/{}/json", encoded(exec)))? {
            Ok(answer) => answer.json().map(Some),
            Err(Refused { status: 404, .. }) => Ok(None),
            Err(refused) => Err(refused.into_error("looking at a command")),
        }
    }

    /// Runs a short command of the provider's own to its end.
    pub(crate) fn run(&self, id: &str, user: Option<&str>, argv: Vec<&str>) -> Result<Ran, Error> {
        let command = Command { argv, env: &[], user, input: false };
        let exec = self.prepare(id, &command)?;
        let mut attached = Attached::start(*self, id, &exec)?;
        let (output, error) = attached.collected(OUTPUT_MAX)?;
        Ok(Ran { code: self.code(&exec)?, output, error })
    }

    /// The exit code of a command of the provider's own, whose stream has ended.
    fn code(&self, exec: &str) -> Result<i64, Error> {
        for pause in [0, 5, 20, 100, 500] {
            leasehold_sdk::time::sleep(pause);
            if let Some(Standing { running: false, exit_code: Some(code) }) = self.standing(exec)? {
                return Ok(code);
            }
        }
        Err(failed("command_lost", "the engine does not say how a command of the provider ended"))
    }

    /// Runs a script as root; what it wrote.
    pub(crate) fn script(
        &self,
        id: &str,
        what: &str,
        script: &str,
        arguments: &[&str],
    ) -> Result<String, Error> {
        let argv = [&["/bin/sh", "-c", script, "leasehold"], arguments].concat();
        let ran = self.run(id, Some("0"), argv)?;
        match ran.code {
            0 => Ok(ran.output),
            code => {
                let said = [ran.error.trim(), ran.output.trim()].join(" ");
                Err(Refused { status: 500, message: format!("exit code {code}: {said}") }.into_error(what))
            }
        }
    }
}

/// Makes a directory that commands of a user can write to.
pub(crate) fn directory(engine: Engine<'_>, id: &str, path: &str, user: &str) -> Result<(), Error> {
    const MAKE: &str = "mkdir -p -- \"$1\" || exit; [ -z \"$2\" ] || chown -- \"$2\" \"$1\"";
    engine.script(id, "making a directory", MAKE, &[path, user]).map(drop)
}
