//! The database: who may read it, who else has written it, and what happens when it is locked, full, or gone
//! for a while.

use super::fake::{Act, allocation};
use super::home::{Home, on_both, wanted};
use super::server::Server;
use crate::{
    Audit, AuditFilter, Filter, LeaseError, Options, StateKey, StateValue, Store, StoreError, Wanted,
};
use rusqlite::Connection;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

on_both!(
    many_that_make_the_tables_at_once_all_open_them,
    a_locked_store_refuses_an_acquisition_before_the_provider_is_asked,
    a_full_disk_refuses_an_acquisition_before_the_provider_is_asked,
    what_was_made_while_the_disk_got_full_is_put_aside_ended_and_taken_in,
    what_can_be_neither_written_nor_put_aside_is_ended_by_the_next_reconcile_of_the_same_process,
    a_list_holds_what_passes_the_filter,
    a_providers_state_is_changed_only_over_the_version_it_saw,
    what_providers_did_is_listed_newest_first,
);

fn impatient(home: &Home) -> Options {
    Options { busy_timeout: Duration::from_millis(20), ..home.options() }
}

#[tokio::test]
async fn the_files_are_readable_by_their_owner_alone() {
    let home = Home::sqlite();
    home.leases().await.acquire(wanted()).await.unwrap();
    let modes = std::fs::read_dir(home.path()).unwrap().map(|file| {
        let file = file.unwrap();
        (file.file_name().into_string().unwrap(), file.metadata().unwrap().permissions().mode() & 0o777)
    });
    let mut modes = modes.collect::<Vec<_>>();
    modes.sort();
    let expected = ["leases.db", "leases.db-shm", "leases.db-wal"].map(|name| (name.to_owned(), 0o600));
    assert_eq!(modes, expected);
}

#[tokio::test]
async fn what_is_not_a_lease_store_of_a_known_version_is_refused() {
    let home = Home::sqlite();
    let open = async |name: &str| Store::open(home.path().join(name), Options::default()).await.unwrap_err();
    std::fs::write(home.path().join("text"), "no database, and longer than a header would be".repeat(9))
        .unwrap();
    assert!(matches!(open("text").await, StoreError::Foreign { .. }));
    let other = Connection::open(home.path().join("other")).unwrap();
    other.execute_batch("CREATE TABLE things (id)").unwrap();
    assert!(matches!(open("other").await, StoreError::Foreign { .. }));
    Store::open(home.path().join("newer"), Options::default()).await.unwrap();
    Connection::open(home.path().join("newer")).unwrap().pragma_update(None, "user_version", 99).unwrap();
    assert!(matches!(open("newer").await, StoreError::Newer { found: 99, .. }));
    let nowhere = open("no/such/folder").await;
    assert!(nowhere.to_string().contains("check that its folder exists"), "{nowhere}");
}

#[tokio::test]
async fn a_server_that_is_another_programs_a_later_versions_or_not_there_is_refused() {
    let Some(home) = Home::postgres() else { return };
    let address = home.address.clone().unwrap();
    let connect = async |address: &str| {
        let options = Options { patience: Duration::ZERO, ..Options::default() };
        Store::connect(address, options).await.unwrap_err()
    };
    super::home::at_server(&address, "CREATE TABLE things (id BIGINT)");
    assert!(matches!(connect(&address).await, StoreError::Foreign { .. }));
    super::home::at_server(&address, "DROP TABLE things");
    Store::connect(&address, Options::default()).await.unwrap();
    super::home::at_server(&address, "UPDATE leasehold_schema SET version = 99");
    assert!(matches!(connect(&address).await, StoreError::Newer { found: 99, .. }));
    let nobody = connect("host=127.0.0.1 port=1 user=nobody password=hush").await.to_string();
    assert!(nobody.contains("check that it runs") && !nobody.contains("hush"), "{nobody}");
    let unreadable = connect("postgres://user:hush@[").await.to_string();
    assert!(unreadable.contains("postgres://USER@HOST:PORT/DATABASE") && !unreadable.contains("hush"));
}

async fn many_that_make_the_tables_at_once_all_open_them(home: Home) {
    let opening = || async { home.store().await };
    tokio::join!(opening(), opening(), opening(), opening(), opening(), opening());
}

async fn a_locked_store_refuses_an_acquisition_before_the_provider_is_asked(home: Home) {
    let leases = home.leases_over(impatient(&home)).await;
    let _lock = home.lock();
    let refused = leases.acquire(wanted()).await.unwrap_err();
    assert!(matches!(refused, LeaseError::Store(StoreError::Locked { .. })), "{refused}");
    assert_eq!(home.fake.calls(), [""; 0]);
}

async fn a_full_disk_refuses_an_acquisition_before_the_provider_is_asked(home: Home) {
    let leases = home.leases().await;
    home.fill(leases.store()).await;
    let config = format!("{{\"much\":\"{}\"}}", "x".repeat(60_000));
    let refused = leases.acquire(Wanted { config, ..wanted() }).await.unwrap_err();
    assert!(matches!(refused, LeaseError::Store(StoreError::Full { .. })), "{refused}");
    assert!(refused.to_string().contains("make room"), "{refused}");
    assert_eq!(home.fake.calls(), [""; 0]);
    home.make_room(leases.store()).await;
    leases.acquire(wanted()).await.unwrap();
}

async fn what_was_made_while_the_disk_got_full_is_put_aside_ended_and_taken_in(home: Home) {
    let leases = home.leases().await;
    for proved in [true, false] {
        home.fake.script([Act::Late]);
        let acquiring = tokio::spawn({
            let leases = leases.clone();
            async move { leases.acquire(wanted()).await }
        });
        home.fake.waits.notified().await;
        home.fill(leases.store()).await;
        home.fake.back().metadata = Some("m".repeat(60_000));
        if !proved {
            home.fake.script([Act::Fails]);
        }
        home.fake.go_on.notify_one();
        let refused = acquiring.await.unwrap().unwrap_err();
        assert!(matches!(refused, LeaseError::Store(StoreError::Full { .. })), "{refused}");
        leases.idle().await;
        assert_eq!(home.fake.allocations(), usize::from(!proved));
        assert_eq!(std::fs::read_dir(home.spool()).unwrap().count(), 1);
        home.make_room(leases.store()).await;
        // Another host of this machine leaves it to the living one that put it aside.
        assert_eq!(home.leases().await.reconcile().await.unwrap().taken_in, []);
        let report = leases.reconcile().await.unwrap();
        assert_eq!((report.taken_in.len(), home.fake.allocations()), (1, 0));
        let lease = leases.get(&report.taken_in[0]).await.unwrap();
        assert!(lease.state.is_final(), "{lease:?}");
        assert_eq!(lease.allocation.unwrap().id, allocation(lease.id.as_str()).id);
        assert_eq!(std::fs::read_dir(home.spool()).unwrap().count(), 0);
    }
}

async fn what_can_be_neither_written_nor_put_aside_is_ended_by_the_next_reconcile_of_the_same_process(
    home: Home,
) {
    let leases = home.leases_over(impatient(&home)).await;
    // A file where the folder should be.
    std::fs::write(home.spool(), "in the way").unwrap();
    home.fake.script([Act::Late, Act::Fails]);
    let acquiring = tokio::spawn({
        let leases = leases.clone();
        async move { leases.acquire(wanted()).await }
    });
    home.fake.waits.notified().await;
    let lock = home.lock();
    home.fake.go_on.notify_one();
    let refused = acquiring.await.unwrap().unwrap_err();
    assert!(matches!(refused, LeaseError::Store(StoreError::Locked { .. })), "{refused}");
    leases.idle().await;
    assert_eq!(home.fake.allocations(), 1);
    drop(lock);
    std::fs::remove_file(home.spool()).unwrap();
    let report = leases.reconcile().await.unwrap();
    assert_eq!((report.taken_in.len(), report.settled.len(), home.fake.allocations()), (1, 1, 0));
}

async fn a_list_holds_what_passes_the_filter(home: Home) {
    let leases = home.leases().await;
    let first = leases.acquire(wanted()).await.unwrap().lease;
    home.clock.advance(Duration::from_millis(1));
    let second = leases.acquire(Wanted { run: Some("other".into()), ..wanted() }).await.unwrap().lease;
    leases.destroy(&first.id, "test").await.unwrap();
    let ids =
        async |filter| leases.list(filter).await.unwrap().into_iter().map(|it| it.id).collect::<Vec<_>>();
    let all = Filter::default;
    assert_eq!(ids(all()).await, [first.id.clone(), second.id.clone()]);
    assert_eq!(ids(Filter { limit: Some(1), ..all() }).await, std::slice::from_ref(&first.id));
    assert_eq!(
        ids(Filter { states: vec![crate::State::Active], ..all() }).await,
        std::slice::from_ref(&second.id)
    );
    assert_eq!(
        ids(Filter { run: Some("other".into()), digest: Some("d1".into()), ..all() }).await,
        [second.id]
    );
    assert_eq!(ids(Filter { tenant: Some("other".into()), ..all() }).await, []);
    assert_eq!(ids(Filter { environment: Some("other".into()), ..all() }).await, []);
    assert_eq!(ids(Filter { workspace: Some("ws".into()), ..all() }).await, []);
    assert_eq!(ids(Filter { stuck: true, ..all() }).await, []);
}

#[tokio::test]
async fn a_server_that_is_restarted_in_mid_flight_loses_nothing_that_was_written_and_repeats_nothing() {
    let Some(server) = Server::start() else { return };
    let home = Home::on(&server);
    let leases = home.leases().await;
    let working = tokio::spawn({
        let leases = leases.clone();
        async move {
            let mut ended = Vec::new();
            for _ in 0..40 {
                let lease = leases.acquire(wanted()).await.unwrap().lease;
                ended.push(leases.release(&lease.id, crate::Releasing::default()).await.unwrap().lease.id);
            }
            ended
        }
    });
    for _ in 0..2 {
        while leases.list(Filter::default()).await.unwrap().len() < 3 {
            tokio::task::yield_now().await;
        }
        server.tell("restart");
    }
    let ended = working.await.unwrap();
    let stored = leases.list(Filter::default()).await.unwrap();
    assert_eq!(stored.len(), ended.len());
    for lease in stored {
        let events = leases.history(&lease.id).await.unwrap().len();
        assert_eq!((lease.state, events), (crate::State::Released, 4), "{lease:?}");
    }
    assert_eq!(home.fake.allocations(), 0);
}

async fn a_providers_state_is_changed_only_over_the_version_it_saw(home: Home) {
    let store = home.store().await;
    let of = |tenant: &str| StateKey { provider: "p".into(), environment: "e".into(), tenant: tenant.into() };
    let (mine, theirs) = (of("a"), of("b"));
    assert_eq!(store.state_get(&mine, "k").await.unwrap(), None);
    assert_eq!(store.state_set(&mine, "k", vec![1], Some(1), None).await.unwrap(), Err(None));
    assert_eq!(store.state_set(&mine, "k", vec![1], Some(0), None).await.unwrap(), Ok(1));
    assert_eq!(store.state_set(&mine, "k", vec![2], Some(0), None).await.unwrap(), Err(Some(1)));
    let ends = Some(super::home::NOW + 1000);
    assert_eq!(store.state_set(&mine, "k", vec![2, 3], Some(1), ends).await.unwrap(), Ok(2));
    assert_eq!(store.state_get(&theirs, "k").await.unwrap(), None);
    assert_eq!(
        store.state_get(&mine, "k").await.unwrap(),
        Some(StateValue { value: vec![2, 3], version: 2 })
    );
    assert_eq!(store.state_size(&mine).await.unwrap(), (1, 3));
    assert_eq!(store.state_remove(&mine, "k", Some(1)).await.unwrap(), Err(Some(2)));
    home.clock.advance(Duration::from_secs(1));
    assert_eq!(store.state_get(&mine, "k").await.unwrap(), None);
    assert_eq!(store.state_size(&mine).await.unwrap(), (0, 0));
    assert_eq!(store.state_remove(&mine, "k", None).await.unwrap(), Ok(false));
    assert_eq!(store.state_set(&mine, "k", vec![4], Some(0), None).await.unwrap(), Ok(3));
    assert_eq!(store.state_remove(&mine, "k", Some(3)).await.unwrap(), Ok(true));
}

async fn what_providers_did_is_listed_newest_first(home: Home) {
    let store = home.store().await;
    let entry = |provider: &str, what: &str| Audit {
        at_ms: 0,
        kind: "http".into(),
        provider: provider.into(),
        environment: Some("e".into()),
        tenant: None,
        lease: None,
        what: what.into(),
        verdict: "allowed".into(),
        bytes: Some(7),
    };
    store.audit(vec![entry("p", "first"), entry("q", "other"), entry("p", "second")]).await.unwrap();
    let filter =
        AuditFilter { provider: Some("p".into()), environment: Some("e".into()), ..AuditFilter::default() };
    let what = store.audited(filter.clone()).await.unwrap();
    assert_eq!(what.iter().map(|it| it.what.as_str()).collect::<Vec<_>>(), ["second", "first"]);
    assert_eq!(what[0].at_ms, super::home::NOW);
    assert_eq!(store.audited(AuditFilter { limit: Some(1), ..filter }).await.unwrap().len(), 1);
}
