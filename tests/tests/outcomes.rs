//! Every guest that misbehaves ends in the outcome that names what it did, and disturbs nobody.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use leasehold_contract::authority::Permission;
use leasehold_engine::Limit::{self, *};
use leasehold_engine::hook::DeleteTemplate;
use leasehold_engine::limits::CONCURRENT_CALLS;
use leasehold_engine::{Bill, CallError, CallOptions, Engine, EngineOptions};
use leasehold_tests::act::Act::{self, *};
use leasehold_tests::act::act;
use leasehold_tests::{context, limits, options, provider};
use std::collections::BTreeSet;
use tokio_util::sync::CancellationToken;

/// Long enough for any honest work of these fixtures, short enough to wait for.
const SHORT: (Limit, u64) = (Wall, 250);
const LITTLE_FUEL: (Limit, u64) = (Fuel, 20_000_000);

/// Fixture, what makes it misbehave, limits to set, and the code of the outcome.
type Case = (&'static str, Act, &'static [(Limit, u64)], &'static str);

const CASES: &[Case] = &[
    // Computing for ever.
    ("hostile", Run("loop"), &[SHORT], "wall-ms"),
    ("hostile", Run("loop"), &[LITTLE_FUEL], "fuel"),
    ("hostile", Probe("loop"), &[LITTLE_FUEL], "fuel"),
    ("loop", Delete, &[LITTLE_FUEL], "fuel"),
    ("loop", Delete, &[SHORT], "wall-ms"),
    ("realloc-loop", Delete, &[LITTLE_FUEL], "fuel"),
    ("realloc-loop", Delete, &[SHORT], "wall-ms"),
    ("start-loop", Delete, &[LITTLE_FUEL], "fuel"),
    ("start-loop", Delete, &[SHORT], "wall-ms"),
    // Waiting for ever, inside the host.
    ("hostile", Run("sleep-forever"), &[SHORT], "wall-ms"),
    ("hostile", Acquire("sleep-forever"), &[SHORT], "wall-ms"),
    ("hostile", Run("poll-forever"), &[SHORT], "wall-ms"),
    ("hostile", Run("read-forever"), &[SHORT], "wall-ms"),
    ("hostile", Run("huge-read"), &[SHORT], "wall-ms"),
    ("hostile", Run("huge-skip"), &[SHORT], "wall-ms"),
    ("hostile", Run("splice-forever"), &[SHORT], "wall-ms"),
    // Calling the host for ever.
    ("hostile", Run("host-calls"), &[SHORT], "wall-ms"),
    ("hostile", Run("empty-writes"), &[SHORT], "wall-ms"),
    ("hostile", Run("log-flood"), &[SHORT], "wall-ms"),
    ("hostile", Run("random-flood"), &[SHORT], "wall-ms"),
    ("hostile", Run("poll-list"), &[], "returned-bytes"),
    // Stack.
    ("hostile", Run("recurse"), &[], "stack-overflow"),
    ("recursion", Delete, &[], "stack-overflow"),
    // Memory and tables.
    ("hostile", Run("memory"), &[], "memory-bytes"),
    ("hostile", Acquire("memory"), &[], "memory-bytes"),
    ("memory-bomb", Delete, &[], "memory-bytes"),
    ("memory-many", Delete, &[], "memory-bytes"),
    ("memory-spin", Delete, &[], "memory-bytes"),
    ("start-memory-bomb", Delete, &[], "memory-bytes"),
    ("table-bomb", Delete, &[], "table-elements"),
    ("table-bomb", Delete, &[(Memory, 512 << 10)], "memory-bytes"),
    // Handles.
    ("hostile", Run("handles"), &[], "handles"),
    ("hostile", Run("handles"), &[(Handles, 10)], "handles"),
    // Output.
    ("hostile", Run("flood-out"), &[(Output, 1 << 20)], "output-bytes"),
    ("hostile", Run("flood-err"), &[(Output, 1 << 20)], "output-bytes"),
    ("hostile", Run("flood-both"), &[(Output, 1 << 20)], "output-bytes"),
    ("hostile", Run("huge-zeroes"), &[], "misbehaved"),
    ("hostile", Run("over-permit"), &[(Memory, 256 << 20)], "returned-bytes"),
    // Answers that are too large.
    ("hostile", Run("giant"), &[], "returned-bytes"),
    ("hostile", Run("giant"), &[(Returned, 32 << 20)], "metadata-bytes"),
    ("hostile", Validate("giant"), &[(Returned, 32 << 20)], "config-bytes"),
    ("hostile", Probe("giant"), &[(Returned, 32 << 20)], "message-bytes"),
    ("hostile", Acquire("giant"), &[(Returned, 32 << 20)], "metadata-bytes"),
    ("hostile", Acquire("giant-id"), &[(Returned, 32 << 20)], "id-bytes"),
    ("hostile", Acquire("giant-message"), &[(Returned, 32 << 20)], "message-bytes"),
    ("hostile", Probe("giant-list"), &[(Memory, 256 << 20)], "returned-bytes"),
    ("hostile", Validate("giant-list"), &[(Returned, 64 << 20), (Memory, 256 << 20)], "items"),
    ("giant-return", Delete, &[], "misbehaved"),
    ("giant-list-return", Delete, &[], "misbehaved"),
    ("wide-return", Delete, &[], "returned-bytes"),
    ("hostile", Run("random-huge"), &[], "random-bytes"),
    // Answers that are no values of their type.
    ("hostile", Acquire("empty-id"), &[], "malformed"),
    ("hostile", Acquire("not-json"), &[], "malformed"),
    ("hostile", Validate("not-json"), &[], "malformed"),
    ("bad-utf8", Delete, &[], "misbehaved"),
    ("bad-case", Delete, &[], "misbehaved"),
    ("out-of-bounds-return", Delete, &[], "misbehaved"),
    ("unaligned-return", Delete, &[], "misbehaved"),
    ("bad-realloc", Delete, &[], "misbehaved"),
    // Traps.
    ("hostile", Run("panic"), &[], "unreachable"),
    ("hostile", Run("trap"), &[], "unreachable"),
    ("hostile", Validate("panic"), &[], "unreachable"),
    ("trap-midway", Delete, &[], "unreachable"),
    ("start-trap", Delete, &[], "unreachable"),
    ("divide-by-zero", Delete, &[], "bad-arithmetic"),
    // What only looks hostile.
    ("hostile", Run("memory-slow-return"), &[], "answered"),
    ("memory-at-once", Delete, &[], "answered"),
    ("hostile", Run("log-giant"), &[], "returned-bytes"),
    ("hostile", Run("log-giant"), &[(Returned, 32 << 20)], "answered"),
    ("hostile", Run("log-escapes"), &[], "answered"),
    ("hostile", Run(""), &[], "answered"),
    ("well-behaved", Delete, &[], "answered"),
];

/// What never ends by itself, wherever it spends its time.
const ENDLESS: &[(&str, Act)] = &[
    ("hostile", Run("loop")),
    ("hostile", Run("sleep-forever")),
    ("hostile", Run("poll-forever")),
    ("hostile", Run("host-calls")),
    ("hostile", Run("flood-out")),
    ("hostile", Run("log-flood")),
    ("start-loop", Delete),
    ("realloc-loop", Delete),
    ("loop", Delete),
];

#[tokio::test]
async fn every_hostile_guest_ends_in_its_typed_outcome() {
    let mut wrong = Vec::new();
    for (fixture, what, changes, expected) in CASES {
        let (answer, bill) = act(&provider(fixture), *what, &options(changes)).await;
        let code = answer.as_ref().err().map_or("answered", CallError::code);
        if code != *expected {
            wrong.push(format!("{fixture} {what:?}: expected {expected}, ended as {code}: {answer:?}"));
        }
        let memory = limits(changes).get(Memory);
        assert!(bill.peak_memory_bytes <= memory, "{fixture} {what:?}: {} bytes", bill.peak_memory_bytes);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// On one thread, so that a guest that does not let go of it would be noticed.
#[tokio::test]
async fn another_guest_is_served_while_a_hostile_one_runs_and_cancelling_ends_the_hostile_one() {
    let honest = provider("full");
    for (fixture, what) in ENDLESS {
        let cancel = CancellationToken::new();
        let unhurried = limits(&[(Wall, 600_000), (Fuel, 2_000_000_000_000), (Limit::Output, 1 << 40)]);
        let endless = CallOptions { limits: unhurried, cancel: cancel.clone(), ..CallOptions::default() };
        let hostile = provider(fixture);
        let hostile = tokio::spawn(async move { act(&hostile, *what, &endless).await });
        for _ in 0..20 {
            let (answer, _) = act(&honest, Probe(""), &CallOptions::default()).await;
            assert_eq!(answer, Ok(()), "beside {fixture} {what:?}");
        }
        assert!(!hostile.is_finished(), "{fixture} {what:?} ended by itself");
        cancel.cancel();
        assert_eq!(hostile.await.unwrap().0, Err(CallError::Cancelled), "{fixture} {what:?}");
    }
}

#[tokio::test]
async fn dropping_the_future_of_a_call_ends_the_call_and_frees_its_place() {
    let engine = leasehold_tests::engine();
    let free = engine.free_places();
    for (fixture, what) in ENDLESS {
        let hostile = provider(fixture);
        let task = tokio::spawn(async move { act(&hostile, *what, &CallOptions::default()).await });
        tokio::task::yield_now().await;
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
    }
    // Other tests of this process hold places too, but only for a moment.
    while engine.free_places() < free {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn more_calls_than_there_are_places_wait_and_are_all_answered() {
    let honest = provider("full");
    let calls: Vec<_> = (0..3 * CONCURRENT_CALLS)
        .map(|_| {
            let honest = honest.clone();
            tokio::spawn(async move { act(&honest, Run("true"), &CallOptions::default()).await.0 })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap(), Ok(()));
    }
}

/// On an engine of its own, so that no other test has to wait.
#[tokio::test]
async fn a_call_that_gets_no_place_ends_at_its_own_deadline() {
    let engine = Engine::new(EngineOptions::default()).unwrap();
    let load = |fixture| engine.load(&leasehold_tests::bytes(fixture)).unwrap();
    let granted = BTreeSet::from([Permission::Time, Permission::Random]);
    let (hostile, honest) =
        (load("hostile").link(&granted).unwrap(), load("minimal").link(&granted).unwrap());
    let cancel = CancellationToken::new();
    let endless = CallOptions { cancel: cancel.clone(), ..CallOptions::default() };
    let sleepers: Vec<_> = (0..CONCURRENT_CALLS)
        .map(|_| {
            let (hostile, endless) = (hostile.clone(), endless.clone());
            tokio::spawn(async move { act(&hostile, Run("sleep-forever"), &endless).await.0 })
        })
        .collect();
    while engine.free_places() > 0 {
        tokio::task::yield_now().await;
    }
    let (answer, bill) = act(&honest, Acquire(""), &options(&[(Wall, 50)])).await;
    assert_eq!(answer.unwrap_err().code(), "wall-ms");
    assert_eq!(bill, Bill::default());
    cancel.cancel();
    for sleeper in sleepers {
        assert_eq!(sleeper.await.unwrap(), Err(CallError::Cancelled));
    }
    assert_eq!(engine.free_places(), CONCURRENT_CALLS);
    assert_eq!(act(&honest, Acquire(""), &CallOptions::default()).await.0, Ok(()));
}

/// Pool slots are used again; what a call wrote must be gone, however much it was.
#[tokio::test]
async fn nothing_of_one_call_is_seen_by_the_next() {
    let remembers = provider("remembers");
    for round in 0..3 * CONCURRENT_CALLS {
        let hook = DeleteTemplate { reference: "template".into(), kind: None };
        let finished = remembers.call(hook, context("{}"), &CallOptions::default()).await;
        assert!(!finished.answer.unwrap().unwrap(), "call {round} found what an earlier one left");
    }
}

/// On an engine of its own. Forty such calls have more memories than the pool; none may find it empty.
#[tokio::test]
async fn components_with_many_memories_wait_for_their_turn_and_so_do_others() {
    let engine = Engine::new(EngineOptions::default()).unwrap();
    let load = |fixture| engine.load(&leasehold_tests::bytes(fixture)).unwrap();
    let granted = BTreeSet::from([Permission::Time]);
    let (greedy, honest) =
        (load("many-memories").link(&granted).unwrap(), load("minimal").link(&granted).unwrap());
    let calls: Vec<_> = (0..40)
        .map(|_| {
            let greedy = greedy.clone();
            let brief = options(&[(Fuel, 1_000_000)]);
            tokio::spawn(async move { act(&greedy, Delete, &brief).await.0 })
        })
        .collect();
    for _ in 0..40 {
        assert_eq!(act(&honest, Acquire(""), &CallOptions::default()).await.0, Ok(()));
    }
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap_err().code(), "fuel");
    }
    assert_eq!(engine.free_places(), CONCURRENT_CALLS);
}
