//! Requests to the engine, and what its answers mean.

use crate::config::Config;
use leasehold_sdk::error::cut;
use leasehold_sdk::http::{Answer, Method, Request};
use leasehold_sdk::{failed, gone, transient, Error, TransientCategory};
use serde::{Deserialize, Serialize};

/// The version that is spoken: old enough for every engine that is still kept, new enough for all that is used.
const VERSION: &str = "/v1.41";

/// Bytes of an error's message.
const MESSAGE_MAX: usize = 2_000;

/// An engine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Engine<'a> {
    config: &'a Config,
}

/// An answer that says that something went wrong.
#[derive(Debug)]
pub(crate) struct Refused {
    /// The status.
    pub(crate) status: u16,
    /// What the engine says, for people.
    pub(crate) message: String,
}

/// What came of a request: an answer, a refusal of the engine, or none of both.
pub(crate) type Asked<T> = Result<Result<T, Refused>, Error>;

impl<'a> Engine<'a> {
    pub(crate) fn of(config: &'a Config) -> Engine<'a> {
        Engine { config }
    }

    /// What a connection to it is granted under.
    pub(crate) fn authority(&self) -> &'a str {
        // A configuration without one was refused before.
        self.config.authority().unwrap_or_default()
    }

    /// Its URL, which is the account as well: whoever reaches it may do everything.
    pub(crate) fn url(&self) -> &'a str {
        self.config.engine()
    }

    /// The path of a request as it is sent over a plain connection.
    pub(crate) fn path(path: &str) -> String {
        format!("{VERSION}{path}")
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> Request {
        Request::new(method, &format!("{}{VERSION}{path}", self.url()))
    }

    pub(crate) fn get(&self, path: &str) -> Asked<Answer> {
        judged(self.request(Method::Get, path).send()?)
    }

    pub(crate) fn post(&self, path: &str, body: &impl Serialize) -> Asked<Answer> {
        judged(self.request(Method::Post, path).body_json(body).send()?)
    }

    /// A request without a body that does something.
    pub(crate) fn act(&self, method: Method, path: &str) -> Asked<Answer> {
        judged(self.request(method, path).send()?)
    }
}

/// An answer, or what the engine says instead.
pub(crate) fn judged(answer: Answer) -> Asked<Answer> {
    match answer.status() {
        0..=399 => Ok(Ok(answer)),
        status => Ok(Err(Refused { status, message: message(&answer.text(MESSAGE_MAX)?) })),
    }
}

/// Says nothing more than that it was done. The body is read, so that the connection can be used again.
pub(crate) fn done(asked: Asked<Answer>) -> Asked<u16> {
    Ok(match asked? {
        Ok(answer) => {
            let status = answer.status();
            answer.bytes(0)?;
            Ok(status)
        }
        Err(refused) => Err(refused),
    })
}

/// What an engine says in its own form, or the text as it is.
pub(crate) fn message(text: &str) -> String {
    #[derive(Deserialize)]
    struct Said {
        message: String,
    }
    cut(serde_json::from_str::<Said>(text).map_or_else(|_| text.trim().to_owned(), |said| said.message))
}

/// What the kernel says when a disk is full. Engines pass it on as a text alone.
const DISK_FULL: &str = "no space left on device";

impl Refused {
    /// As an error about `what`; 404 is for whoever asked to understand.
    pub(crate) fn into_error(self, what: &str) -> Error {
        let Refused { status, message } = self;
        if message.to_ascii_lowercase().contains(DISK_FULL) {
            return failed("disk_full", format!("{what}: the engine's disk is full: {message}"));
        }
        let message = format!("{what}: the engine answers {status}: {message}");
        match status {
            503 => transient(TransientCategory::Unavailable, message),
            _ => failed("engine_refused", message),
        }
    }

    /// As an error about a container, which may be gone.
    pub(crate) fn of_container(self, what: &str) -> Error {
        match self.status {
            404 => gone(),
            _ => self.into_error(what),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_and_a_lost_container_are_told_from_everything_else() {
        let refused = |status, message: &str| Refused { status, message: message.into() };
        let code = |error| match error {
            Error::Failed(fault) => fault.code,
            other => format!("{other:?}"),
        };
        let full = "write /a: No space left on device";
        assert_eq!(code(refused(500, full).into_error("x")), "disk_full");
        assert_eq!(code(refused(500, "y").into_error("x")), "engine_refused");
        assert!(matches!(refused(404, "y").of_container("x"), Error::Gone));
        assert_eq!(message(r#"{"message":"m"}"#), "m");
        assert_eq!(message(" plain \n"), "plain");
    }
}
