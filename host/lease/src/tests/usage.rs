//! Leases in use: renewed, ended with their lifetime, held by people, and the leases of a run, a workspace and
//! an environment.

use super::fake::{ALL, Act};
use super::home::{Home, NOW, kept, on_both, wanted};
use crate::{Blocker, Lease, LeaseError, LeaseId, Leases, Offers, Releasing, State, StoreError, Wanted};
use std::time::Duration;

on_both!(
    a_lease_in_use_is_renewed_before_it_expires,
    a_renewal_that_fails_is_tried_again_and_the_call_goes_on,
    a_lifetime_ends_whatever_is_done_in_a_lease,
    a_host_whose_lease_was_taken_stops_using_it,
    a_lease_held_by_a_person_outlives_its_process_and_ends_with_its_lifetime,
    a_held_lease_with_work_is_stopped_and_kept_when_its_lifetime_is_over,
    a_release_of_a_run_goes_on_after_a_failure,
    a_workspace_that_is_deleted_takes_its_kept_leases_with_it,
    an_environment_with_leases_that_matter_is_not_deleted,
    what_was_done_in_a_lease_stands_in_its_history_with_what_it_used,
);

const MINUTE: Duration = Duration::from_secs(60);

async fn expiring(home: &Home, leases: &Leases) -> Lease {
    home.fake.back().expires_at_ms = Some(NOW + 180_000);
    leases.acquire(wanted()).await.unwrap().lease
}

/// An answer to a resume that promises this end.
fn until(lease: &Lease, expires_at_ms: u64) -> Act {
    let allocation = lease.allocation.clone().unwrap();
    Act::Answers(crate::ProviderLease { expires_at_ms: Some(expires_at_ms), ..allocation })
}

async fn a_lease_in_use_is_renewed_before_it_expires(home: Home) {
    let leases = home.leases().await;
    let lease = expiring(&home, &leases).await;
    home.fake.script([until(&lease, NOW + 360_000), until(&lease, NOW + 540_000)]);
    let (done, finish) = tokio::sync::oneshot::channel::<()>();
    let moving = async {
        for renewed in [NOW + 360_000, NOW + 540_000] {
            let pause = home.clock.pausing(|it| it >= MINUTE * 2 && it < MINUTE * 10).await;
            home.clock.advance(pause);
            while leases.get(&lease.id).await.unwrap().allocation.unwrap().expires_at_ms != Some(renewed) {
                tokio::task::yield_now().await;
            }
        }
        done.send(()).unwrap();
    };
    let (used, ()) = tokio::join!(leases.in_use(&lease, finish), moving);
    used.unwrap().unwrap();
    assert_eq!(home.fake.calls(), ["acquire", "resume", "resume"]);
    // Nobody renews what cannot be renewed.
    home.fake.back().offers = Some(Offers { resume: false, ..ALL });
    leases.in_use(&lease, async {}).await.unwrap();
    assert_eq!(home.fake.calls().len(), 3);
}

async fn a_renewal_that_fails_is_tried_again_and_the_call_goes_on(home: Home) {
    let leases = home.leases().await;
    let lease = expiring(&home, &leases).await;
    // A failure, another sandbox, a shorter life: none of it is a renewal.
    home.fake.script([
        Act::Fails,
        Act::Answers(super::fake::allocation("other")),
        until(&lease, NOW + 1),
        until(&lease, NOW + 999_000),
    ]);
    let (done, finish) = tokio::sync::oneshot::channel::<()>();
    let moving = async {
        let pause = home.clock.pausing(|it| it == MINUTE * 2).await;
        home.clock.advance(pause);
        for _ in 0..3 {
            let pause = home.clock.pausing(|it| it == Duration::from_secs(1)).await;
            home.clock.advance(pause);
        }
        while leases.get(&lease.id).await.unwrap().allocation.unwrap().expires_at_ms != Some(NOW + 999_000) {
            tokio::task::yield_now().await;
        }
        done.send(()).unwrap();
    };
    let (used, ()) = tokio::join!(leases.in_use(&lease, finish), moving);
    used.unwrap().unwrap();
}

async fn a_lifetime_ends_whatever_is_done_in_a_lease(home: Home) {
    let leases = home.leases().await;
    let lease = leases.acquire(wanted()).await.unwrap().lease;
    let (used, ()) = tokio::join!(leases.in_use(&lease, std::future::pending::<()>()), async {
        let hour = home.clock.pausing(|_| true).await;
        assert_eq!(hour, Duration::from_secs(3600));
        home.clock.advance(hour);
    });
    assert!(matches!(used, Err(LeaseError::LifetimeOver { .. })), "{used:?}");
    // Its owner lives, and any host ends it all the same.
    let other = home.leases().await;
    assert_eq!(other.reconcile().await.unwrap().settled.len(), 1);
    let ended = other.get(&lease.id).await.unwrap();
    assert_eq!((ended.state, ended.reason.as_deref()), (State::Released, Some("lease_lifetime_over")));
}

async fn a_host_whose_lease_was_taken_stops_using_it(home: Home) {
    let leases = home.leases().await;
    let lease = expiring(&home, &leases).await;
    home.fake.script([until(&lease, NOW + 999_000)]);
    let other = home.leases().await;
    let (used, ()) = tokio::join!(leases.in_use(&lease, std::future::pending::<()>()), async {
        let pause = home.clock.pausing(|it| it == MINUTE * 2).await;
        home.fake.back().script.clear();
        other.destroy(&lease.id, "test").await.unwrap();
        home.fake.back().allocations.insert(lease.id.as_str().to_owned(), None);
        home.fake.script([until(&lease, NOW + 999_000)]);
        home.clock.advance(pause);
    });
    assert!(matches!(used, Err(LeaseError::Store(StoreError::Changed { .. }))), "{used:?}");
    let again = leases.in_use(&lease, async {}).await;
    assert!(matches!(again, Err(LeaseError::Store(StoreError::Changed { .. }))), "{again:?}");
}

async fn a_lease_held_by_a_person_outlives_its_process_and_ends_with_its_lifetime(home: Home) {
    let leases = home.leases().await;
    let lease = leases.acquire(Wanted { held: true, ..wanted() }).await.unwrap().lease;
    assert_eq!((lease.owner.clone(), lease.held), (None, true));
    leases.in_use(&lease, async {}).await.unwrap();
    home.clock.advance(Duration::from_secs(3599));
    assert_eq!(leases.reconcile().await.unwrap().settled, []);
    home.clock.advance(Duration::from_secs(1));
    assert_eq!(leases.reconcile().await.unwrap().settled[0].state, State::Released);
    assert_eq!(home.fake.allocations(), 0);
}

async fn a_held_lease_with_work_is_stopped_and_kept_when_its_lifetime_is_over(home: Home) {
    let leases = home.leases().await;
    let lease = leases.acquire(Wanted { held: true, ..wanted() }).await.unwrap().lease;
    leases.set_unexported(&lease.id, true).await.unwrap();
    home.clock.advance(Duration::from_secs(3600));
    assert_eq!(leases.reconcile().await.unwrap().settled[0].state, State::Retained);
    assert_eq!(home.fake.calls(), ["acquire", "stop"]);
}

async fn a_release_of_a_run_goes_on_after_a_failure(home: Home) {
    let leases = home.leases().await;
    let mut all = Vec::new();
    for _ in 0..3 {
        all.push(leases.acquire(wanted()).await.unwrap().lease.id);
        home.clock.advance(Duration::from_millis(1));
    }
    let other = leases.acquire(Wanted { run: Some("other".into()), ..wanted() }).await.unwrap().lease;
    let foreign = leases.acquire(Wanted { tenant: "other".into(), ..wanted() }).await.unwrap().lease;
    home.fake.script([Act::Fails]);
    let released = leases.release_run("tenant", "run", Releasing::default()).await.unwrap();
    let outcome = released.iter().map(|(id, outcome)| (id.clone(), outcome.is_ok())).collect::<Vec<_>>();
    assert_eq!(outcome, [(all[0].clone(), false), (all[1].clone(), true), (all[2].clone(), true)]);
    for lease in [other, foreign] {
        assert_eq!(leases.get(&lease.id).await.unwrap().state, State::Active);
    }
}

async fn a_workspace_that_is_deleted_takes_its_kept_leases_with_it(home: Home) {
    let leases = home.leases().await;
    let in_use = leases.acquire(kept()).await.unwrap().lease;
    let left = leases.acquire(Wanted { run: Some("other".into()), ..kept() }).await.unwrap().lease;
    leases.release(&left.id, Releasing::default()).await.unwrap();
    let ephemeral = leases.acquire(wanted()).await.unwrap().lease;
    let ended = leases.destroy_scope("tenant", &kept().scope.unwrap(), "workspace_deleted").await.unwrap();
    let mut ids = ended.iter().map(|(id, outcome)| (outcome.is_ok(), id.clone())).collect::<Vec<_>>();
    ids.sort();
    let mut expected = vec![(true, in_use.id), (true, left.id)];
    expected.sort();
    assert_eq!(ids, expected);
    assert_eq!(leases.get(&ephemeral.id).await.unwrap().state, State::Active);
    assert_eq!(home.fake.allocations(), 1);
}

async fn an_environment_with_leases_that_matter_is_not_deleted(home: Home) {
    let leases = home.leases().await;
    let blockers = async || leases.blockers("env").await.unwrap();
    leases.acquire(wanted()).await.unwrap();
    assert_eq!(blockers().await, []);
    let reused = leases.acquire(kept()).await.unwrap().lease;
    assert_eq!(blockers().await, [Blocker::Kept(vec![reused.id.clone()])]);
    leases.release(&reused.id, Releasing::default()).await.unwrap();
    assert_eq!(blockers().await[0].code(), "reusable_sandbox_lease");
    home.fake.script([Act::Fails]);
    leases.destroy(&reused.id, "test").await.unwrap_err();
    assert_eq!(blockers().await, [Blocker::PendingCleanup(vec![reused.id.clone()])]);
    assert_eq!(blockers().await[0].code(), "pending_sandbox_cleanup");
    let text = blockers().await[0].to_string();
    assert_eq!(
        text,
        format!("leases {} of it are not proved to have ended; type `leasehold reconcile`", reused.id)
    );
    leases.reconcile().await.unwrap();
    assert_eq!(blockers().await, []);
}

async fn what_was_done_in_a_lease_stands_in_its_history_with_what_it_used(home: Home) {
    let leases = home.leases().await;
    let lease = leases.acquire(wanted()).await.unwrap().lease;
    leases.record(&lease.id, "execute: true", Some("{\"fuel\":7}".into())).await.unwrap();
    let event = leases.history(&lease.id).await.unwrap().pop().unwrap();
    assert_eq!(
        (event.from, event.to, event.reason.as_str()),
        (Some(State::Active), State::Active, "execute: true")
    );
    assert_eq!((event.bill.as_deref(), event.at_ms), (Some("{\"fuel\":7}"), NOW));
    let unknown = LeaseId::random().unwrap();
    assert!(matches!(leases.record(&unknown, "x", None).await, Err(StoreError::Missing { .. })));
}
