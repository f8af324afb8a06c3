//! Hosts on several machines over one server: who lives is known by what they say.

use super::home::{Home, wanted};
use crate::{Owner, Settings, Standing, State, Times};
use std::time::Duration;

/// A host on another machine, which beats this often.
async fn elsewhere(home: &Home, beat: Duration) -> crate::Leases {
    let owner = Owner { boot: "another machine".into(), ..Owner::current().unwrap() };
    let times = Times { beat, stale: Duration::from_millis(300), ..Times::default() };
    home.host(owner, Settings { times, ..home.settings() }).await
}

#[tokio::test]
async fn a_host_that_is_no_longer_heard_of_is_gone_and_another_takes_up_its_leases() {
    let Some(home) = Home::postgres() else { return };
    let (living, silent) =
        (elsewhere(&home, Duration::from_millis(20)).await, elsewhere(&home, Duration::MAX).await);
    let kept = living.acquire(wanted()).await.unwrap().lease;
    let lost = silent.acquire(wanted()).await.unwrap().lease;
    let here = elsewhere(&home, Duration::from_millis(20)).await;
    let standing = async |lease: &crate::Lease| {
        let owners = here.store().owners(Duration::from_millis(300)).await.unwrap();
        let owner = lease.owner.as_ref().unwrap().to_text();
        owners.into_iter().find(|(text, _)| *text == owner).map(|(_, standing)| standing)
    };
    assert_eq!(standing(&kept).await, Some(Standing::Alive));
    while here.get(&lost.id).await.unwrap().state != State::Released {
        here.reconcile().await.unwrap();
        tokio::task::yield_now().await;
    }
    assert_eq!(here.get(&kept.id).await.unwrap().state, State::Active);
    assert_eq!(standing(&kept).await, Some(Standing::Alive));
}
