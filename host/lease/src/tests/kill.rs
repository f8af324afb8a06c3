//! Processes killed before and after every write to the store and every call of the provider, over both
//! databases, and one reconcile by another host after each.

use super::files::Files;
use super::home::{Home, Lock, NOW, kept, open, wanted};
use crate::fault::{Step, VARIABLE};
use crate::{
    HandClock, LeaseError, Leases, Options, Policy, Releasing, Settings, State, Store, StoreError, Times,
    Wanted,
};
use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// The folder of the process to be killed.
const FOLDER: &str = "LEASEHOLD_TEST_FOLDER";
/// Where its server is, when it has one.
const ADDRESS: &str = "LEASEHOLD_TEST_ADDRESS";
/// What it does.
const SCENARIO: &str = "LEASEHOLD_TEST_SCENARIO";

/// What a process does, and the steps it takes in doing it.
const SCENARIOS: &[(&str, &[Step])] = {
    use Step::*;
    &[
        ("use", &[Intent, CallAcquire, Activate, Preserve, BeginRelease, CallRelease, EndRelease]),
        ("fail", &[CallAcquire, Abandon, CallFind, Observe, CallDestroy, Settle]),
        ("late", &[CallAcquire, Abandon, CallDestroy, Settle]),
        ("same", &[Reject]),
        ("again", &[Activate, Preserve, CallRelease, EndRelease, BeginResume, CallResume, EndResume]),
        ("lost", &[BeginResume, CallResume, LeaveResume, CallStop, PutOff]),
        ("renew", &[CallResume, Renew]),
        ("stop", &[StopIntent, CallStop, Settle]),
        ("destroy", &[BeginDestroy, CallDestroy, Settle]),
        ("reconcile", &[CallRelease, LeaveRelease, Claim, PutOff, CallDestroy, Settle]),
        ("put off", &[LeaveRelease, Defer]),
        ("spool", &[Spool, CallDestroy, TakeIn, Settle]),
    ]
};

const DONE: Releasing = Releasing { failed: false, cancel_active_work: true };

/// A host with this provider.
async fn host(store: &Store, folder: &Path, files: &Files) -> Leases {
    let settings = Settings { times: Times::default(), spool: Some(folder.join("spool")) };
    Leases::open(store.clone(), Arc::new(files.clone()), settings).await.unwrap()
}

fn options(clock: &HandClock) -> Options {
    let busy_timeout = Duration::from_millis(if std::env::var(SCENARIO).is_ok() { 50 } else { 5000 });
    Options { clock: Arc::new(clock.clone()), busy_timeout, ..Options::default() }
}

#[tokio::test]
async fn a_process_that_is_killed_by_its_parent() {
    let (Some(folder), Ok(scenario)) = (std::env::var_os(FOLDER), std::env::var(SCENARIO)) else { return };
    let (folder, address) = (Path::new(&folder), std::env::var(ADDRESS).ok());
    let clock = HandClock::at(NOW);
    let store = open(folder, address.as_deref(), options(&clock)).await;
    let files = Files::new(folder.join("allocations"));
    let failing = Files { keeps: true, ..files.clone() };
    let leases = host(&store, folder, &files).await;
    match scenario.as_str() {
        "use" => {
            let lease = leases.acquire(wanted()).await.unwrap().lease;
            leases.set_unexported(&lease.id, true).await.unwrap();
            leases.release(&lease.id, DONE).await.unwrap();
        }
        "fail" => {
            let leases = host(&store, folder, &Files { fails: true, ..files }).await;
            leases.acquire(wanted()).await.unwrap_err();
            leases.idle().await;
        }
        "late" => {
            let gate = Arc::new(Semaphore::new(0));
            let leases = host(&store, folder, &Files { gate: gate.clone(), ..files }).await;
            let late = leases.acquire(Wanted { budget: Some(Duration::ZERO), ..wanted() }).await;
            assert!(matches!(late, Err(LeaseError::Deadline { .. })), "{late:?}");
            gate.add_permits(1);
            leases.idle().await;
        }
        "same" => {
            let fake = super::fake::Fake::new([]);
            let leases = Leases::open(store, Arc::new(super::fake::Only(fake.clone())), Settings::default())
                .await
                .unwrap();
            let first = leases.acquire(wanted()).await.unwrap().lease;
            fake.script([super::fake::Act::Gives(first.allocation.unwrap().id)]);
            leases.acquire(wanted()).await.unwrap_err();
        }
        "again" => {
            for _ in 0..2 {
                let lease = leases.acquire(kept()).await.unwrap().lease;
                leases.set_unexported(&lease.id, true).await.unwrap();
                leases.release(&lease.id, DONE).await.unwrap();
            }
        }
        "lost" => {
            let lease = leases.acquire(kept()).await.unwrap().lease;
            leases.set_unexported(&lease.id, true).await.unwrap();
            leases.release(&lease.id, DONE).await.unwrap();
            let lost = host(&store, folder, &failing).await.acquire(kept()).await;
            assert!(matches!(lost, Err(LeaseError::Preserved { .. })), "{lost:?}");
        }
        "renew" => {
            let leases = host(&store, folder, &Files { ends_ms: Some(NOW + 30_000), ..files }).await;
            let lease = leases.acquire(wanted()).await.unwrap().lease;
            let renewed = async {
                clock.pausing(|pause| pause == Duration::from_secs(20)).await;
                clock.advance(Duration::from_secs(20));
                while leases.history(&lease.id).await.unwrap().len() < 3 {
                    tokio::task::yield_now().await;
                }
            };
            leases.in_use(&lease, renewed).await.unwrap();
        }
        "stop" => {
            let lease = leases.acquire(Wanted { preserve: true, ..wanted() }).await.unwrap().lease;
            leases.set_unexported(&lease.id, true).await.unwrap();
            leases.stop(&lease.id, "test").await.unwrap();
        }
        "destroy" => {
            let lease = leases.acquire(wanted()).await.unwrap().lease;
            leases.destroy(&lease.id, "test").await.unwrap();
        }
        "reconcile" => {
            let refusing = host(&store, folder, &failing).await;
            let lease = refusing.acquire(wanted()).await.unwrap().lease;
            refusing.release(&lease.id, DONE).await.unwrap_err();
            refusing.reconcile().await.unwrap();
            leases.reconcile().await.unwrap();
        }
        "put off" => {
            let lease = host(&store, folder, &failing).await.acquire(wanted()).await.unwrap().lease;
            let absent = host(&store, folder, &Files { unready: true, ..files }).await;
            absent.release(&lease.id, DONE).await.unwrap_err();
            absent.reconcile().await.unwrap();
        }
        _ => {
            let gate = Arc::new(Semaphore::new(0));
            let leases = host(&store, folder, &Files { gate: gate.clone(), ..files.clone() }).await;
            let acquiring = tokio::spawn({
                let leases = leases.clone();
                async move { leases.acquire(wanted()).await }
            });
            while leases.list(crate::Filter::default()).await.unwrap().is_empty() {
                tokio::task::yield_now().await;
            }
            let lock = Lock::take(folder, address.as_deref());
            gate.add_permits(1);
            let refused = acquiring.await.unwrap().unwrap_err();
            assert!(matches!(refused, LeaseError::Store(StoreError::Locked { .. })), "{refused}");
            leases.idle().await;
            drop(lock);
            leases.reconcile().await.unwrap();
        }
    }
    leases.idle().await;
}

/// Runs a scenario in a process of its own; whether it was killed.
fn run(home: &Home, scenario: &str, point: &str) -> bool {
    std::fs::create_dir(home.path().join("allocations")).unwrap();
    let name = "tests::kill::a_process_that_is_killed_by_its_parent";
    let mut process = Command::new(std::env::current_exe().unwrap());
    process.args([name, "--exact", "--nocapture", "--test-threads=1"]);
    process.env(FOLDER, home.path()).env(SCENARIO, scenario).env(VARIABLE, point);
    if let Some(address) = &home.address {
        process.env(ADDRESS, address);
    }
    let ended = process.output().unwrap();
    let killed = ended.status.signal() == Some(9);
    let said = [ended.stdout, ended.stderr].concat();
    assert!(killed || ended.status.success(), "{scenario}, {point}: {}", String::from_utf8_lossy(&said));
    killed
}

/// One reconcile by another host, and then: what exists has a lease that keeps it, what is kept exists, what
/// had to be preserved was, and the history has no gap.
async fn reconcile(home: &Home, scenario: &str, point: &str) {
    let clock = HandClock::at(NOW + 60_000);
    let store = open(home.path(), home.address.as_deref(), options(&clock)).await;
    let files = Files::new(home.path().join("allocations"));
    let leases = host(&store, home.path(), &files).await;
    leases.reconcile().await.unwrap();
    let at = format!("{scenario}, {point}");
    let mut existing = files.names();
    for lease in leases.list(crate::Filter::default()).await.unwrap() {
        let history = leases.history(&lease.id).await.unwrap();
        let mut before = None;
        for event in &history {
            assert_eq!(event.from, before, "{at}");
            before = Some(event.to);
        }
        assert_eq!((before, &lease.owner), (Some(lease.state), &None), "{at}");
        let exists = existing.iter().position(|name| name == lease.id.as_str());
        exists.map(|exists| existing.swap_remove(exists));
        match lease.state {
            State::Retained => assert!(exists.is_some(), "{at}: it is said to be kept: {lease:?}"),
            state => assert!(state.is_final() && exists.is_none(), "{at}: {lease:?}"),
        }
        let worked_in = history.iter().any(|event| event.reason == "it holds work");
        if worked_in && (lease.preserve || lease.policy == Policy::Reuse) {
            assert_eq!(lease.state, State::Retained, "{at}: it had to be preserved: {history:#?}");
        }
    }
    assert_eq!(existing, [""; 0], "{at}: these have no lease");
    assert!(!home.spool().exists() || std::fs::read_dir(home.spool()).unwrap().count() == 0, "{at}");
}

async fn everywhere(home: impl Fn() -> Home) {
    let mut reached = BTreeSet::new();
    for (scenario, steps) in SCENARIOS {
        for point in steps.iter().flat_map(|step| [format!("before {step:?}"), format!("after {step:?}")]) {
            let home = home();
            assert!(run(&home, scenario, &point), "{scenario} never came to {point}");
            reconcile(&home, scenario, &point).await;
            reached.insert(point);
        }
    }
    let missing = Step::ALL.iter().filter(|step| !reached.contains(&format!("after {step:?}")));
    assert_eq!(missing.collect::<Vec<_>>(), [] as [&Step; 0], "no scenario comes to these");
}

#[tokio::test]
async fn a_host_killed_at_any_step_leaves_nothing_after_one_reconcile() {
    everywhere(Home::sqlite).await;
}

#[tokio::test]
async fn what_one_host_on_a_server_is_killed_in_the_middle_of_another_finishes() {
    if super::server::Server::shared().is_some() {
        everywhere(|| Home::postgres().unwrap()).await;
    }
}

#[tokio::test]
async fn a_host_that_nobody_kills_ends_everything_itself() {
    for (scenario, _) in SCENARIOS {
        if ["same", "lost", "put off"].contains(scenario) {
            continue;
        }
        let home = Home::sqlite();
        assert!(!run(&home, scenario, "nowhere"));
        let leases = home.leases().await;
        let left = leases.list(crate::Filter::default()).await.unwrap();
        let ended = |lease: &crate::Lease| lease.state.is_final() || lease.state == State::Retained;
        assert!(left.iter().all(ended) || *scenario == "renew", "{scenario}: {left:?}");
    }
}
