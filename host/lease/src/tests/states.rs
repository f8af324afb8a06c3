//! The table of transitions, pair by pair, and the store's obedience to it.

use super::home::{Home, on_both, wanted};
use crate::fault::Step;
use crate::store::{Attempts, Change, Learned, Whose};
use crate::{LeaseId, Owner, ProviderLease, State, Store, StoreError};
use std::time::Duration;

on_both!(
    the_store_makes_every_allowed_change_and_no_other,
    a_change_names_the_state_it_found,
    what_happened_is_written_with_every_change_and_only_with_it,
    of_two_that_saw_the_same_lease_one_takes_it,
    of_two_that_are_given_the_same_allocation_at_once_one_holds_it,
);

/// Every pair of states in the order of [`State::ALL`]: rows are the states before.
#[rustfmt::skip]
const ALLOWED: [[bool; 8]; 8] = {
    const Y: bool = true;
    const N: bool = false;
    [
        // acquiring, active, resuming, releasing, retained, pending, released, failed
        [N, Y, N, N, N, Y, N, Y], // acquiring
        [N, N, Y, Y, N, Y, N, N], // active
        [N, Y, N, N, N, Y, N, N], // resuming
        [N, N, N, N, Y, Y, Y, N], // releasing
        [N, N, Y, N, N, Y, N, N], // retained
        [N, N, N, N, Y, Y, Y, Y], // pending cleanup
        [N, N, N, N, N, N, N, N], // released
        [N, N, N, N, N, N, N, N], // failed
    ]
};

fn pairs() -> impl Iterator<Item = (State, State, bool)> {
    let row = |(from, row): (State, [bool; 8])| {
        State::ALL.into_iter().zip(row).map(move |(to, may)| (from, to, may))
    };
    State::ALL.into_iter().zip(ALLOWED).flat_map(row)
}

/// A lease that was only asked for.
async fn intend(store: &Store) -> LeaseId {
    let (id, me) = (LeaseId::random().unwrap(), Owner::current().unwrap());
    let (intent, _) = wanted().split(id, me, Duration::ZERO, "asked for".into());
    store.intend(intent).await.unwrap().id
}

fn change(id: &LeaseId, from: State, to: State) -> Change {
    let (whose, learned) = (Whose::Anybodys, Learned::default());
    Change { id: id.clone(), from, whose, to, owner: None, reason: "test".into(), learned }
}

/// The ways to each state from the first.
fn way(to: State) -> &'static [State] {
    use State::*;
    match to {
        Acquiring => &[],
        Active => &[Active],
        Resuming => &[Active, Resuming],
        Releasing => &[Active, Releasing],
        Retained => &[Active, Releasing, Retained],
        PendingCleanup => &[PendingCleanup],
        Released => &[PendingCleanup, Released],
        Failed => &[Failed],
    }
}

async fn at(store: &Store, state: State) -> LeaseId {
    let id = intend(store).await;
    let mut from = State::Acquiring;
    for to in way(state) {
        store.change(Step::Observe, change(&id, from, *to)).await.unwrap();
        from = *to;
    }
    id
}

#[test]
fn the_table_allows_exactly_these_pairs() {
    for (from, to, may) in pairs() {
        assert_eq!(from.may_become(to), may, "{from} to {to}");
    }
    assert_eq!(State::ALL.map(State::is_final), [false, false, false, false, false, false, true, true]);
}

async fn the_store_makes_every_allowed_change_and_no_other(home: Home) {
    let store = home.store().await;
    for (from, to, may) in pairs() {
        let id = at(&store, from).await;
        let changed = store.change(Step::Observe, change(&id, from, to)).await;
        match may {
            true => assert_eq!(changed.unwrap().state, to),
            false => {
                let refused = changed.unwrap_err().to_string();
                assert_eq!(refused, format!("lease `{id}` is {from} and cannot become {to}"));
                assert_eq!(store.get(&id).await.unwrap().state, from);
            }
        }
    }
}

async fn a_change_names_the_state_it_found(home: Home) {
    let store = home.store().await;
    let id = at(&store, State::Active).await;
    // Somebody still believes it to be acquiring.
    let late = store.change(Step::Observe, change(&id, State::Acquiring, State::PendingCleanup)).await;
    let (expected, found) = (State::Acquiring, State::Active);
    assert!(
        matches!(late, Err(StoreError::Changed { expected: e, found: f, .. }) if (e, f) == (expected, found))
    );
    let illegal = store.change(Step::Observe, change(&id, State::Acquiring, State::Failed)).await;
    assert!(matches!(illegal, Err(StoreError::Illegal { from: State::Active, to: State::Failed, .. })));
    // Its owner is nobody now, so nobody's owner may change it.
    let me = Owner::current().unwrap();
    let theirs = Change { whose: Whose::Of(me), ..change(&id, State::Active, State::Releasing) };
    assert!(matches!(store.change(Step::Observe, theirs).await, Err(StoreError::Changed { .. })));
    let unknown = LeaseId::random().unwrap();
    let missing = store.change(Step::Observe, change(&unknown, State::Active, State::Releasing)).await;
    assert!(matches!(missing, Err(StoreError::Missing { .. })));
}

async fn what_happened_is_written_with_every_change_and_only_with_it(home: Home) {
    let store = home.store().await;
    let id = at(&store, State::Active).await;
    store.change(Step::Observe, change(&id, State::Acquiring, State::Failed)).await.unwrap_err();
    let steps = store.history(&id).await.unwrap().into_iter().map(|it| (it.from, it.to)).collect::<Vec<_>>();
    assert_eq!(steps, [(None, State::Acquiring), (Some(State::Acquiring), State::Active)]);
}

async fn of_two_that_saw_the_same_lease_one_takes_it(home: Home) {
    let store = home.store().await;
    let (id, me) = (at(&store, State::PendingCleanup).await, Owner::current().unwrap());
    let (pending, seen) = (State::PendingCleanup, store.get(&id).await.unwrap().version);
    let claim = || Change {
        whose: Whose::AsSeen(seen),
        owner: Some(me.clone()),
        learned: Learned { attempts: Attempts::Begin, ..Learned::default() },
        ..change(&id, pending, pending)
    };
    let (one, two) = tokio::join!(store.change(Step::Claim, claim()), store.change(Step::Claim, claim()));
    assert_eq!([one.is_ok(), two.is_ok()].iter().filter(|it| **it).count(), 1);
    // Even when the first has given it back since.
    let failed = Change { whose: Whose::Of(me.clone()), ..change(&id, pending, pending) };
    assert_eq!(store.change(Step::PutOff, failed).await.unwrap().owner, None);
    assert!(matches!(store.change(Step::Claim, claim()).await, Err(StoreError::Changed { .. })));
    assert_eq!(store.get(&id).await.unwrap().attempts, 1);
}

async fn of_two_that_are_given_the_same_allocation_at_once_one_holds_it(home: Home) {
    let (store, other) = (home.store().await, home.store().await);
    for round in 0..10 {
        let allocation = ProviderLease { id: format!("same-{round}"), metadata: None, expires_at_ms: None };
        let (first, second) = (intend(&store).await, intend(&other).await);
        let active = |id: &LeaseId| Change {
            learned: Learned { allocation: Some(allocation.clone()), ..Learned::default() },
            ..change(id, State::Acquiring, State::Active)
        };
        let (one, two) = tokio::join!(
            store.change(Step::Activate, active(&first)),
            other.change(Step::Activate, active(&second))
        );
        let (held, refused) = if one.is_ok() { (one, two) } else { (two, one) };
        let holder = held.unwrap().id;
        match refused.unwrap_err() {
            StoreError::HeldElsewhere { holder: named, .. } => assert_eq!(named, holder),
            other => panic!("{other}"),
        }
    }
}
