//! What a well-behaved provider's calls answer, carry and cost.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use bytes::Bytes;
use leasehold_contract::Method;
use leasehold_engine::bindings::exports::execute::Exit;
use leasehold_engine::bindings::exports::{
    capture_template, destroy_lease, interactive_setup, login_pty, realize_workspace, release_lease,
    resume_lease,
};
use leasehold_engine::bindings::types::{Disposition, Error, Retention};
use leasehold_engine::call::stream::{Output, input_bytes};
use leasehold_engine::hook::*;
use leasehold_engine::{CallError, CallOptions, Limit};
use leasehold_tests::act::{acquire, command};
use leasehold_tests::{context, lease, limits, options, provider};
use tokio::sync::mpsc;

#[tokio::test]
async fn every_method_of_the_full_provider_answers() {
    let (full, options) = (provider("full"), CallOptions::default());
    let handle = || interactive_setup::SetupHandle { lease_id: "lease-1".into(), metadata: None };
    let size = login_pty::TerminalSize { columns: 80, rows: 24 };
    let output = Output::new(&options.limits);
    macro_rules! answers {
        ($($hook:expr),* $(,)?) => {
            $(full.call($hook, context("{}"), &options).await.answer.unwrap().unwrap();)*
        };
    }
    answers! {
        ValidateConfig {},
        Probe {},
        AcquireLease { request: acquire("name-1") },
        ResumeLease { request: resume_lease::ResumeRequest { lease: lease(), requested_cwd: None } },
        ReleaseLease {
            request: release_lease::ReleaseRequest {
                lease: lease(), retention: Retention::Ephemeral, cancel_active_work: false,
            },
        },
        DestroyLease { target: destroy_lease::DestroyTarget::Lease(lease()) },
        StopLease { lease: lease() },
        FindLease { creation_name: "name-1".into() },
        RealizeWorkspace {
            request: realize_workspace::WorkspaceRequest { lease: lease(), path: None, mode: None, metadata: None },
        },
        command(&["echo"], &output, &output),
        SyncIn { lease: lease(), operations: vec![] },
        SyncOut { lease: lease(), operations: vec![] },
        StartInteractiveSetup {
            request: interactive_setup::SetupRequest {
                session_id: "session".into(),
                source_template: None,
                source_template_kind: None,
                expires_at_ms: None,
                connection_ttl_ms: None,
            },
        },
        GetInteractiveSetup { handle: handle(), include_payload: true },
        CancelInteractiveSetup { handle: handle(), reason: None },
        CaptureTemplate {
            request: capture_template::CaptureRequest {
                handle: handle(), source_template: None, previous_template: None, label: None, timeout_ms: None,
            },
        },
        DeleteTemplate { reference: "template".into(), kind: None },
        LoginPtyOpen {
            request: login_pty::OpenRequest {
                lease: lease(), route_id: "route".into(), argv: vec!["login".into()], size,
            },
            output: output.clone(),
        },
        LoginPtyInput { route_id: "route".into(), bytes: b"x".to_vec() },
        LoginPtyResize { route_id: "route".into(), size },
        LoginPtyClose { route_id: "route".into() },
    }
}

#[tokio::test]
async fn a_lease_carries_the_creation_name_and_a_release_brings_a_receipt() {
    let (minimal, options) = (provider("minimal"), CallOptions::default());
    let acquired = minimal.call(AcquireLease { request: acquire("name-7") }, context("{}"), &options).await;
    let lease = acquired.answer.unwrap().unwrap();
    assert!(lease.id.contains("name-7"), "{lease:?}");
    let request = release_lease::ReleaseRequest {
        lease: lease.clone(),
        retention: Retention::Ephemeral,
        cancel_active_work: false,
    };
    let released = minimal.call(ReleaseLease { request }, context("{}"), &options).await;
    let receipt = released.answer.unwrap().unwrap();
    assert_eq!((receipt.lease_id, receipt.state), (lease.id, Disposition::Destroyed));
}

#[tokio::test]
async fn an_error_of_the_provider_is_an_answer_and_keeps_its_type() {
    let full = provider("full");
    for (word, matches) in [
        ("gone", (|error: &Error| matches!(error, Error::Gone)) as fn(&Error) -> bool),
        ("denied", |error| matches!(error, Error::Denied(_))),
        ("transient", |error| matches!(error, Error::Transient(_))),
        ("invalid", |error| matches!(error, Error::InvalidConfig(_))),
    ] {
        let config = context(&format!("{{\"fail\":\"{word}\"}}"));
        let finished = full.call(Probe {}, config, &CallOptions::default()).await;
        let error = finished.answer.unwrap().unwrap_err();
        assert!(matches(&error), "{word}: {error:?}");
    }
}

#[tokio::test]
async fn standard_output_and_standard_error_stay_apart_and_the_bill_counts_them() {
    let (full, options) = (provider("full"), CallOptions::default());
    let (output, error) = (Output::new(&options.limits), Output::new(&options.limits));
    let finished = full.call(command(&["both"], &output, &error), context("{}"), &options).await;
    assert!(matches!(finished.answer.unwrap().unwrap().exit, Exit::Exited(0)));
    assert!(!output.text().is_empty() && !error.text().is_empty());
    assert_ne!(output.text(), error.text());
    assert_eq!(finished.bill.bytes_out, output.total() + error.total());
    assert!(finished.bill.fuel > 0 && finished.bill.host_calls > 0 && finished.bill.peak_memory_bytes > 0);
}

#[tokio::test]
async fn what_a_command_writes_arrives_while_it_runs_and_input_reaches_it() {
    let (full, options) = (provider("full"), CallOptions::default());
    let (sender, mut receiver) = mpsc::channel(2);
    let (output, error) = (Output::new(&options.limits).with_live(sender), Output::new(&options.limits));
    let text: String = (0..100_000).map(|line| format!("{line}\n")).collect();
    let hook = Execute { input: input_bytes(text.clone()), ..command(&["cat"], &output, &error) };
    // The sending half lives in `output` as well, so it has to go before the channel can end.
    drop(output);
    let reading = tokio::spawn(async move {
        let mut all = Vec::new();
        while let Some(piece) = receiver.recv().await {
            let piece: Bytes = piece;
            all.extend_from_slice(&piece);
        }
        all
    });
    let finished = full.call(hook, context("{}"), &options).await;
    assert!(matches!(finished.answer.unwrap().unwrap().exit, Exit::Exited(0)));
    assert_eq!(reading.await.unwrap(), text.as_bytes());
    assert_eq!((finished.bill.bytes_in, finished.bill.bytes_out), (text.len() as u64, text.len() as u64));
    // Spliced: what passes through does not pass through the guest.
    assert!(finished.bill.peak_memory_bytes < 4 << 20, "{}", finished.bill.peak_memory_bytes);
}

#[tokio::test]
async fn a_method_that_is_not_verified_is_refused_with_its_verdict() {
    let options = CallOptions::default();
    let finished = provider("minimal").call(Probe {}, context("{}"), &options).await;
    assert!(matches!(finished.answer, Err(CallError::NotVerified { method: Method::Probe, .. })));
    let wrong = provider("execute-env-strings");
    let output = Output::new(&options.limits);
    let finished = wrong.call(command(&["true"], &output, &output), context("{}"), &options).await;
    assert_eq!(
        finished.answer.unwrap_err().to_string(),
        "environmentExecute cannot be called: wrong shape at execute.params.request.env: expected \
         list<tuple<string, string>>, found list<string>; `leasehold inspect` shows what the component exports"
    );
}

#[tokio::test]
async fn a_component_built_for_a_later_compatible_version_is_called() {
    let options = CallOptions::default();
    let output = Output::new(&options.limits);
    let later = provider("execute-version-0-1-7");
    let finished = later.call(command(&["true"], &output, &output), context("{}"), &options).await;
    // The fixture has no code: that it traps shows that it was found and entered.
    assert_eq!(finished.answer.unwrap_err().code(), "unreachable");
}

#[tokio::test]
async fn a_configuration_above_its_limit_never_reaches_the_guest() {
    let small = options(&[(Limit::Config, 10)]);
    let finished = provider("full").call(ValidateConfig {}, context("{\"a\":\"123456\"}"), &small).await;
    assert_eq!(
        finished.answer.unwrap_err().to_string(),
        "limit `config-bytes` hit in `context.config`: 14 of at most 10 bytes"
    );
}

#[tokio::test]
async fn the_guest_is_told_how_much_time_is_left() {
    let options = CallOptions { limits: limits(&[(Limit::Wall, 7_000)]), ..CallOptions::default() };
    let output = Output::new(&options.limits);
    let finished =
        provider("full").call(command(&["context"], &output, &output), context("{}"), &options).await;
    finished.answer.unwrap().unwrap();
    let text = output.text();
    let left = text.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse::<u64>().ok()).max();
    assert!(left.is_some_and(|left| left > 0 && left <= 7_000), "{text}");
}
