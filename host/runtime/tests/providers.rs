//! Providers and leases across runtimes, as a host application sees them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use leasehold::contract::capability::Capability;
use leasehold::{
    Change, Environment, Error, For, Grant, LeaseId, Leasehold, ProviderFiles, Refusal, RegistryError,
    Session, State, Streams, Terms,
};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

const GRANTS: [Grant; 2] = [Grant::Time, Grant::Random];

async fn runtime(directory: &TempDir) -> Leasehold {
    Leasehold::builder(directory.path().join("state")).build().await.unwrap()
}

/// A provider's folder, whose driver declares these capabilities.
fn files(directory: &TempDir, component: &str, key: &str, capabilities: &Value) -> ProviderFiles {
    let folder = directory.path().join(key);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("provider.wasm"), leasehold_builder::fixture(component).unwrap()).unwrap();
    let declaration = json!({
        "pluginKey": key, "version": "1", "capabilities": ["environment.drivers.register"],
        "permissions": ["time", "random"],
        "environmentDrivers": [{"driverKey": key, "kind": "sandbox_provider", "displayName": key,
            "configSchema": {"title": key}, "sandboxCapabilities": capabilities}],
    });
    fs::write(folder.join("provider.json"), declaration.to_string()).unwrap();
    ProviderFiles::at(&folder, None).unwrap()
}

/// What a command writes to standard output.
async fn output(session: &Session, argv: &[&str]) -> String {
    let (output, mut lines) = mpsc::channel(64);
    let (error, _) = mpsc::channel(64);
    let streams = Streams { input: Box::new(tokio::io::empty()), output, error };
    let argv = argv.iter().map(|word| (*word).to_owned()).collect();
    let command = leasehold::Command { argv, ..Default::default() };
    session.execute(command, streams, CancellationToken::new()).await.unwrap();
    let mut text = Vec::new();
    while let Some(piece) = lines.recv().await {
        text.extend_from_slice(&piece);
    }
    String::from_utf8(text).unwrap()
}

fn held() -> Terms {
    Terms { held: true, ..Terms::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_is_taken_up_by_another_runtime_with_the_files_it_has() {
    let directory = TempDir::new().unwrap();
    let id = {
        let first = runtime(&directory).await;
        let session = Environment::of("local").acquire_as(&first, For::default(), held()).await.unwrap();
        output(&session, &["sh", "-c", "echo work > file"]).await;
        session.id().clone()
    };
    let second = runtime(&directory).await;
    let session = second.session(&id).await.unwrap();
    assert_eq!(output(&session, &["cat", "file"]).await, "work\n");
    let out = directory.path().join("out");
    fs::create_dir(&out).unwrap();
    session.export(&out).await.unwrap();
    assert_eq!(fs::read_to_string(out.join("file")).unwrap(), "work\n");
    session.release().await.unwrap();
    assert!(matches!(second.session(&id).await, Err(Error::NotInUse { state: State::Released, .. })));
    let nobody = LeaseId::parse("lh-aaaaaaaaaaaaaaaaaaaaaaaaaa").unwrap();
    assert!(matches!(second.session(&nobody).await, Err(Error::Store(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_runtime_installs_another_of_the_same_directory_leases_from_at_once() {
    let directory = TempDir::new().unwrap();
    let (one, other) = (runtime(&directory).await, runtime(&directory).await);
    let refused = Environment::of("example").acquire(&other, For::default()).await.unwrap_err();
    let Error::Registry(RegistryError::Refused(refusal)) = refused else { unreachable!("{refused}") };
    assert_eq!(refusal, Refusal::NotInstalled { driver: "example".into(), known: vec!["local".into()] });
    let files = files(&directory, "full", "example", &json!({}));
    assert!(matches!(one.install(files, GRANTS).await, Ok(Change::Installed(_))));
    let session = Environment::of("example").acquire(&other, For::default()).await.unwrap();
    assert_eq!(output(&session, &["echo", "hello"]).await, "hello\n");
    // Taken out of use by one, it is out of use for the other, and its lease still ends.
    one.set_ready("example", false).await.unwrap();
    let refused = Environment::of("example").acquire(&other, For::default()).await.unwrap_err();
    assert!(matches!(refused, Error::Registry(RegistryError::Refused(Refusal::NotReady { .. }))));
    session.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_acquisition_that_nobody_waits_for_leaves_nothing() {
    let directory = TempDir::new().unwrap();
    let runtime = runtime(&directory).await;
    for polls in 0..8 {
        let environment = Environment::of("local");
        let acquiring = environment.acquire(&runtime, For::default());
        tokio::pin!(acquiring);
        // Dropped at another await each time, the loading of its component included.
        for _ in 0..polls {
            let waited = tokio::time::timeout(std::time::Duration::from_micros(200), &mut acquiring).await;
            if let Ok(session) = waited {
                session.unwrap().release().await.unwrap();
                break;
            }
        }
    }
    runtime.idle().await;
    let left = runtime.leases().list(leasehold::Filter::default()).await.unwrap();
    assert!(left.iter().all(|lease| lease.state.is_final()), "{left:?}");
    assert_eq!(fs::read_dir(directory.path().join("state/jails")).unwrap().count(), 0);
    Environment::of("local").acquire(&runtime, For::default()).await.unwrap().release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn many_acquisitions_at_once_are_all_served() {
    let directory = TempDir::new().unwrap();
    let runtime = runtime(&directory).await;
    runtime.install(files(&directory, "full", "example", &json!({})), GRANTS).await.unwrap();
    let tasks = (0..16).map(|_| {
        let runtime = runtime.clone();
        tokio::spawn(async move {
            let session = Environment::of("example").acquire(&runtime, For::default()).await.unwrap();
            session.release().await.unwrap();
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_has_what_its_own_provider_declares_whatever_else_has_the_same_driver() {
    let directory = TempDir::new().unwrap();
    let runtime = runtime(&directory).await;
    let closed = json!({"nativeSyncIn": false, "nativeSyncOut": false, "persistentProcessSessions": false});
    runtime.install(files(&directory, "full", "closed", &closed), GRANTS).await.unwrap();
    runtime.install(files(&directory, "full", "open", &json!({})), GRANTS).await.unwrap();
    let capabilities = [
        Capability::NativeSyncIn,
        Capability::NativeSyncOut,
        Capability::PersistentProcessSessions,
        Capability::ReusableLeases,
    ];
    for (provider, expected) in [("closed", [false; 4]), ("open", [true, true, true, false])] {
        let environment = Environment::of(provider);
        let session = environment.acquire_as(&runtime, For::default(), held()).await.unwrap();
        let found = capabilities.map(|capability| session.capabilities().has(capability));
        assert_eq!(found, expected, "{provider}");
        // Removed, nobody can say any more what it declares, so a lease that is taken up has nothing.
        runtime.remove(provider).await.unwrap();
        let again = runtime.session(session.id()).await.unwrap();
        assert!(again.capabilities().iter().all(|(_, found)| !found.effective()));
        again.release().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn selectors_see_what_can_be_leased_from_with_its_schema() {
    let directory = TempDir::new().unwrap();
    let runtime = runtime(&directory).await;
    let reusable = json!({"reusableLeases": true});
    runtime.install(files(&directory, "full", "kept", &reusable), GRANTS).await.unwrap();
    runtime.install(files(&directory, "minimal", "bare", &reusable), []).await.unwrap();
    // A start that takes longer than a listing waits is in a later one.
    let published = loop {
        let published = runtime.published().await.unwrap();
        if published.len() == 3 {
            break published;
        }
    };
    let found: Vec<_> = published.iter().map(|it| (it.plugin_key.as_str(), it.reusable_leases)).collect();
    assert_eq!(found, [("local", true), ("kept", true), ("bare", false)]);
    assert_eq!(runtime.config_schema("kept").await.unwrap().unwrap()["title"], "kept");
    assert_eq!(runtime.config_schema("nobody").await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_that_a_lease_pins_and_is_not_here_is_a_clear_refusal() {
    let directory = TempDir::new().unwrap();
    let id = {
        let runtime = runtime(&directory).await;
        runtime.install(files(&directory, "full", "example", &json!({})), GRANTS).await.unwrap();
        let environment = Environment::of("example");
        environment.acquire_as(&runtime, For::default(), held()).await.unwrap().id().clone()
    };
    remove_all(&directory.path().join("state/compiled"));
    remove_all(&directory.path().join("state/providers"));
    let runtime = runtime(&directory).await;
    let refused = runtime.session(&id).await.unwrap_err().to_string();
    assert!(refused.contains("is not on this machine") && refused.contains("install `example`"), "{refused}");
    // Installed here again, the lease goes on.
    runtime.install(files(&directory, "full", "example", &json!({})), GRANTS).await.unwrap();
    runtime.session(&id).await.unwrap().release().await.unwrap();
}

fn remove_all(path: &Path) {
    fs::remove_dir_all(path).unwrap();
}

/// A host application may use all of it from any thread.
#[test]
fn everything_can_be_sent_to_another_thread() {
    fn sent<T: Send>(_: &T) {}
    fn shared<T: Send + Sync + 'static>() {}
    shared::<Leasehold>();
    shared::<Session>();
    shared::<Environment>();
    let environment = Environment::of("local");
    let acquiring = async |runtime: &Leasehold| environment.acquire(runtime, For::default()).await;
    let whole = async move {
        let runtime = Leasehold::builder("/nowhere").build().await?;
        let session = acquiring(&runtime).await?;
        runtime.published().await?;
        runtime.reconcile().await?;
        session.release().await
    };
    sent(&whole);
}
