//! Acquisitions that succeed, fail, come late, never come or are no longer wanted.

use super::fake::{Act, Fake, allocation, only};
use super::{leases, store, wanted};
use crate::{Finding, Lease, LeaseError, Leases, Left, Retention, State, StoreError};
use std::sync::Arc;

async fn acquire(leases: &Leases, fake: &Arc<Fake>) -> Result<Lease, LeaseError> {
    leases.acquire(fake.clone(), wanted(Retention::Ephemeral)).await
}

async fn states(leases: &Leases) -> Vec<State> {
    leases.list(crate::Filter::default()).await.unwrap().iter().map(|lease| lease.state).collect()
}

#[tokio::test]
async fn an_acquired_lease_is_active_under_the_id_the_provider_gave() {
    let leases = leases(&store());
    let fake = Fake::new([]);
    let lease = acquire(&leases, &fake).await.unwrap();
    assert_eq!(lease.allocation, Some(allocation(lease.id.as_str())));
    assert_eq!(lease.owner.clone().map(|owner| owner.standing()), Some(crate::Standing::Alive));
    assert!(lease.acquired_ms.is_some());
    assert_eq!(leases.get(&lease.id).await.unwrap(), lease);
    leases.idle().await;
    assert_eq!(fake.calls(), ["acquire"]);
}

#[tokio::test]
async fn a_failure_that_made_nothing_is_looked_up_and_leaves_a_failed_lease() {
    let leases = leases(&store());
    let fake = Fake::new([Act::Fails]);
    let failed = acquire(&leases, &fake).await.unwrap_err();
    assert!(matches!(failed, LeaseError::Provider { left: Left::Nothing, .. }), "{failed}");
    assert_eq!(fake.calls(), ["acquire", "find"]);
    assert_eq!(states(&leases).await, [State::Failed]);
}

#[tokio::test]
async fn what_a_failed_call_made_after_all_is_destroyed() {
    for act in [Act::DoesAndFails, Act::Panics] {
        let leases = leases(&store());
        let made = !matches!(act, Act::Panics);
        let fake = Fake::new([act]);
        acquire(&leases, &fake).await.unwrap_err();
        assert_eq!(fake.allocations(), 0);
        assert_eq!(states(&leases).await, [if made { State::Released } else { State::Failed }]);
    }
}

#[tokio::test]
async fn what_a_failed_call_left_unfinished_is_destroyed_by_the_id_it_was_found_under() {
    for unfinished in [Finding::Preparing, Finding::Unusable] {
        let leases = leases(&store());
        let fake = Fake::new([Act::Fails, Act::Finds(unfinished("a-x".into()))]);
        acquire(&leases, &fake).await.unwrap_err();
        assert_eq!(fake.calls(), ["acquire", "find", "destroy"]);
        assert_eq!(states(&leases).await, [State::Released]);
    }
}

#[tokio::test]
async fn a_failure_that_cannot_be_looked_up_waits_for_cleanup_and_says_so() {
    let leases = leases(&store());
    let fake = Fake::new([Act::DoesAndFails, Act::Fails]);
    let failed = acquire(&leases, &fake).await.unwrap_err().to_string();
    assert!(
        failed.contains("something may be left (as scripted (scripted)); reconcile to end it"),
        "{failed}"
    );
    assert_eq!(states(&leases).await, [State::PendingCleanup]);
    leases.reconcile(only(&fake)).await.unwrap();
    assert_eq!((states(&leases).await, fake.allocations()), (vec![State::Released], 0));
}

#[tokio::test(start_paused = true)]
async fn an_answer_after_the_deadline_is_undone() {
    let leases = leases(&store());
    let fake = Fake::new([Act::Late]);
    let late = acquire(&leases, &fake).await.unwrap_err();
    assert!(matches!(late, LeaseError::Deadline { .. }), "{late}");
    assert_eq!(states(&leases).await, [State::Acquiring]);
    // A reconcile meanwhile keeps off what is still under way.
    assert_eq!(leases.reconcile(only(&fake)).await.unwrap().settled, []);
    fake.go_on.notify_one();
    leases.idle().await;
    assert_eq!((states(&leases).await, fake.allocations()), (vec![State::Released], 0));
    assert_eq!(fake.calls(), ["acquire", "destroy"]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_never_comes_is_no_longer_waited_for_and_looked_up() {
    for (act, end) in [(Act::Hangs, State::Failed), (Act::DoesAndHangs, State::Released)] {
        let leases = leases(&store());
        let fake = Fake::new([act]);
        assert!(matches!(acquire(&leases, &fake).await, Err(LeaseError::Deadline { .. })));
        leases.idle().await;
        assert_eq!((states(&leases).await, fake.allocations()), (vec![end], 0));
    }
}

#[tokio::test]
async fn an_acquisition_nobody_waits_for_any_more_is_undone() {
    let leases = leases(&store());
    let fake = Fake::new([Act::Late]);
    tokio::select! {
        _ = acquire(&leases, &fake) => panic!("it was not told to go on"),
        () = fake.waits.notified() => {}
    }
    fake.go_on.notify_one();
    leases.idle().await;
    assert_eq!((states(&leases).await, fake.allocations()), (vec![State::Released], 0));
}

#[tokio::test]
async fn a_future_dropped_at_any_await_leaves_nothing_active() {
    // Polled a number of times and dropped; between polls the background goes on as far as it can.
    for polls in 0..6 {
        let leases = leases(&store());
        let fake = Fake::new([]);
        let mut future = Box::pin(acquire(&leases, &fake));
        let mut done = None;
        for _ in 0..polls {
            let polled =
                std::future::poll_fn(|context| std::task::Poll::Ready(future.as_mut().poll(context)));
            if let std::task::Poll::Ready(acquired) = polled.await {
                done = Some(acquired.unwrap());
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(future);
        leases.idle().await;
        let active = states(&leases).await.into_iter().filter(|state| *state == State::Active).count();
        assert_eq!((active, fake.allocations()), if done.is_some() { (1, 1) } else { (0, 0) });
    }
}

#[tokio::test]
async fn a_lease_that_was_ready_when_its_caller_went_away_is_undone() {
    let leases = leases(&store());
    let fake = Fake::new([]);
    let mut future = Box::pin(acquire(&leases, &fake));
    let polled = std::future::poll_fn(|context| std::task::Poll::Ready(future.as_mut().poll(context)));
    assert!(polled.await.is_pending());
    while states(&leases).await != [State::Active] {
        tokio::task::yield_now().await;
    }
    drop(future);
    leases.idle().await;
    assert_eq!((states(&leases).await, fake.allocations()), (vec![State::Released], 0));
}

#[tokio::test]
async fn an_allocation_of_another_lease_is_refused_and_never_ended() {
    let leases = leases(&store());
    let fake = Fake::new([]);
    let first = acquire(&leases, &fake).await.unwrap();
    let id = first.allocation.clone().unwrap().id;
    fake.back().script.push_back(Act::Gives(id));
    let refused = acquire(&leases, &fake).await.unwrap_err();
    assert!(matches!(refused, LeaseError::Store(StoreError::HeldElsewhere { .. })), "{refused}");
    assert_eq!(states(&leases).await.len(), 2);
    assert_eq!(leases.get(&first.id).await.unwrap().state, State::Active);
    assert_eq!(fake.back().deleted, [""; 0]);
}
