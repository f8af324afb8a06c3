//! Stopping with files kept: intent, receipt, closed reasons, and never a deletion instead.

use super::fake::{ALL, Act};
use super::home::{Home, NOW, on_both, wanted};
use crate::store::MAX_ATTEMPTS;
use crate::{
    Disposition, Goal, Lease, LeaseError, Leases, Offers, Policy, Releasing, State, StopReason, Wanted,
};
use std::time::Duration;

on_both!(
    a_stop_is_written_before_it_is_asked_for_and_settled_by_its_receipt_alone,
    a_provider_that_cannot_stop_is_waited_for_and_asked_for_nothing_else,
    a_terminal_reason_escalates_at_once_and_is_tried_at_the_slowest_interval,
    a_stop_that_is_never_proved_is_stuck_and_nothing_is_deleted,
    work_of_a_host_that_is_gone_is_stopped_where_it_must_be_preserved,
    a_stopped_lease_is_taken_up_to_bring_its_work_back_and_stopped_again,
    a_failed_run_is_kept_where_the_policy_says_so,
    only_a_person_turns_a_stop_into_a_deletion,
);

const DONE: Releasing = Releasing { failed: false, cancel_active_work: true };

/// A lease with work that must be preserved.
async fn worked_in(leases: &Leases) -> Lease {
    let lease = leases.acquire(Wanted { preserve: true, ..wanted() }).await.unwrap().lease;
    leases.set_unexported(&lease.id, true).await.unwrap()
}

async fn a_stop_is_written_before_it_is_asked_for_and_settled_by_its_receipt_alone(home: Home) {
    let leases = home.leases().await;
    let lease = worked_in(&leases).await;
    let acts = [
        Act::Says(Disposition::Destroyed),
        Act::Says(Disposition::Retained),
        Act::Says(Disposition::AlreadyGone),
        Act::About("a-another".into()),
        Act::Fails,
        Act::Panics,
    ];
    for act in acts {
        home.fake.script([act]);
        let refused = leases.stop(&lease.id, "export_failed").await.unwrap_err();
        assert!(matches!(refused, LeaseError::NotStopped { .. }), "{refused}");
        assert_eq!(refused.code(), "sandbox_stop_pending");
        let pending = leases.get(&lease.id).await.unwrap();
        assert_eq!(
            (pending.state, pending.goal, pending.reason.as_deref()),
            (State::PendingCleanup, Some(Goal::Stop), Some("export_failed"))
        );
        let intents = leases.store().stop_intents(&lease.id).await.unwrap();
        assert_eq!((intents.len(), intents[0].settled_ms), (1, None));
        assert!(intents[0].fits(&pending) && intents[0].requested_ms == NOW);
    }
    let stopped = leases.stop(&lease.id, "export_failed").await.unwrap();
    assert_eq!((stopped.lease.state, stopped.disposition), (State::Retained, Disposition::Stopped));
    let intents = leases.store().stop_intents(&lease.id).await.unwrap();
    assert_eq!((intents.len(), intents[0].outcome.as_deref()), (1, Some("stopped")));
    assert_eq!((home.fake.allocations(), home.fake.back().deleted.len()), (1, 0));
    assert!(home.fake.calls().iter().skip(1).all(|call| call == "stop"), "{:?}", home.fake.calls());
}

async fn a_provider_that_cannot_stop_is_waited_for_and_asked_for_nothing_else(home: Home) {
    let leases = home.leases().await;
    let lease = worked_in(&leases).await;
    home.fake.back().offers = Some(Offers { stop: false, ..ALL });
    home.fake.take_calls();
    leases.stop(&lease.id, "test").await.unwrap_err();
    for _ in 0..2 * MAX_ATTEMPTS {
        home.clock.advance(Duration::from_secs(3600));
        assert_eq!(leases.sweep().await.unwrap().unsettled[0].attempts, 0);
    }
    assert_eq!(home.fake.calls(), [""; 0]);
    home.fake.back().offers = None;
    home.clock.advance(Duration::from_secs(3600));
    assert_eq!(leases.sweep().await.unwrap().settled[0].state, State::Retained);
}

async fn a_terminal_reason_escalates_at_once_and_is_tried_at_the_slowest_interval(home: Home) {
    let leases = home.leases().await;
    for reason in [StopReason::ResourceUnrecoverable, StopReason::RecoveryFailed] {
        let lease = worked_in(&leases).await;
        home.fake.script([Act::NotStopped(reason)]);
        let refused = leases.stop(&lease.id, "test").await.unwrap_err().to_string();
        assert!(refused.contains(reason.word()), "{refused}");
        let pending = leases.get(&lease.id).await.unwrap();
        assert!(pending.escalated);
        assert_eq!(pending.due_ms, leases.store().now_ms() + 3_600_000);
        assert_eq!(leases.reconcile().await.unwrap().stuck, std::slice::from_ref(&pending));
        // Not before, whoever asks; and then for as long as it takes.
        home.clock.advance(Duration::from_secs(3599));
        home.fake.take_calls();
        assert_eq!((leases.sweep().await.unwrap().unsettled, home.fake.calls().len()), (vec![], 0));
        for _ in 0..=MAX_ATTEMPTS {
            home.clock.advance(Duration::from_secs(3600));
            home.fake.script([Act::NotStopped(reason)]);
            assert_eq!(leases.sweep().await.unwrap().unsettled.len(), 1);
        }
        home.clock.advance(Duration::from_secs(3600));
        assert_eq!(leases.sweep().await.unwrap().settled[0].state, State::Retained);
    }
    assert_eq!(home.fake.back().deleted, [""; 0]);
}

async fn a_stop_that_is_never_proved_is_stuck_and_nothing_is_deleted(home: Home) {
    let leases = home.leases().await;
    let lease = worked_in(&leases).await;
    for _ in 0..=MAX_ATTEMPTS {
        home.fake.script([Act::NotStopped(StopReason::Unconfirmed)]);
        match leases.get(&lease.id).await.unwrap().state {
            State::Active => drop(leases.stop(&lease.id, "test").await.unwrap_err()),
            _ => assert_eq!(leases.reconcile().await.unwrap().unsettled.len(), 1),
        }
    }
    let report = leases.reconcile().await.unwrap();
    assert_eq!((report.unsettled.len(), report.stuck.len()), (0, 1));
    assert_eq!((home.fake.allocations(), home.fake.back().deleted.len()), (1, 0));
    // A person asks again, and that begins anew.
    home.fake.back().script.clear();
    leases.stop(&lease.id, "test").await.unwrap();
}

async fn work_of_a_host_that_is_gone_is_stopped_where_it_must_be_preserved(home: Home) {
    let dead = home.dead().await;
    let kept = worked_in(&dead).await;
    let lost = dead.acquire(wanted()).await.unwrap().lease;
    dead.set_unexported(&lost.id, true).await.unwrap();
    let leases = home.leases().await;
    assert_eq!(leases.reconcile().await.unwrap().settled.len(), 2);
    assert_eq!(leases.get(&kept.id).await.unwrap().state, State::Retained);
    assert_eq!(leases.get(&lost.id).await.unwrap().state, State::Released);
    assert_eq!(leases.store().stop_intents(&kept.id).await.unwrap()[0].outcome.as_deref(), Some("stopped"));
}

async fn a_stopped_lease_is_taken_up_to_bring_its_work_back_and_stopped_again(home: Home) {
    let leases = home.leases().await;
    let lease = worked_in(&leases).await;
    leases.stop(&lease.id, "test").await.unwrap();
    home.fake.script([Act::Fails]);
    let failed = leases.take_up(&lease.id, None).await.unwrap_err();
    assert!(matches!(failed, LeaseError::Preserved { .. }), "{failed}");
    assert_eq!(leases.get(&lease.id).await.unwrap().state, State::Retained);
    let active = leases.take_up(&lease.id, None).await.unwrap().lease;
    assert_eq!((active.state, active.unexported), (State::Active, true));
    leases.set_unexported(&lease.id, false).await.unwrap();
    leases.stop(&lease.id, "exported").await.unwrap();
    assert_eq!(leases.store().stop_intents(&lease.id).await.unwrap().len(), 3);
    leases.destroy(&lease.id, "given_up").await.unwrap();
    assert_eq!(home.fake.allocations(), 0);
    assert!(matches!(leases.take_up(&lease.id, None).await, Err(LeaseError::Store(_))));
}

async fn a_failed_run_is_kept_where_the_policy_says_so(home: Home) {
    let leases = home.leases().await;
    let failed = Releasing { failed: true, ..DONE };
    let keep = Wanted { policy: Policy::KeepOnFailure, ..wanted() };
    let cases = [
        (keep.clone(), failed, State::Retained, Some("adapter_or_run_failure")),
        (keep, DONE, State::Released, None),
        (wanted(), failed, State::Released, Some("adapter_or_run_failure")),
    ];
    for (wanted, how, state, reason) in cases {
        let lease = leases.acquire(wanted).await.unwrap().lease;
        let ended = leases.release(&lease.id, how).await.unwrap().lease;
        assert_eq!((ended.state, ended.reason.as_deref()), (state, reason));
    }
}

async fn only_a_person_turns_a_stop_into_a_deletion(home: Home) {
    let leases = home.leases().await;
    let lease = worked_in(&leases).await;
    home.fake.script([Act::Fails]);
    leases.stop(&lease.id, "test").await.unwrap_err();
    let ended = leases.destroy(&lease.id, "given_up").await.unwrap().lease;
    assert_eq!(
        (ended.state, ended.goal, ended.reason.as_deref()),
        (State::Released, Some(Goal::Delete), Some("given_up"))
    );
    assert!(!ended.unexported);
}
