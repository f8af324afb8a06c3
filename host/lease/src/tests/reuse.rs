//! Kept leases: who may use one again, and what becomes of one that cannot be taken up.

use super::acquire::states;
use super::fake::{ALL, Act, allocation};
use super::home::{Home, NOW, kept, on_both, wanted};
use crate::{
    Disposition, Fault, Goal, How, Lease, LeaseError, Leases, Offers, OnLost, Policy, Releasing, Replaced,
    Scope, State, StoreError, TransientCategory, Wanted,
};
use std::time::Duration;

on_both!(
    a_kept_lease_is_taken_up_by_the_next_run_of_the_same_workspace_and_agent,
    what_was_decided_is_sent_and_nothing_is_kept_without_declaration_run_or_scope,
    a_lease_of_another_scope_is_not_used_again,
    a_lease_made_from_something_else_is_destroyed_and_replaced,
    a_lease_in_use_by_another_run_is_left_alone,
    a_lease_of_this_very_run_is_taken_up_again,
    what_is_gone_is_destroyed_and_replaced,
    transient_faults_are_tried_again_within_one_deadline,
    what_cannot_be_resumed_is_replaced_unless_it_holds_work,
    a_provider_that_lost_the_method_is_not_asked_to_resume,
    an_answer_about_another_sandbox_resumes_nothing,
    a_lease_the_back_end_has_ended_is_destroyed_and_replaced,
    a_lifetime_is_counted_over_all_runs,
    of_two_runs_at_once_one_takes_the_lease,
    a_resume_nobody_waits_for_any_more_leaves_the_lease_kept,
    a_kept_lease_that_has_expired_is_ended_by_a_reconcile,
);

const DONE: Releasing = Releasing { failed: false, cancel_active_work: true };

/// A lease that one run has used and left.
async fn left(leases: &Leases) -> Lease {
    let lease = leases.acquire(kept()).await.unwrap().lease;
    leases.release(&lease.id, DONE).await.unwrap().lease
}

fn transient() -> Fault {
    let (category, message) = (TransientCategory::RateLimited, "slower".to_owned());
    Fault::Transient { category, retry_after: None, message }
}

async fn a_kept_lease_is_taken_up_by_the_next_run_of_the_same_workspace_and_agent(home: Home) {
    let leases = home.leases().await;
    let first = left(&leases).await;
    assert_eq!((first.state, first.released_ms), (State::Retained, None));
    let again = Wanted { run: Some("next".into()), ..kept() };
    let acquired = leases.acquire(again).await.unwrap();
    assert_eq!((&acquired.lease.id, acquired.how), (&first.id, How::Resumed));
    assert_eq!((acquired.lease.state, acquired.lease.run.as_deref()), (State::Active, Some("next")));
    assert_eq!(home.fake.calls(), ["acquire", "release", "resume"]);
}

async fn what_was_decided_is_sent_and_nothing_is_kept_without_declaration_run_or_scope(home: Home) {
    let leases = home.leases().await;
    let config = "{\"reuseLease\":true,\"provider\":\"p\",\"image\":\"i\"}".to_owned();
    let asks = Wanted { config, ..kept() };
    let cases = [
        (asks.clone(), Policy::Reuse),
        (Wanted { reusable: false, ..asks.clone() }, Policy::Ephemeral),
        (Wanted { run: None, ..asks.clone() }, Policy::Ephemeral),
        (Wanted { scope: None, ..asks }, Policy::Ephemeral),
    ];
    for (wanted, policy) in cases {
        let lease = leases.acquire(wanted).await.unwrap().lease;
        let (context, request) = home.fake.back().asked.take().unwrap();
        assert_eq!((lease.policy, request.retention), (policy, policy.retention()));
        let reuse = policy == Policy::Reuse;
        assert_eq!(context.config, format!("{{\"reuseLease\":{reuse},\"image\":\"i\"}}"));
        assert_eq!(lease.config, context.config);
        let ended = leases.release(&lease.id, DONE).await.unwrap().lease;
        assert_eq!(ended.state, if reuse { State::Retained } else { State::Released });
    }
}

async fn a_lease_of_another_scope_is_not_used_again(home: Home) {
    let leases = home.leases().await;
    let first = left(&leases).await;
    let scope = |workspace: &str, agent: &str| {
        Some(Scope { workspace: workspace.into(), agent: agent.into(), adapter: None })
    };
    let others = [
        Wanted { scope: scope("ws", "another"), ..kept() },
        Wanted { scope: scope("another", "agent"), ..kept() },
        Wanted { tenant: "another".into(), ..kept() },
        Wanted { environment: "another".into(), ..kept() },
        wanted(),
    ];
    for other in others {
        let acquired = leases.acquire(other).await.unwrap();
        assert_eq!(acquired.how, How::Created);
    }
    assert_eq!(leases.get(&first.id).await.unwrap(), first);
}

async fn a_lease_made_from_something_else_is_destroyed_and_replaced(home: Home) {
    let leases = home.leases().await;
    let mut pins = wanted().pins;
    pins.digest = "d2".into();
    let adapter = Some("other".to_owned());
    let scope = kept().scope.map(|scope| Scope { adapter, ..scope });
    let others = [
        Wanted { config: "{\"image\":\"j\"}".into(), ..kept() },
        Wanted { secrets: vec![("key".into(), "2".into())], ..kept() },
        Wanted { pins, ..kept() },
        Wanted { scope, ..kept() },
    ];
    for other in others {
        let first = left(&leases).await;
        let acquired = leases.acquire(other).await.unwrap();
        assert_eq!(acquired.how, How::Replacement(Replaced::FingerprintMismatch));
        leases.idle().await;
        let ended = leases.get(&first.id).await.unwrap();
        assert_eq!(
            (ended.state, ended.reason.as_deref()),
            (State::Released, Some("lease_fingerprint_mismatch"))
        );
        leases.destroy(&acquired.lease.id, "test").await.unwrap();
    }
    assert_eq!(home.fake.allocations(), 0);
}

async fn a_lease_in_use_by_another_run_is_left_alone(home: Home) {
    let leases = home.leases().await;
    let first = leases.acquire(kept()).await.unwrap().lease;
    let other = leases.acquire(Wanted { run: Some("other".into()), ..kept() }).await.unwrap();
    assert_eq!(other.how, How::Created);
    assert_eq!(leases.get(&first.id).await.unwrap(), first);
}

async fn a_lease_of_this_very_run_is_taken_up_again(home: Home) {
    let (dead, leases) = (home.dead().await, home.leases().await);
    // The host of the run ended, and the run goes on in another.
    let first = dead.acquire(kept()).await.unwrap().lease;
    let again = leases.acquire(kept()).await.unwrap();
    assert_eq!((&again.lease.id, again.how), (&first.id, How::Resumed));
    assert_eq!(again.lease.owner, leases.acquire(kept()).await.unwrap().lease.owner);
}

async fn what_is_gone_is_destroyed_and_replaced(home: Home) {
    let leases = home.leases().await;
    let first = left(&leases).await;
    home.fake.back().allocations.clear();
    home.fake.take_calls();
    let acquired = leases.acquire(kept()).await.unwrap();
    assert_eq!(acquired.how, How::Replacement(Replaced::NotFound));
    assert_eq!(home.fake.calls(), ["resume", "destroy", "acquire"]);
    let ended = leases.get(&first.id).await.unwrap();
    assert_eq!((ended.state, ended.disposition), (State::Released, Some(Disposition::AlreadyGone)));
    let history = leases.history(&acquired.lease.id).await.unwrap();
    assert_eq!(history[0].reason, "asked for, in place of a kept one: not_found");
}

async fn transient_faults_are_tried_again_within_one_deadline(home: Home) {
    let leases = home.leases().await;
    let first = left(&leases).await;
    home.fake.script([Act::Faults(transient()), Act::Faults(transient())]);
    let moving = async {
        for expected in [250, 500] {
            let pause = home.clock.pausing(|pause| pause < Duration::from_secs(2)).await;
            let least = Duration::from_millis(expected * 3 / 4);
            assert!(least <= pause && pause <= least * 5 / 3, "{pause:?} for {expected}");
            home.clock.advance(pause);
        }
    };
    let (acquired, ()) = tokio::join!(leases.acquire(kept()), moving);
    assert_eq!(acquired.unwrap().lease.id, first.id);

    // For as long as the deadline lets it, and no longer.
    leases.release(&first.id, DONE).await.unwrap();
    home.fake.back().resumes = Some(transient());
    home.fake.take_calls();
    let mut passed = Duration::ZERO;
    let moving = async {
        loop {
            let pause = home.clock.pausing(|pause| pause <= Duration::from_millis(6250)).await;
            passed += pause;
            home.clock.advance(pause);
        }
    };
    let acquired = tokio::select! {
        acquired = leases.acquire(kept()) => acquired.unwrap(),
        () = moving => unreachable!(),
    };
    let tries = home.fake.calls().iter().filter(|call| *call == "resume").count();
    assert!((10..25).contains(&tries) && passed < Duration::from_secs(60), "{tries} in {passed:?}");
    assert_eq!(acquired.how, How::Replacement(Replaced::ResumeFailed));
}

async fn what_cannot_be_resumed_is_replaced_unless_it_holds_work(home: Home) {
    let leases = home.leases().await;
    let first = left(&leases).await;
    home.fake.script([Act::Fails]);
    let acquired = leases.acquire(kept()).await.unwrap();
    assert_eq!(acquired.how, How::Replacement(Replaced::ResumeFailed));
    assert_eq!(leases.get(&first.id).await.unwrap().state, State::Released);

    // It holds work: the run fails, the work stays.
    leases.set_unexported(&acquired.lease.id, true).await.unwrap();
    leases.release(&acquired.lease.id, DONE).await.unwrap();
    home.fake.script([Act::Fails]);
    let failed = leases.acquire(kept()).await.unwrap_err();
    assert!(matches!(failed, LeaseError::Preserved { .. }), "{failed}");
    assert!(failed.to_string().contains("leasehold lease export"), "{failed}");
    let stopped = leases.get(&acquired.lease.id).await.unwrap();
    assert_eq!((stopped.state, stopped.disposition), (State::Retained, Some(Disposition::Stopped)));
    assert_eq!(home.fake.allocations(), 1);

    // Or the caller always wants it preserved.
    leases.destroy(&acquired.lease.id, "test").await.unwrap();
    let second = left(&leases).await;
    home.fake.script([Act::Fails]);
    let failed = leases.acquire(Wanted { on_lost: OnLost::Preserve, ..kept() }).await.unwrap_err();
    assert!(matches!(failed, LeaseError::Preserved { .. }), "{failed}");
    assert_eq!(leases.get(&second.id).await.unwrap().state, State::Retained);
}

async fn a_provider_that_lost_the_method_is_not_asked_to_resume(home: Home) {
    let leases = home.leases().await;
    let first = left(&leases).await;
    home.fake.back().offers = Some(Offers { resume: false, ..ALL });
    home.fake.take_calls();
    let acquired = leases.acquire(kept()).await.unwrap();
    assert_eq!(acquired.how, How::Replacement(Replaced::CapabilityLost));
    assert_eq!(home.fake.calls(), ["destroy", "acquire"]);
    let ended = leases.get(&first.id).await.unwrap();
    assert_eq!(ended.reason.as_deref(), Some("resume_capability_lost"));
}

async fn an_answer_about_another_sandbox_resumes_nothing(home: Home) {
    let leases = home.leases().await;
    let first = left(&leases).await;
    home.fake.script([Act::Answers(allocation("another"))]);
    let acquired = leases.acquire(kept()).await.unwrap();
    assert_eq!(acquired.how, How::Replacement(Replaced::ResumeFailed));
    assert_eq!(leases.get(&first.id).await.unwrap().allocation, first.allocation);
}

/// A kept lease that the back end will end at this time.
async fn left_until(home: &Home, leases: &Leases, end: u64) -> Lease {
    home.fake.back().expires_at_ms = Some(end);
    let lease = left(leases).await;
    home.fake.back().expires_at_ms = None;
    lease
}

async fn a_lease_the_back_end_has_ended_is_destroyed_and_replaced(home: Home) {
    let leases = home.leases().await;
    let first = left_until(&home, &leases, NOW + 1000).await;
    home.clock.advance(Duration::from_secs(1));
    let acquired = leases.acquire(kept()).await.unwrap();
    assert_eq!(acquired.how, How::Replacement(Replaced::Expired));
    leases.idle().await;
    let ended = leases.get(&first.id).await.unwrap();
    assert_eq!((ended.state, ended.reason.as_deref()), (State::Released, Some("lease_expired")));
    // One that ends while it is used is destroyed by its release.
    home.fake.back().expires_at_ms = Some(NOW + 3000);
    let used = leases.acquire(Wanted { run: Some("other".into()), ..kept() }).await.unwrap().lease;
    home.clock.advance(Duration::from_secs(5));
    home.fake.take_calls();
    let ended = leases.release(&used.id, DONE).await.unwrap().lease;
    assert_eq!((ended.state, ended.reason.as_deref()), (State::Released, Some("lease_expired")));
    assert_eq!(home.fake.calls(), ["destroy"]);
}

async fn a_lifetime_is_counted_over_all_runs(home: Home) {
    let leases = home.leases().await;
    let hour = Duration::from_secs(3600);
    let first = leases.acquire(kept()).await.unwrap().lease;
    home.clock.advance(hour / 2);
    leases.release(&first.id, DONE).await.unwrap();
    // Lying about costs nothing.
    home.clock.advance(hour * 10);
    let again = leases.acquire(kept()).await.unwrap().lease;
    assert_eq!((&again.id, again.used_ms), (&first.id, 1_800_000));
    assert_eq!(again.ends_ms, again.acquired_ms.map(|at| at + 1_800_000));
    home.clock.advance(hour / 2);
    leases.release(&again.id, DONE).await.unwrap();
    let acquired = leases.acquire(kept()).await.unwrap();
    assert_eq!(acquired.how, How::Replacement(Replaced::Expired));
}

async fn of_two_runs_at_once_one_takes_the_lease(home: Home) {
    let (one, two) = (home.leases().await, home.leases().await);
    for _ in 0..5 {
        let first = left(&one).await;
        let run = |run: &str| Wanted { run: Some(run.into()), ..kept() };
        let (a, b) = tokio::join!(one.acquire(run("a")), two.acquire(run("b")));
        let (a, b) = (a.unwrap(), b.unwrap());
        let resumed = [&a, &b].iter().filter(|it| it.how == How::Resumed && it.lease.id == first.id).count();
        assert_eq!(resumed, 1, "{a:?} {b:?}");
        for lease in [a.lease, b.lease] {
            one.destroy(&lease.id, "test").await.unwrap();
        }
    }
}

async fn a_resume_nobody_waits_for_any_more_leaves_the_lease_kept(home: Home) {
    let leases = home.leases().await;
    let first = left(&leases).await;
    home.fake.script([Act::Hangs]);
    tokio::select! {
        _ = leases.acquire(kept()) => panic!("it hangs"),
        () = home.fake.waits.notified() => {}
    }
    leases.idle().await;
    assert_eq!((states(&leases).await, home.fake.allocations()), (vec![State::Retained], 1));
    assert_eq!(leases.acquire(kept()).await.unwrap().lease.id, first.id);
}

async fn a_kept_lease_that_has_expired_is_ended_by_a_reconcile(home: Home) {
    let leases = home.leases().await;
    let first = left_until(&home, &leases, NOW + 1000).await;
    assert_eq!(leases.reconcile().await.unwrap().settled, []);
    home.clock.advance(Duration::from_secs(1));
    assert_eq!(leases.reconcile().await.unwrap().settled.len(), 1);
    let ended = leases.get(&first.id).await.unwrap();
    assert_eq!(
        (ended.state, ended.goal, ended.reason.as_deref()),
        (State::Released, Some(Goal::Delete), Some("lease_expired"))
    );
    assert!(matches!(
        leases.destroy(&first.id, "test").await,
        Err(LeaseError::Store(StoreError::Illegal { .. }))
    ));
}
