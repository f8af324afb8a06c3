//! Releases, and receipts that prove nothing.

use super::fake::{Act, Fake, only};
use super::{leases, store, wanted};
use crate::{Disposition, LeaseError, Retention, State, StoreError};

#[tokio::test]
async fn a_release_ends_as_the_retention_says() {
    let cases =
        [(Retention::Ephemeral, Disposition::Destroyed, 0), (Retention::Reuse, Disposition::Stopped, 1)];
    for (retention, disposition, allocations) in cases {
        let leases = leases(&store());
        let fake = Fake::new([]);
        let lease = leases.acquire(fake.clone(), wanted(retention)).await.unwrap();
        let released = leases.release(fake.clone(), &lease.id, true).await.unwrap();
        assert_eq!((released.disposition, fake.allocations()), (disposition, allocations));
        assert_eq!((released.lease.state, released.lease.owner), (State::Released, None));
        assert_eq!(released.lease.disposition, Some(disposition));
    }
}

#[tokio::test(start_paused = true)]
async fn a_release_without_a_fitting_receipt_waits_for_cleanup() {
    let acts = [
        (Act::About("another".into()), "about allocation `another`"),
        (Act::Says(Disposition::Stopped), "answers a release that deletes with `stopped`"),
        (Act::Fails, "as scripted"),
        (Act::Panics, "broke off"),
        (Act::Hangs, "no answer within 60s"),
    ];
    for (act, expected) in acts {
        let leases = leases(&store());
        let fake = Fake::new([Act::Honest, act]);
        let lease = leases.acquire(fake.clone(), wanted(Retention::Ephemeral)).await.unwrap();
        let failed = leases.release(fake.clone(), &lease.id, true).await.unwrap_err();
        assert!(matches!(failed, LeaseError::Unconfirmed { .. }), "{failed}");
        assert!(failed.to_string().contains(expected), "{failed}");
        let stored = leases.get(&lease.id).await.unwrap();
        assert_eq!((stored.state, stored.owner), (State::PendingCleanup, None));
        let report = leases.reconcile(only(&fake)).await.unwrap();
        assert_eq!((report.settled.len(), fake.allocations()), (1, 0));
    }
}

#[tokio::test]
async fn a_lease_is_released_once() {
    let leases = leases(&store());
    let fake = Fake::new([Act::Honest, Act::Late]);
    let lease = leases.acquire(fake.clone(), wanted(Retention::Ephemeral)).await.unwrap();
    let (first, second) = tokio::join!(leases.release(fake.clone(), &lease.id, true), async {
        fake.waits.notified().await;
        let second = leases.release(fake.clone(), &lease.id, true).await;
        fake.go_on.notify_one();
        second
    });
    first.unwrap();
    let refused = second.unwrap_err();
    assert!(matches!(refused, LeaseError::Store(StoreError::Illegal { .. })), "{refused}");
    let again = leases.release(fake.clone(), &lease.id, true).await.unwrap_err().to_string();
    assert_eq!(again, format!("lease `{}` is released and cannot become releasing", lease.id));
    assert_eq!(fake.calls(), ["acquire", "release"]);
}

#[tokio::test]
async fn a_release_goes_on_when_nobody_waits_for_it() {
    let leases = leases(&store());
    let fake = Fake::new([Act::Honest, Act::Late]);
    let lease = leases.acquire(fake.clone(), wanted(Retention::Ephemeral)).await.unwrap();
    tokio::select! {
        _ = leases.release(fake.clone(), &lease.id, true) => panic!("it was not told to go on"),
        () = fake.waits.notified() => {}
    }
    fake.go_on.notify_one();
    leases.idle().await;
    assert_eq!(leases.get(&lease.id).await.unwrap().state, State::Released);
}
