//! Tests over the whole crate: a scripted provider, real stores, processes that are really killed.

mod acquire;
mod fake;
mod files;
mod kill;
mod property;
mod reconcile;
mod release;
mod states;
mod store;

use crate::{Budgets, Leases, Owner, Retention, Store, Wanted, Wishes};
use std::time::Duration;

/// What a test asks for.
fn wanted(retention: Retention) -> Wanted {
    Wanted {
        environment: "env".into(),
        provider: "acme.fake".into(),
        driver: "fake".into(),
        digest: "d1".into(),
        tenant: "tenant".into(),
        run: Some("run".into()),
        retention,
        config: "{}".into(),
        wishes: Wishes::default(),
        budget: Duration::from_secs(30),
    }
}

fn store() -> Store {
    Store::in_memory().unwrap()
}

fn leases(store: &Store) -> Leases {
    Leases::new(store.clone(), Budgets::default()).unwrap()
}

/// Leases of a process that has ended.
fn leases_of_the_dead(store: &Store) -> Leases {
    let owner = Owner { boot: "an earlier boot".into(), ..Owner::current().unwrap() };
    Leases::owned_by(owner, store.clone(), Budgets::default())
}
