//! Where a test's leases live: each test runs over both databases, with a clock it moves by hand.

use super::fake::{Fake, Only};
use super::server::Server;
use crate::store::Durability;
use crate::{
    HandClock, Leases, Options, Owner, Pins, Policy, Providers, Scope, Settings, Store, Times, Wanted,
};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tempfile::TempDir;

/// Runs each of these tests over SQLite and over PostgreSQL.
macro_rules! on_both {
    ($($test:ident),* $(,)?) => {
        mod sqlite {
            $(#[tokio::test]
            async fn $test() {
                super::$test(crate::tests::home::Home::sqlite()).await;
            })*
        }
        mod postgres {
            $(#[tokio::test]
            async fn $test() {
                if let Some(home) = crate::tests::home::Home::postgres() {
                    super::$test(home).await;
                }
            })*
        }
    };
}
pub(super) use on_both;

/// A moment in November 2026.
pub(super) const NOW: u64 = 1_796_000_000_000;

/// A database of one test, its clock, and its provider.
pub(super) struct Home {
    pub(super) folder: TempDir,
    /// Where the server is, when there is one.
    pub(super) address: Option<String>,
    pub(super) clock: HandClock,
    pub(super) fake: Arc<Fake>,
}

impl Home {
    pub(super) fn sqlite() -> Home {
        Home {
            folder: tempfile::tempdir().unwrap(),
            address: None,
            clock: HandClock::at(NOW),
            fake: Fake::new([]),
        }
    }

    pub(super) fn postgres() -> Option<Home> {
        Server::shared().map(Home::on)
    }

    pub(super) fn on(server: &Server) -> Home {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let schema = format!("t{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        Home { address: Some(server.address(&schema)), ..Home::sqlite() }
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn options(&self) -> Options {
        Options { clock: Arc::new(self.clock.clone()), ..Options::default() }
    }

    /// The store, opened once more.
    pub(super) async fn store(&self) -> Store {
        open(self.path(), self.address.as_deref(), self.options()).await
    }

    /// A host that lives, with the scripted provider.
    pub(super) async fn leases(&self) -> Leases {
        self.host(Owner::current().unwrap(), self.settings()).await
    }

    /// The same over a store that is opened like this.
    pub(super) async fn leases_over(&self, options: Options) -> Leases {
        let store = open(self.path(), self.address.as_deref(), options).await;
        let providers: Arc<dyn Providers> = Arc::new(Only(self.fake.clone()));
        Leases::open(store, providers, self.settings()).await.unwrap()
    }

    /// A host that has ended.
    pub(super) async fn dead(&self) -> Leases {
        let me = Owner::current().unwrap();
        self.host(Owner { started: me.started.wrapping_sub(1), ..me }, self.settings()).await
    }

    pub(super) async fn host(&self, owner: Owner, settings: Settings) -> Leases {
        let providers: Arc<dyn Providers> = Arc::new(Only(self.fake.clone()));
        Leases::owned_by(owner, self.store().await, providers, settings).await.unwrap()
    }

    /// Keeps everybody else from writing until it is dropped.
    pub(super) fn lock(&self) -> Lock {
        Lock::take(self.path(), self.address.as_deref())
    }

    /// Makes the database refuse what needs room, as one on a full disk does.
    pub(super) async fn fill(&self, store: &Store) {
        match &self.address {
            None => pages(store, "1").await,
            Some(address) => at_server(
                address,
                "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS \
                 'BEGIN RAISE EXCEPTION USING ERRCODE = ''disk_full''; END'; \
                 CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE ON leases EXECUTE FUNCTION full_disk();",
            ),
        }
    }

    /// Makes room again.
    pub(super) async fn make_room(&self, store: &Store) {
        match &self.address {
            None => pages(store, "1000000").await,
            Some(address) => at_server(address, "DROP FUNCTION full_disk CASCADE"),
        }
    }

    pub(super) fn settings(&self) -> Settings {
        Settings { times: Times::default(), spool: Some(self.spool()) }
    }

    pub(super) fn spool(&self) -> PathBuf {
        self.path().join("spool")
    }
}

/// Keeps everybody else from writing, as another process would that hangs.
pub(super) enum Lock {
    File { _open: rusqlite::Connection },
    Server { _open: mpsc::Sender<()> },
}

impl Lock {
    pub(super) fn take(folder: &Path, address: Option<&str>) -> Lock {
        let Some(address) = address.map(str::to_owned) else {
            let open = rusqlite::Connection::open(folder.join("leases.db")).unwrap();
            open.execute_batch("BEGIN IMMEDIATE").unwrap();
            return Lock::File { _open: open };
        };
        let (open, closed) = mpsc::channel();
        let (locked, is_locked) = mpsc::channel();
        // The client has a runtime of its own, which must not be started within the test's.
        std::thread::spawn(move || {
            let mut client = postgres::Client::connect(&address, postgres::NoTls).unwrap();
            client.batch_execute("BEGIN; LOCK TABLE leases IN EXCLUSIVE MODE").unwrap();
            locked.send(()).unwrap();
            closed.recv().ok();
        });
        is_locked.recv().unwrap();
        Lock::Server { _open: open }
    }
}

async fn pages(store: &Store, most: &'static str) {
    let sql = format!("PRAGMA max_page_count = {most}");
    store
        .write("a test", Durability::Process, move |on| {
            on.query(&sql, &[])?;
            Ok(())
        })
        .await
        .unwrap();
}

/// The client has a runtime of its own, which must not be started within the test's.
pub(super) fn at_server(address: &str, sql: &str) {
    let run = || postgres::Client::connect(address, postgres::NoTls).unwrap().batch_execute(sql).unwrap();
    std::thread::scope(|scope| scope.spawn(run).join()).unwrap();
}

/// The store of a test, by its file or its address.
pub(super) async fn open(folder: &Path, address: Option<&str>, options: Options) -> Store {
    match address {
        Some(address) => Store::connect(address, options).await.unwrap(),
        None => Store::open(folder.join("leases.db"), options).await.unwrap(),
    }
}

/// What a test asks for.
pub(super) fn wanted() -> Wanted {
    let text = |text: &str| text.to_owned();
    let pins = Pins {
        provider: text("acme.fake"),
        plugin: text("acme.fake-1"),
        driver: text("fake"),
        digest: text("d1"),
    };
    let lifetime = Duration::from_secs(3600);
    Wanted { run: Some(text("run")), lifetime, ..Wanted::new("env", pins, "tenant") }
}

/// What is kept between runs.
pub(super) fn kept() -> Wanted {
    let scope = Scope { workspace: "ws".into(), agent: "agent".into(), adapter: None };
    Wanted { policy: Policy::Reuse, reusable: true, scope: Some(scope), ..wanted() }
}
