//! A script that waits in the sandbox until it is told to go on. It is started while something else is under way,
//! so that nobody waits for it to start.

use super::{Attached, Command, OUTPUT_MAX};
use crate::engine::{Engine, Refused};
use leasehold_sdk::Error;

/// The word that tells it to go on. Without it, its input ends.
const GO: &[u8] = b"go\n";

/// The word it says once it waits.
const READY: &[u8] = b"ready";

/// A script that runs as root and waits.
pub(crate) struct Waiting<'a> {
    engine: Engine<'a>,
    id: &'a str,
    what: &'static str,
    exec: String,
    attached: Attached,
}

impl<'a> Engine<'a> {
    /// Starts a script that says `ready`, reads one word, and goes on if that is `go`.
    pub(crate) fn waiting(
        self,
        id: &'a str,
        what: &'static str,
        script: &str,
        arguments: &[&str],
    ) -> Result<Waiting<'a>, Error> {
        let argv = [&["/bin/sh", "-c", script, "leasehold"], arguments].concat();
        let command = Command { argv, env: &[], user: Some("0"), input: true };
        let exec = self.prepare(id, &command)?;
        let attached = Attached::begin(self, &exec)?;
        Ok(Waiting { engine: self, id, what, exec, attached })
    }
}

impl Waiting<'_> {
    /// Waits until it waits.
    pub(crate) fn ready(&mut self) -> Result<(), Error> {
        self.attached.answered(self.engine, self.id)?;
        let mut said = Vec::new();
        while let Some((_, bytes)) = self.attached.said()? {
            said.extend_from_slice(&bytes);
            if said.starts_with(READY) {
                return Ok(());
            }
        }
        Err(self.failed(&String::from_utf8_lossy(&said)))
    }

    /// Tells it to go on, and waits for its end.
    pub(crate) fn go(mut self) -> Result<(), Error> {
        let said = self.ended(GO)?;
        match self.engine.code(&self.exec)? {
            0 => Ok(()),
            _ => Err(self.failed(&said)),
        }
    }

    /// Lets it tidy up instead; whether it could.
    pub(crate) fn give_up(mut self) -> bool {
        self.ended(b"").is_ok()
    }

    fn ended(&mut self, word: &[u8]) -> Result<String, Error> {
        self.attached.answered(self.engine, self.id)?;
        self.attached.told(word)?;
        let (output, error) = self.attached.collected(OUTPUT_MAX)?;
        Ok([output.trim_start_matches("ready").trim(), error.trim()].join(" "))
    }

    fn failed(&self, said: &str) -> Error {
        Refused { status: 500, message: said.trim().to_owned() }.into_error(self.what)
    }
}
