//! Processes killed before and after every write to the store and every call of the provider, and one
//! reconcile after each.

use super::files::Files;
use super::wanted;
use crate::fault::{Step, VARIABLE};
use crate::{Budgets, Filter, LeaseError, Leases, Options, Retention, Standing, State, Store};
use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// The folder of the process to be killed.
const FOLDER: &str = "LEASEHOLD_TEST_FOLDER";
/// What it does.
const SCENARIO: &str = "LEASEHOLD_TEST_SCENARIO";

/// What a process does, and the steps it takes in doing it.
const SCENARIOS: &[(&str, &[Step])] = &[
    (
        "use",
        &[
            Step::Intent,
            Step::CallAcquire,
            Step::Activate,
            Step::BeginRelease,
            Step::CallRelease,
            Step::EndRelease,
        ],
    ),
    ("fail", &[Step::Abandon, Step::CallFind, Step::Observe, Step::CallDestroy, Step::Settle]),
    ("late", &[Step::CallAcquire, Step::Abandon, Step::CallDestroy, Step::Settle]),
    ("same", &[Step::Reject]),
    ("reconcile", &[Step::LeaveRelease, Step::PutOff, Step::Claim, Step::CallDestroy, Step::Settle]),
];

async fn open(folder: &Path) -> Leases {
    let store = Store::open(folder.join("leases.db"), Options::default()).await.unwrap();
    Leases::new(store, Budgets::default()).unwrap()
}

#[tokio::test]
async fn a_process_that_is_killed_by_its_parent() {
    let (Some(folder), Ok(scenario)) = (std::env::var_os(FOLDER), std::env::var(SCENARIO)) else { return };
    let folder = Path::new(&folder);
    let leases = open(folder).await;
    let files = Files::new(folder.join("allocations"));
    let wanted = || wanted(Retention::Ephemeral);
    match scenario.as_str() {
        "use" => {
            let provider = Arc::new(files);
            let lease = leases.acquire(provider.clone(), wanted()).await.unwrap();
            leases.release(provider, &lease.id, true).await.unwrap();
        }
        "fail" => {
            leases.acquire(Arc::new(Files { fails: true, ..files }), wanted()).await.unwrap_err();
        }
        "late" => {
            let gate = Arc::new(Semaphore::new(0));
            let provider = Arc::new(Files { gate: gate.clone(), ..files });
            let mut request = wanted();
            request.budget = std::time::Duration::ZERO;
            let late = leases.acquire(provider, request).await.unwrap_err();
            assert!(matches!(late, LeaseError::Deadline { .. }), "{late}");
            gate.add_permits(1);
        }
        "same" => {
            let fake = super::fake::Fake::new([]);
            let first = leases.acquire(fake.clone(), wanted()).await.unwrap();
            fake.back().script.push_back(super::fake::Act::Gives(first.allocation.clone().unwrap().id));
            leases.acquire(fake.clone(), wanted()).await.unwrap_err();
        }
        _ => {
            let refusing = Arc::new(Files { keeps: true, ..files.clone() });
            let lease = leases.acquire(refusing.clone(), wanted()).await.unwrap();
            leases.release(refusing.clone(), &lease.id, true).await.unwrap_err();
            leases.reconcile(refusing).await.unwrap();
            leases.reconcile(Arc::new(files)).await.unwrap();
        }
    }
    leases.idle().await;
}

/// Runs a scenario in a process of its own; whether it was killed.
fn run(folder: &Path, scenario: &str, point: &str) -> bool {
    std::fs::create_dir(folder.join("allocations")).unwrap();
    let name = "tests::kill::a_process_that_is_killed_by_its_parent";
    let mut process = Command::new(std::env::current_exe().unwrap());
    process.args([name, "--exact", "--nocapture", "--test-threads=1"]);
    let ended = process.env(FOLDER, folder).env(SCENARIO, scenario).env(VARIABLE, point).output().unwrap();
    let killed = ended.status.signal() == Some(9);
    assert!(killed || ended.status.success(), "{}", String::from_utf8_lossy(&ended.stdout));
    killed
}

/// One reconcile, and then: no allocation without a lease that lives, and no lease active without an owner.
async fn reconcile(folder: &Path, point: &str) {
    let leases = open(folder).await;
    let files = Arc::new(Files::new(folder.join("allocations")));
    leases.reconcile(files.clone()).await.unwrap();
    let stored = leases.list(Filter::default()).await.unwrap();
    for lease in &stored {
        assert!(lease.state.is_final(), "{point}: {lease:?}");
        assert_eq!(lease.owner, None, "{point}");
        let mut before = None;
        for event in leases.history(&lease.id).await.unwrap() {
            assert_eq!(event.from, before, "{point}");
            before = Some(event.to);
        }
        assert_eq!(before, Some(lease.state), "{point}");
    }
    assert_eq!(files.names(), [""; 0], "{point}");
}

#[tokio::test]
async fn a_host_killed_at_any_step_leaves_nothing_after_one_reconcile() {
    let mut reached = BTreeSet::new();
    for (scenario, steps) in SCENARIOS {
        for point in steps.iter().flat_map(|step| [format!("before {step:?}"), format!("after {step:?}")]) {
            let folder = tempfile::tempdir().unwrap();
            assert!(run(folder.path(), scenario, &point), "{scenario} never came to {point}");
            reconcile(folder.path(), &format!("{scenario}, {point}")).await;
            reached.insert(point);
        }
    }
    assert_eq!(reached.len(), 2 * Step::ALL.len(), "a step has no scenario: {reached:?}");
}

#[tokio::test]
async fn a_host_that_nobody_kills_ends_everything_itself() {
    for (scenario, _) in SCENARIOS.iter().filter(|(scenario, _)| *scenario != "same") {
        let folder = tempfile::tempdir().unwrap();
        assert!(!run(folder.path(), scenario, "nowhere"));
        let leases = open(folder.path()).await;
        let open = leases.list(Filter::default()).await.unwrap();
        assert!(open.iter().all(|lease| lease.state.is_final()), "{open:?}");
        assert_eq!(Files::new(folder.path().join("allocations")).names(), [""; 0]);
    }
}

#[tokio::test]
async fn a_lease_of_a_process_that_still_runs_is_not_taken() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("allocations")).unwrap();
    let files = Arc::new(Files::new(folder.path().join("allocations")));
    let lease = open(folder.path()).await.acquire(files.clone(), wanted(Retention::Ephemeral)).await.unwrap();
    // Another part of this process, as another process would, sees that its owner lives.
    let other = open(folder.path()).await;
    other.reconcile(files.clone()).await.unwrap();
    let seen = other.get(&lease.id).await.unwrap();
    assert_eq!((seen.state, seen.owner.unwrap().standing()), (State::Active, Standing::Alive));
    assert_eq!(files.names(), [lease.id.as_str()]);
}
