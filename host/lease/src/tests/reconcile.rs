//! Reconciling what the dead, the failed and the interrupted left.

use super::fake::{Act, Fake, allocation, only};
use super::{leases, leases_of_the_dead, store, wanted};
use crate::leases::{MAX_ATTEMPTS, PAGE};
use crate::{Budgets, Disposition, Filter, Leases, Owner, Retention, State};

#[tokio::test]
async fn a_lease_of_a_living_owner_is_left_alone_and_one_of_a_dead_owner_is_ended() {
    let store = store();
    let fake = Fake::new([]);
    let (living, dead) = (leases(&store), leases_of_the_dead(&store));
    let kept = living.acquire(fake.clone(), wanted(Retention::Ephemeral)).await.unwrap();
    let lost = dead.acquire(fake.clone(), wanted(Retention::Ephemeral)).await.unwrap();
    let report = leases(&store).reconcile(only(&fake)).await.unwrap();
    assert_eq!(report.settled.iter().map(|lease| &lease.id).collect::<Vec<_>>(), [&lost.id]);
    assert_eq!(report.settled[0].disposition, Some(Disposition::Destroyed));
    assert_eq!(living.get(&kept.id).await.unwrap().state, State::Active);
    assert_eq!(fake.allocations(), 1);
    let reasons = living.history(&lost.id).await.unwrap();
    assert!(reasons[2].reason.contains("left it active"), "{reasons:?}");
}

#[tokio::test]
async fn a_lease_of_a_container_that_cannot_be_seen_is_left_alone_and_reported() {
    let store = store();
    let fake = Fake::new([]);
    let owner = Owner { table: "pid:[1]".into(), ..Owner::current().unwrap() };
    let contained = Leases::owned_by(owner, store.clone(), Budgets::default());
    let lease = contained.acquire(fake.clone(), wanted(Retention::Ephemeral)).await.unwrap();
    let report = leases(&store).reconcile(only(&fake)).await.unwrap();
    assert_eq!(report.out_of_sight, [lease]);
    assert_eq!(fake.allocations(), 1);
}

#[tokio::test]
async fn a_lease_acquired_to_be_kept_is_kept_and_never_deleted() {
    let store = store();
    let fake = Fake::new([]);
    let dead = leases_of_the_dead(&store);
    let lease = dead.acquire(fake.clone(), wanted(Retention::Reuse)).await.unwrap();
    fake.back().script.push_back(Act::Fails);
    let reconciler = leases(&store);
    assert_eq!(reconciler.reconcile(only(&fake)).await.unwrap().unsettled.len(), 1);
    assert_eq!(reconciler.reconcile(only(&fake)).await.unwrap().settled.len(), 1);
    assert_eq!(reconciler.get(&lease.id).await.unwrap().disposition, Some(Disposition::Stopped));
    assert_eq!(fake.calls(), ["acquire", "release", "release"]);
    assert_eq!(fake.allocations(), 1);
}

#[tokio::test]
async fn two_reconciles_at_once_tear_a_lease_down_once() {
    let store = store();
    let fake = Fake::new([]);
    let dead = leases_of_the_dead(&store);
    for _ in 0..30 {
        dead.acquire(fake.clone(), wanted(Retention::Ephemeral)).await.unwrap();
    }
    let (one, two) = (leases(&store), leases(&store));
    let (first, second) = tokio::join!(one.reconcile(only(&fake)), two.reconcile(only(&fake)));
    let settled = first.unwrap().settled.len() + second.unwrap().settled.len();
    let destroys = fake.calls().iter().filter(|call| *call == "destroy").count();
    assert_eq!((settled, destroys, fake.allocations()), (30, 30, 0));
}

#[tokio::test]
async fn a_lease_whose_provider_is_not_ready_is_put_off_and_loses_no_attempt() {
    let store = store();
    let fake = Fake::new([]);
    leases_of_the_dead(&store).acquire(fake.clone(), wanted(Retention::Ephemeral)).await.unwrap();
    fake.back().unready = true;
    let reconciler = leases(&store);
    for _ in 0..=MAX_ATTEMPTS {
        let report = reconciler.reconcile(only(&fake)).await.unwrap();
        assert_eq!((report.put_off.len(), report.put_off[0].0.attempts), (1, 0));
    }
    fake.back().unready = false;
    assert_eq!(reconciler.reconcile(only(&fake)).await.unwrap().settled.len(), 1);
}

#[tokio::test]
async fn stuck_leases_are_reported_and_starve_no_other() {
    let store = store();
    let fake = Fake::new([]);
    let dead = leases_of_the_dead(&store);
    for _ in 0..PAGE + 1 {
        dead.acquire(fake.clone(), wanted(Retention::Ephemeral)).await.unwrap();
    }
    let reconciler = leases(&store);
    for attempt in 1..=MAX_ATTEMPTS {
        let refusals = vec![Act::Says(Disposition::Retained); usize::try_from(PAGE + 1).unwrap()];
        fake.back().script.extend(refusals);
        let report = reconciler.reconcile(only(&fake)).await.unwrap();
        let stuck = if attempt == MAX_ATTEMPTS { 21 } else { 0 };
        assert_eq!((report.unsettled.len(), report.stuck.len()), (21, stuck));
    }
    let before = fake.calls().len();
    let last = dead.acquire(fake.clone(), wanted(Retention::Ephemeral)).await.unwrap();
    let report = reconciler.reconcile(only(&fake)).await.unwrap();
    assert_eq!(report.settled.iter().map(|lease| &lease.id).collect::<Vec<_>>(), [&last.id]);
    assert_eq!(report.stuck.len(), 21);
    let why = report.stuck[0].last_error.clone().unwrap();
    assert_eq!(why, "the receipt answers a destroy with `retained`");
    assert_eq!(fake.calls().len(), before + 2);
}

#[tokio::test]
async fn more_than_a_page_is_ended_by_one_reconcile() {
    let store = store();
    let fake = Fake::new([]);
    let dead = leases_of_the_dead(&store);
    for _ in 0..3 * PAGE {
        dead.acquire(fake.clone(), wanted(Retention::Ephemeral)).await.unwrap();
    }
    let report = leases(&store).reconcile(only(&fake)).await.unwrap();
    assert_eq!((report.settled.len(), fake.allocations()), (60, 0));
}

#[tokio::test]
async fn the_id_a_provider_found_is_stored_before_it_deletes() {
    let store = store();
    let fake = Fake::new([]);
    let lease = leases_of_the_dead(&store).acquire(fake.clone(), wanted(Retention::Ephemeral)).await.unwrap();
    fake.back().script.extend([Act::TwoPhases]);
    let reconciler = leases(&store);
    assert_eq!(reconciler.reconcile(only(&fake)).await.unwrap().settled.len(), 1);
    assert_eq!(fake.calls(), ["acquire", "destroy", "destroy"]);
    let record = reconciler.get(&lease.id).await.unwrap().cleanup.unwrap();
    assert_eq!(record.observed_id, Some(allocation(lease.id.as_str()).id));
}

#[tokio::test]
async fn an_id_once_seen_and_gone_since_is_settled_and_a_receipt_about_another_is_not() {
    let store = store();
    let fake = Fake::new([]);
    let dead = leases_of_the_dead(&store);
    dead.acquire(fake.clone(), wanted(Retention::Ephemeral)).await.unwrap();
    fake.back().script.push_back(Act::About("another".into()));
    let reconciler = leases(&store);
    let report = reconciler.reconcile(only(&fake)).await.unwrap();
    assert!(report.unsettled[0].last_error.clone().unwrap().contains("`another`"));
    // The first attempt has deleted it after all.
    let report = reconciler.reconcile(only(&fake)).await.unwrap();
    assert_eq!(report.settled[0].disposition, Some(Disposition::AlreadyGone));
}

#[tokio::test]
async fn a_provider_that_panics_in_a_cleanup_leaves_the_lease_for_the_next() {
    let store = store();
    let fake = Fake::new([]);
    leases_of_the_dead(&store).acquire(fake.clone(), wanted(Retention::Ephemeral)).await.unwrap();
    fake.back().script.push_back(Act::Panics);
    let reconciler = leases(&store);
    assert_eq!(reconciler.reconcile(only(&fake)).await.unwrap().unsettled.len(), 1);
    assert_eq!(reconciler.reconcile(only(&fake)).await.unwrap().settled.len(), 1);
    assert_eq!(reconciler.list(Filter::default()).await.unwrap()[0].attempts, 2);
}
