//! Reconciling what the dead, the failed and the interrupted left.

use super::fake::{Act, allocation};
use super::home::{Home, kept, on_both, wanted};
use crate::leases::PAGE;
use crate::store::MAX_ATTEMPTS;
use crate::{Disposition, Filter, Owner, State};

on_both!(
    a_lease_of_a_living_owner_is_left_alone_and_one_of_a_dead_owner_is_ended,
    a_lease_of_a_container_that_cannot_be_seen_is_left_alone_and_reported,
    a_lease_acquired_to_be_kept_is_kept_and_never_deleted,
    two_reconciles_at_once_tear_a_lease_down_once,
    a_lease_whose_provider_is_not_ready_is_put_off_and_loses_no_attempt,
    stuck_leases_are_reported_and_starve_no_other,
    more_than_a_page_is_ended_by_one_reconcile,
    the_id_a_provider_found_is_stored_before_it_deletes,
    an_id_once_seen_and_gone_since_is_settled_and_a_receipt_about_another_is_not,
    a_provider_that_panics_in_a_cleanup_leaves_the_lease_for_the_next,
);

async fn a_lease_of_a_living_owner_is_left_alone_and_one_of_a_dead_owner_is_ended(home: Home) {
    let fake = &home.fake;
    let (living, dead) = (home.leases().await, home.dead().await);
    let kept = living.acquire(wanted()).await.unwrap().lease;
    let lost = dead.acquire(wanted()).await.unwrap().lease;
    let report = home.leases().await.reconcile().await.unwrap();
    assert_eq!(report.settled.iter().map(|lease| &lease.id).collect::<Vec<_>>(), [&lost.id]);
    assert_eq!(report.settled[0].disposition, Some(Disposition::Destroyed));
    assert_eq!(living.get(&kept.id).await.unwrap().state, State::Active);
    assert_eq!(fake.allocations(), 1);
    let reasons = living.history(&lost.id).await.unwrap();
    assert!(reasons[2].reason.contains("left it active"), "{reasons:?}");
}

async fn a_lease_of_a_container_that_cannot_be_seen_is_left_alone_and_reported(home: Home) {
    let fake = &home.fake;
    let owner = Owner { table: "pid:[1]".into(), ..Owner::current().unwrap() };
    let contained = home.host(owner, home.settings()).await;
    let lease = contained.acquire(wanted()).await.unwrap().lease;
    let report = home.leases().await.reconcile().await.unwrap();
    // On a server it says itself that it lives; on a file it can only be seen or not.
    assert_eq!(report.out_of_sight, if home.address.is_some() { vec![] } else { vec![lease] });
    assert_eq!(fake.allocations(), 1);
}

async fn a_lease_acquired_to_be_kept_is_kept_and_never_deleted(home: Home) {
    let fake = &home.fake;
    let dead = home.dead().await;
    let lease = dead.acquire(kept()).await.unwrap().lease;
    fake.back().script.push_back(Act::Fails);
    let reconciler = home.leases().await;
    assert_eq!(reconciler.reconcile().await.unwrap().unsettled.len(), 1);
    assert_eq!(reconciler.reconcile().await.unwrap().settled.len(), 1);
    assert_eq!(reconciler.get(&lease.id).await.unwrap().disposition, Some(Disposition::Stopped));
    assert_eq!(fake.calls(), ["acquire", "release", "release"]);
    assert_eq!(fake.allocations(), 1);
}

async fn two_reconciles_at_once_tear_a_lease_down_once(home: Home) {
    let fake = &home.fake;
    let dead = home.dead().await;
    for _ in 0..30 {
        dead.acquire(wanted()).await.unwrap();
    }
    let (one, two) = (home.leases().await, home.leases().await);
    let (first, second) = tokio::join!(one.reconcile(), two.reconcile());
    let settled = first.unwrap().settled.len() + second.unwrap().settled.len();
    let destroys = fake.calls().iter().filter(|call| *call == "destroy").count();
    assert_eq!((settled, destroys, fake.allocations()), (30, 30, 0));
}

async fn a_lease_whose_provider_is_not_ready_is_put_off_and_loses_no_attempt(home: Home) {
    let fake = &home.fake;
    home.dead().await.acquire(wanted()).await.unwrap();
    fake.back().unready = true;
    let reconciler = home.leases().await;
    for _ in 0..=MAX_ATTEMPTS {
        let report = reconciler.reconcile().await.unwrap();
        assert_eq!((report.put_off.len(), report.put_off[0].0.attempts), (1, 0));
    }
    fake.back().unready = false;
    assert_eq!(reconciler.reconcile().await.unwrap().settled.len(), 1);
}

async fn stuck_leases_are_reported_and_starve_no_other(home: Home) {
    let fake = &home.fake;
    let dead = home.dead().await;
    for _ in 0..PAGE + 1 {
        dead.acquire(wanted()).await.unwrap();
    }
    let reconciler = home.leases().await;
    for attempt in 1..=MAX_ATTEMPTS {
        let refusals = vec![Act::Says(Disposition::Retained); usize::try_from(PAGE + 1).unwrap()];
        fake.back().script.extend(refusals);
        let report = reconciler.reconcile().await.unwrap();
        let stuck = if attempt == MAX_ATTEMPTS { 21 } else { 0 };
        assert_eq!((report.unsettled.len(), report.stuck.len()), (21, stuck));
    }
    let before = fake.calls().len();
    let last = dead.acquire(wanted()).await.unwrap().lease;
    let report = reconciler.reconcile().await.unwrap();
    assert_eq!(report.settled.iter().map(|lease| &lease.id).collect::<Vec<_>>(), [&last.id]);
    assert_eq!(report.stuck.len(), 21);
    let why = report.stuck[0].last_error.clone().unwrap();
    assert_eq!(why, "the receipt answers a destroy with `retained`");
    assert_eq!(fake.calls().len(), before + 2);
}

async fn more_than_a_page_is_ended_by_one_reconcile(home: Home) {
    let fake = &home.fake;
    let dead = home.dead().await;
    for _ in 0..3 * PAGE {
        dead.acquire(wanted()).await.unwrap();
    }
    let report = home.leases().await.reconcile().await.unwrap();
    assert_eq!((report.settled.len(), fake.allocations()), (60, 0));
}

async fn the_id_a_provider_found_is_stored_before_it_deletes(home: Home) {
    let fake = &home.fake;
    let lease = home.dead().await.acquire(wanted()).await.unwrap().lease;
    fake.back().script.extend([Act::TwoPhases]);
    let reconciler = home.leases().await;
    assert_eq!(reconciler.reconcile().await.unwrap().settled.len(), 1);
    assert_eq!(fake.calls(), ["acquire", "destroy", "destroy"]);
    let record = reconciler.store().creation(&lease.id).await.unwrap().record.unwrap();
    assert_eq!(record.observed_id, Some(allocation(lease.id.as_str()).id));
}

async fn an_id_once_seen_and_gone_since_is_settled_and_a_receipt_about_another_is_not(home: Home) {
    let fake = &home.fake;
    let dead = home.dead().await;
    dead.acquire(wanted()).await.unwrap();
    fake.back().script.push_back(Act::About("another".into()));
    let reconciler = home.leases().await;
    let report = reconciler.reconcile().await.unwrap();
    assert!(report.unsettled[0].last_error.clone().unwrap().contains("`another`"));
    // The first attempt has deleted it after all.
    let report = reconciler.reconcile().await.unwrap();
    assert_eq!(report.settled[0].disposition, Some(Disposition::AlreadyGone));
}

async fn a_provider_that_panics_in_a_cleanup_leaves_the_lease_for_the_next(home: Home) {
    let fake = &home.fake;
    home.dead().await.acquire(wanted()).await.unwrap();
    fake.back().script.push_back(Act::Panics);
    let reconciler = home.leases().await;
    assert_eq!(reconciler.reconcile().await.unwrap().unsettled.len(), 1);
    assert_eq!(reconciler.reconcile().await.unwrap().settled.len(), 1);
    assert_eq!(reconciler.list(Filter::default()).await.unwrap()[0].attempts, 2);
}
