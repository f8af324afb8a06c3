//! Ways to make a fixture do something: which method, and what the method is told.

use crate::{context, lease};
use leasehold_engine::bindings::exports::{acquire_lease::AcquireRequest, execute::ExecuteRequest};
use leasehold_engine::bindings::types::{Context, Retention};
use leasehold_engine::call::stream::{Output, input_silent};
use leasehold_engine::hook::{AcquireLease, DeleteTemplate, Execute, Probe, ValidateConfig};
use leasehold_engine::{Bill, CallError, CallOptions, Finished, Provider};

/// A method, and the word that tells a fixture how to behave in it.
#[derive(Clone, Copy, Debug)]
pub enum Act {
    /// `delete-template`, the one method of the fixtures in text form.
    Delete,
    /// `execute` with this program and no input that ever comes.
    Run(&'static str),
    /// `validate-config`.
    Validate(&'static str),
    /// `probe`.
    Probe(&'static str),
    /// `acquire-lease`.
    Acquire(&'static str),
}

/// How it ended: nothing when the guest answered, whatever the answer was.
pub type Ended = (Result<(), CallError>, Bill);

/// Makes a provider act.
pub async fn act(provider: &Provider, act: Act, options: &CallOptions) -> Ended {
    match act {
        Act::Delete => {
            let hook = DeleteTemplate { reference: "template".into(), kind: None };
            ended(provider.call(hook, context("{}"), options).await)
        }
        Act::Run(program) => {
            let hook = command(&[program], &Output::new(&options.limits), &Output::new(&options.limits));
            ended(provider.call(hook, context("{}"), options).await)
        }
        Act::Validate(word) => ended(provider.call(ValidateConfig {}, hostile(word), options).await),
        Act::Probe(word) => ended(provider.call(Probe {}, hostile(word), options).await),
        Act::Acquire(word) => {
            ended(provider.call(AcquireLease { request: acquire("name-1") }, hostile(word), options).await)
        }
    }
}

/// A command whose input stays open and silent.
pub fn command(argv: &[&str], standard_output: &Output, standard_error: &Output) -> Execute {
    Execute {
        request: ExecuteRequest {
            lease: lease(),
            argv: argv.iter().map(ToString::to_string).collect(),
            cwd: None,
            env: vec![],
            timeout_ms: None,
            bypass_session: false,
        },
        input: input_silent(),
        standard_output: standard_output.clone(),
        standard_error: standard_error.clone(),
    }
}

/// A request for an ephemeral lease under this creation name.
pub fn acquire(creation_name: &str) -> AcquireRequest {
    AcquireRequest {
        creation_name: creation_name.into(),
        retention: Retention::Ephemeral,
        requested_cwd: None,
        workspace_mode: None,
        workspace_id: None,
        agent_id: None,
        adapter_type: None,
        workspace_settings: None,
        requested_expires_at_ms: None,
    }
}

fn hostile(word: &str) -> Context {
    context(&format!("{{\"hostile\":\"{word}\"}}"))
}

fn ended<T>(finished: Finished<T>) -> Ended {
    (finished.answer.map(drop), finished.bill)
}
