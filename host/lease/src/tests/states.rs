//! The table of transitions, pair by pair, and the store's obedience to it.

use super::{store, wanted};
use crate::fault::Step;
use crate::store::{Change, Intent, Learned, Whose};
use crate::{LeaseId, Owner, Retention, State, Store, StoreError};

/// Every pair of states in the order of [`State::ALL`]: rows are the states before.
const ALLOWED: [[bool; 6]; 6] = {
    const Y: bool = true;
    const N: bool = false;
    [
        // acquiring, active, releasing, released, pending_cleanup, failed
        [N, Y, N, N, Y, Y],
        [N, N, Y, N, Y, N],
        [N, N, N, Y, Y, N],
        [N, N, N, N, N, N],
        [N, N, N, Y, Y, Y],
        [N, N, N, N, N, N],
    ]
};

/// How a new lease gets into each state.
fn path(state: State) -> &'static [State] {
    match state {
        State::Acquiring => &[],
        State::Active => &[State::Active],
        State::Releasing => &[State::Active, State::Releasing],
        State::Released => &[State::Active, State::Releasing, State::Released],
        State::PendingCleanup => &[State::PendingCleanup],
        State::Failed => &[State::Failed],
    }
}

pub(super) async fn intend(store: &Store, owner: &Owner) -> LeaseId {
    let wanted = wanted(Retention::Ephemeral);
    let id = LeaseId::random().unwrap();
    let intent = Intent {
        id: id.clone(),
        environment: wanted.environment,
        provider: wanted.provider,
        driver: wanted.driver,
        digest: wanted.digest,
        tenant: wanted.tenant,
        run: wanted.run,
        retention: wanted.retention,
        config: wanted.config,
        owner: owner.clone(),
    };
    store.intend(intent).await.unwrap();
    id
}

pub(super) fn change(id: &LeaseId, from: State, to: State) -> Change {
    Change {
        id: id.clone(),
        from,
        whose: Whose::Anybodys,
        to,
        owner: None,
        reason: "test".into(),
        learned: Learned::default(),
    }
}

#[tokio::test]
async fn every_pair_of_states_is_allowed_or_refused_as_the_table_says() {
    let (store, owner) = (store(), Owner::current().unwrap());
    for (from, row) in State::ALL.into_iter().zip(ALLOWED) {
        for (to, allowed) in State::ALL.into_iter().zip(row) {
            assert_eq!(from.may_become(to), allowed, "{from} -> {to}");
            let id = intend(&store, &owner).await;
            let mut at = State::Acquiring;
            for next in path(from) {
                store.change(Step::Observe, change(&id, at, *next)).await.unwrap();
                at = *next;
            }
            let changed = store.change(Step::Observe, change(&id, from, to)).await;
            let expected = format!("lease `{id}` is {from} and cannot become {to}");
            assert_eq!(
                changed.map(|_| ()).map_err(|error| error.to_string()),
                match allowed {
                    true => Ok(()),
                    false => Err(expected),
                }
            );
            let stored = store.get(&id).await.unwrap().state;
            assert_eq!(stored, if allowed { to } else { from });
        }
        assert_eq!(from.is_final(), matches!(from, State::Released | State::Failed));
        assert_eq!(State::parse(from.word()), Some(from));
    }
}

#[tokio::test]
async fn a_lease_changed_by_another_is_not_changed_again() {
    let (store, owner) = (store(), Owner::current().unwrap());
    let id = intend(&store, &owner).await;
    store.change(Step::Observe, change(&id, State::Acquiring, State::Active)).await.unwrap();
    // Somebody still believes it to be acquiring.
    let late = store.change(Step::Observe, change(&id, State::Acquiring, State::PendingCleanup)).await;
    assert!(matches!(
        late,
        Err(StoreError::Changed { expected: State::Acquiring, found: State::Active, .. })
    ));
    let illegal = store.change(Step::Observe, change(&id, State::Acquiring, State::Failed)).await;
    assert!(matches!(illegal, Err(StoreError::Illegal { from: State::Active, to: State::Failed, .. })));
    // Its owner is nobody now, so nobody's owner may change it.
    let theirs = Change { whose: Whose::Of(owner), ..change(&id, State::Active, State::Releasing) };
    assert!(matches!(store.change(Step::Observe, theirs).await, Err(StoreError::Changed { .. })));
    let unknown = LeaseId::random().unwrap();
    let missing = store.change(Step::Observe, change(&unknown, State::Active, State::Releasing)).await;
    assert!(matches!(missing, Err(StoreError::Missing { .. })));
}

#[tokio::test]
async fn what_happened_is_written_with_every_change_and_only_with_it() {
    let (store, owner) = (store(), Owner::current().unwrap());
    let id = intend(&store, &owner).await;
    store.change(Step::Observe, change(&id, State::Acquiring, State::Active)).await.unwrap();
    store.change(Step::Observe, change(&id, State::Acquiring, State::Failed)).await.unwrap_err();
    let steps = store.history(&id).await.unwrap().into_iter().map(|it| (it.from, it.to)).collect::<Vec<_>>();
    assert_eq!(steps, [(None, State::Acquiring), (Some(State::Acquiring), State::Active)]);
}

#[tokio::test]
async fn of_two_that_saw_the_same_lease_one_takes_it_even_when_the_first_has_failed_since() {
    let (store, owner) = (store(), Owner::current().unwrap());
    let id = intend(&store, &owner).await;
    let pending = State::PendingCleanup;
    store.change(Step::Observe, change(&id, State::Acquiring, pending)).await.unwrap();
    let claim = |owner: &Owner| Change {
        whose: Whose::AsSeen { owner: None, attempts: 0 },
        owner: Some(owner.clone()),
        learned: Learned { attempt: true, ..Learned::default() },
        ..change(&id, pending, pending)
    };
    store.change(Step::Claim, claim(&owner)).await.unwrap();
    let failed = Change { whose: Whose::Of(owner.clone()), ..change(&id, pending, pending) };
    assert_eq!(store.change(Step::PutOff, failed).await.unwrap().owner, None);
    let late = store.change(Step::Claim, claim(&owner)).await;
    assert!(matches!(late, Err(StoreError::Changed { .. })));
    assert_eq!(store.get(&id).await.unwrap().attempts, 1);
}
