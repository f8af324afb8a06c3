//! Acquisitions that succeed, fail, come late, never come or are no longer wanted.

use super::fake::{Act, allocation};
use super::home::{Home, NOW, on_both, wanted};
use crate::{Filter, Finding, LeaseError, Leases, Left, ProviderLease, Standing, State, StoreError, Wishes};
use std::time::Duration;

on_both!(
    an_acquired_lease_is_active_under_the_id_the_provider_gave,
    a_failure_that_made_nothing_is_looked_up_and_leaves_a_failed_lease,
    what_a_failed_call_made_after_all_is_destroyed,
    what_a_failed_call_left_unfinished_is_destroyed_by_the_id_it_was_found_under,
    a_failure_that_cannot_be_looked_up_waits_for_cleanup_and_says_so,
    an_answer_after_the_deadline_is_undone,
    an_answer_that_never_comes_is_no_longer_waited_for_and_looked_up,
    an_acquisition_nobody_waits_for_any_more_is_undone,
    a_lease_that_was_ready_when_its_caller_went_away_is_undone,
    an_allocation_of_another_lease_is_refused_and_never_ended,
    an_answer_that_breaks_the_contract_is_refused_and_undone,
    an_end_is_stored_only_as_the_back_end_promises_it,
);

/// The states of all leases, in the order of their words.
pub(super) async fn states(leases: &Leases) -> Vec<State> {
    let mut states: Vec<_> =
        leases.list(Filter::default()).await.unwrap().iter().map(|lease| lease.state).collect();
    states.sort_by_key(|state| state.word());
    states
}

async fn an_acquired_lease_is_active_under_the_id_the_provider_gave(home: Home) {
    let leases = home.leases().await;
    let lease = leases.acquire(wanted()).await.unwrap().lease;
    assert_eq!(lease.allocation, Some(allocation(lease.id.as_str())));
    assert_eq!(lease.owner.clone().map(|owner| owner.standing()), Some(Standing::Alive));
    assert_eq!((lease.acquired_ms, lease.ends_ms), (Some(NOW), Some(NOW + 3_600_000)));
    assert_eq!(leases.get(&lease.id).await.unwrap(), lease);
    leases.idle().await;
    assert_eq!(home.fake.calls(), ["acquire"]);
}

async fn a_failure_that_made_nothing_is_looked_up_and_leaves_a_failed_lease(home: Home) {
    let leases = home.leases().await;
    home.fake.script([Act::Fails]);
    let failed = leases.acquire(wanted()).await.unwrap_err();
    assert!(matches!(failed, LeaseError::Provider { left: Left::Nothing, .. }), "{failed}");
    assert_eq!(home.fake.calls(), ["acquire", "find"]);
    assert_eq!(states(&leases).await, [State::Failed]);
}

async fn what_a_failed_call_made_after_all_is_destroyed(home: Home) {
    let leases = home.leases().await;
    home.fake.script([Act::DoesAndFails]);
    leases.acquire(wanted()).await.unwrap_err();
    home.fake.script([Act::Panics]);
    leases.acquire(wanted()).await.unwrap_err();
    assert_eq!(home.fake.allocations(), 0);
    assert_eq!(states(&leases).await, [State::Failed, State::Released]);
}

async fn what_a_failed_call_left_unfinished_is_destroyed_by_the_id_it_was_found_under(home: Home) {
    let leases = home.leases().await;
    for unfinished in [Finding::Preparing, Finding::Unusable] {
        home.fake.script([Act::Fails, Act::Finds(unfinished("a-x".into()))]);
        leases.acquire(wanted()).await.unwrap_err();
        assert_eq!(home.fake.take_calls(), ["acquire", "find", "destroy"]);
    }
    assert_eq!(states(&leases).await, [State::Released, State::Released]);
}

async fn a_failure_that_cannot_be_looked_up_waits_for_cleanup_and_says_so(home: Home) {
    let leases = home.leases().await;
    home.fake.script([Act::DoesAndFails, Act::Fails]);
    let failed = leases.acquire(wanted()).await.unwrap_err().to_string();
    let expected =
        "No work had started, and something may be left (as scripted (scripted)); reconcile to end it";
    assert!(failed.contains(expected), "{failed}");
    assert_eq!(states(&leases).await, [State::PendingCleanup]);
    leases.reconcile().await.unwrap();
    assert_eq!((states(&leases).await, home.fake.allocations()), (vec![State::Released], 0));
}

async fn an_answer_after_the_deadline_is_undone(home: Home) {
    let leases = home.leases().await;
    home.fake.script([Act::Late]);
    let acquiring = tokio::spawn({
        let leases = leases.clone();
        async move { leases.acquire(wanted()).await }
    });
    home.fake.waits.notified().await;
    home.clock.advance(Duration::from_secs(30));
    let late = acquiring.await.unwrap().unwrap_err();
    assert!(matches!(late, LeaseError::Deadline { .. }), "{late}");
    assert_eq!(states(&leases).await, [State::Acquiring]);
    // A reconcile meanwhile keeps off what is still under way.
    assert_eq!(leases.reconcile().await.unwrap().settled, []);
    home.fake.go_on.notify_one();
    leases.idle().await;
    assert_eq!((states(&leases).await, home.fake.allocations()), (vec![State::Released], 0));
    assert_eq!(home.fake.calls(), ["acquire", "destroy"]);
}

async fn an_answer_that_never_comes_is_no_longer_waited_for_and_looked_up(home: Home) {
    let leases = home.leases().await;
    for act in [Act::Hangs, Act::DoesAndHangs] {
        home.fake.script([act]);
        let acquiring = tokio::spawn({
            let leases = leases.clone();
            async move { leases.acquire(wanted()).await }
        });
        home.fake.waits.notified().await;
        home.clock.advance(Duration::from_secs(30));
        assert!(matches!(acquiring.await.unwrap(), Err(LeaseError::Deadline { .. })));
        home.clock.pausing(|pause| pause == Duration::from_secs(60)).await;
        home.clock.advance(Duration::from_secs(60));
        leases.idle().await;
    }
    assert_eq!((states(&leases).await, home.fake.allocations()), (vec![State::Failed, State::Released], 0));
}

async fn an_acquisition_nobody_waits_for_any_more_is_undone(home: Home) {
    let leases = home.leases().await;
    home.fake.script([Act::Late]);
    tokio::select! {
        _ = leases.acquire(wanted()) => panic!("it was not told to go on"),
        () = home.fake.waits.notified() => {}
    }
    home.fake.go_on.notify_one();
    leases.idle().await;
    assert_eq!((states(&leases).await, home.fake.allocations()), (vec![State::Released], 0));
}

async fn a_lease_that_was_ready_when_its_caller_went_away_is_undone(home: Home) {
    let leases = home.leases().await;
    let mut future = Box::pin(leases.acquire(wanted()));
    let polled = std::future::poll_fn(|context| std::task::Poll::Ready(future.as_mut().poll(context)));
    assert!(polled.await.is_pending());
    while states(&leases).await != [State::Active] {
        tokio::task::yield_now().await;
    }
    drop(future);
    leases.idle().await;
    assert_eq!((states(&leases).await, home.fake.allocations()), (vec![State::Released], 0));
}

async fn an_allocation_of_another_lease_is_refused_and_never_ended(home: Home) {
    let leases = home.leases().await;
    let first = leases.acquire(wanted()).await.unwrap().lease;
    home.fake.script([Act::Gives(first.allocation.clone().unwrap().id)]);
    let refused = leases.acquire(wanted()).await.unwrap_err();
    assert!(matches!(refused, LeaseError::Store(StoreError::HeldElsewhere { .. })), "{refused}");
    assert_eq!(states(&leases).await, [State::Active, State::Failed]);
    assert_eq!(leases.get(&first.id).await.unwrap().state, State::Active);
    assert_eq!(home.fake.back().deleted, [""; 0]);
}

async fn an_answer_that_breaks_the_contract_is_refused_and_undone(home: Home) {
    let leases = home.leases().await;
    let plain = ProviderLease { id: "x".into(), metadata: None, expires_at_ms: None };
    let ten_mib = Some("m".repeat(10 << 20));
    let cases = [
        (
            ProviderLease { metadata: ten_mib, ..plain.clone() },
            "metadata has 10485760 bytes, and at most 65536",
        ),
        (ProviderLease { id: String::new(), ..plain.clone() }, "the id of the allocation is empty"),
        (ProviderLease { id: "i".repeat(513), ..plain.clone() }, "has 513 bytes, and at most 512"),
        (ProviderLease { expires_at_ms: Some(NOW), ..plain.clone() }, "at a time that has passed"),
        (ProviderLease { expires_at_ms: Some(1), ..plain }, "at a time that has passed"),
    ];
    for (answer, expected) in cases {
        home.fake.script([Act::Answers(answer)]);
        let refused = leases.acquire(wanted()).await.unwrap_err();
        assert!(matches!(refused, LeaseError::Refused { left: Left::Nothing, .. }), "{refused}");
        assert!(refused.to_string().contains(expected), "{refused}");
    }
    assert!(
        states(&leases).await.iter().all(|state| *state == State::Released),
        "{:?}",
        states(&leases).await
    );
}

async fn an_end_is_stored_only_as_the_back_end_promises_it(home: Home) {
    let leases = home.leases().await;
    let until = |end| {
        let wishes = Wishes { requested_expires_at_ms: Some(end), ..Wishes::default() };
        crate::Wanted { wishes, ..wanted() }
    };
    // It promises none: refused, as the caller relies on one.
    let refused = leases.acquire(until(NOW + 1000)).await.unwrap_err();
    assert!(refused.to_string().contains("does not promise one"), "{refused}");
    assert_eq!(home.fake.allocations(), 0);
    // It promises a later one: that is what is stored.
    let later = ProviderLease { id: "a-later".into(), metadata: None, expires_at_ms: Some(NOW + 5000) };
    home.fake.script([Act::Answers(later.clone())]);
    let lease = leases.acquire(until(NOW + 1000)).await.unwrap().lease;
    assert_eq!(lease.allocation, Some(later));
}
