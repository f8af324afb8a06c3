//! Releases, and receipts that prove nothing.

use super::fake::Act;
use super::home::{Home, kept, on_both, wanted};
use crate::{Disposition, LeaseError, Releasing, State, StoreError};
use std::time::Duration;

on_both!(
    a_release_ends_as_the_policy_says,
    a_release_without_a_fitting_receipt_waits_for_cleanup,
    a_lease_is_released_once,
    a_release_goes_on_when_nobody_waits_for_it,
);

const DONE: Releasing = Releasing { failed: false, cancel_active_work: true };

async fn a_release_ends_as_the_policy_says(home: Home) {
    let cases = [
        (wanted(), State::Released, Disposition::Destroyed, 0),
        (kept(), State::Retained, Disposition::Stopped, 1),
    ];
    for (wanted, state, disposition, allocations) in cases {
        let leases = home.leases().await;
        let lease = leases.acquire(wanted).await.unwrap().lease;
        let released = leases.release(&lease.id, DONE).await.unwrap();
        assert_eq!((released.disposition, home.fake.allocations()), (disposition, allocations));
        assert_eq!((released.lease.state, released.lease.owner), (state, None));
        assert_eq!(released.lease.released_ms.is_some(), state == State::Released);
    }
}

async fn a_release_without_a_fitting_receipt_waits_for_cleanup(home: Home) {
    let acts = [
        (Act::About("another".into()), "about allocation `another`"),
        (Act::Says(Disposition::Stopped), "answers a release that deletes with `stopped`"),
        (Act::Fails, "as scripted"),
        (Act::Panics, "broke off"),
        (Act::Hangs, "no answer within 30s"),
    ];
    let leases = home.leases().await;
    for (act, expected) in acts {
        let lease = leases.acquire(wanted()).await.unwrap().lease;
        let hangs = matches!(act, Act::Hangs);
        home.fake.script([act]);
        let releasing = leases.release(&lease.id, DONE);
        let waiting = async {
            if hangs {
                home.fake.waits.notified().await;
                home.clock.pausing(|_| true).await;
                home.clock.advance(Duration::from_secs(30));
            }
        };
        let (failed, ()) = tokio::join!(releasing, waiting);
        let failed = failed.unwrap_err();
        assert!(matches!(failed, LeaseError::Unconfirmed { .. }), "{failed}");
        assert!(failed.to_string().contains(expected), "{failed}");
        let stored = leases.get(&lease.id).await.unwrap();
        assert_eq!((stored.state, stored.owner), (State::PendingCleanup, None));
        assert_eq!(stored.reason.as_deref(), Some("release_cleanup_failed"));
        let report = leases.reconcile().await.unwrap();
        assert_eq!((report.settled.len(), home.fake.allocations()), (1, 0));
    }
}

async fn a_lease_is_released_once(home: Home) {
    let leases = home.leases().await;
    let lease = leases.acquire(wanted()).await.unwrap().lease;
    home.fake.script([Act::Late]);
    let (first, second) = tokio::join!(leases.release(&lease.id, DONE), async {
        home.fake.waits.notified().await;
        let second = leases.release(&lease.id, DONE).await;
        home.fake.go_on.notify_one();
        second
    });
    first.unwrap();
    let refused = second.unwrap_err();
    assert!(matches!(refused, LeaseError::Store(StoreError::Illegal { .. })), "{refused}");
    let again = leases.release(&lease.id, DONE).await.unwrap_err().to_string();
    assert_eq!(again, format!("lease `{}` is released and cannot become releasing", lease.id));
    assert_eq!(home.fake.calls(), ["acquire", "release"]);
}

async fn a_release_goes_on_when_nobody_waits_for_it(home: Home) {
    let leases = home.leases().await;
    let lease = leases.acquire(wanted()).await.unwrap().lease;
    home.fake.script([Act::Late]);
    tokio::select! {
        _ = leases.release(&lease.id, DONE) => panic!("it was not told to go on"),
        () = home.fake.waits.notified() => {}
    }
    home.fake.go_on.notify_one();
    leases.idle().await;
    assert_eq!(leases.get(&lease.id).await.unwrap().state, State::Released);
}
