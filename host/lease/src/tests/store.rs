//! The file: who may read it, who else has written it, and what happens when it is locked.

use super::fake::{Act, Fake, only};
use super::states::{change, intend};
use super::{leases, store, wanted};
use crate::fault::Step;
use crate::{Filter, LeaseError, Options, Owner, Retention, State, Store, StoreError};
use rusqlite::Connection;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

fn impatient() -> Options {
    Options { busy_timeout: Duration::from_millis(1) }
}

#[tokio::test]
async fn the_files_are_readable_by_their_owner_alone() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path().join("leases.db"), Options::default()).await.unwrap();
    intend(&store, &Owner::current().unwrap()).await;
    let modes = std::fs::read_dir(folder.path()).unwrap().map(|file| {
        let file = file.unwrap();
        (file.file_name().into_string().unwrap(), file.metadata().unwrap().permissions().mode() & 0o777)
    });
    let mut modes = modes.collect::<Vec<_>>();
    modes.sort();
    let expected = ["leases.db", "leases.db-shm", "leases.db-wal"].map(|name| (name.to_owned(), 0o600));
    assert_eq!(modes, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_that_make_the_file_at_once_all_open_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("leases.db");
    let tasks = (0..8).map(|_| tokio::spawn(Store::open(path.clone(), Options::default())));
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn what_is_not_a_lease_store_of_a_known_version_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let open =
        async |name: &str| Store::open(folder.path().join(name), Options::default()).await.unwrap_err();
    std::fs::write(folder.path().join("text"), "no database, and longer than a header would be".repeat(9))
        .unwrap();
    assert!(matches!(open("text").await, StoreError::Foreign { .. }));
    let other = Connection::open(folder.path().join("other")).unwrap();
    other.execute_batch("CREATE TABLE things (id)").unwrap();
    assert!(matches!(open("other").await, StoreError::Foreign { .. }));
    Store::open(folder.path().join("newer"), Options::default()).await.unwrap();
    Connection::open(folder.path().join("newer")).unwrap().pragma_update(None, "user_version", 99).unwrap();
    assert!(matches!(open("newer").await, StoreError::Newer { found: 99, .. }));
    let nowhere = open("no/such/folder").await;
    assert!(nowhere.to_string().contains("check that its folder exists"), "{nowhere}");
}

#[tokio::test]
async fn a_locked_store_refuses_an_acquisition_before_the_provider_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("leases.db");
    let leases = leases(&Store::open(&path, impatient()).await.unwrap());
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let fake = Fake::new([]);
    let refused = leases.acquire(fake.clone(), wanted(Retention::Ephemeral)).await.unwrap_err();
    assert!(matches!(refused, LeaseError::Store(StoreError::Locked { .. })), "{refused}");
    assert_eq!(fake.calls(), [""; 0]);
}

#[tokio::test]
async fn what_was_made_while_the_store_got_locked_is_ended_by_the_next_reconcile_of_the_same_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("leases.db");
    let leases = leases(&Store::open(&path, impatient()).await.unwrap());
    let fake = Fake::new([Act::Late]);
    let acquiring = tokio::spawn({
        let (leases, fake) = (leases.clone(), fake.clone());
        async move { leases.acquire(fake, wanted(Retention::Ephemeral)).await }
    });
    fake.waits.notified().await;
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    fake.go_on.notify_one();
    let refused = acquiring.await.unwrap().unwrap_err();
    assert!(matches!(refused, LeaseError::Store(StoreError::Locked { .. })), "{refused}");
    leases.idle().await;
    assert_eq!(fake.allocations(), 1);
    other.execute_batch("ROLLBACK").unwrap();
    let report = leases.reconcile(only(&fake)).await.unwrap();
    assert_eq!((report.settled.len(), fake.allocations()), (1, 0));
}

#[tokio::test]
async fn a_list_holds_what_passes_the_filter_and_says_what_happened() {
    let store = store();
    let me = Owner::current().unwrap();
    let (first, second) = (intend(&store, &me).await, intend(&store, &me).await);
    store.change(Step::Observe, change(&second, State::Acquiring, State::Active)).await.unwrap();
    let ids = async |filter| {
        store.list(filter).await.unwrap().into_iter().map(|lease| lease.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(Filter::default()).await.len(), 2);
    assert_eq!(ids(Filter { states: vec![State::Active], ..Filter::default() }).await, [second]);
    assert_eq!(
        ids(Filter { states: vec![State::Acquiring], limit: Some(9), ..Filter::default() }).await,
        [first]
    );
    assert_eq!(ids(Filter { tenant: Some("other".into()), ..Filter::default() }).await, []);
    assert_eq!(ids(Filter { attempts: 1, ..Filter::default() }).await, []);
    assert_eq!(ids(Filter { run: Some("run".into()), limit: Some(1), ..Filter::default() }).await.len(), 1);
}
