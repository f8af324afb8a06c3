//! What the store and the life cycle cost, over a provider that does nothing.
//!
//! `cargo bench -p leasehold-lease`, or with `--quick` a tenth of it. Prints a table; asserts nothing, as a
//! busy machine is no fault.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a program for people, which stops where it fails"
)]

use leasehold_lease::{
    AcquireFailure, AcquireRequest, Answer, Context, DestroyFailure, DestroyTarget, Disposition, Fault,
    Filter, Finding, Leases, Offers, Options, Pins, Provider, ProviderLease, Providers, Receipt,
    ReleaseRequest, Releasing, Resolving, ResumeRequest, Settings, State, StopFailure, Store, Wanted,
};
use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Answers at once, and refuses to release when it is told to.
#[derive(Debug, Default)]
struct Nothing {
    refuses: AtomicBool,
}

fn receipt(lease_id: String, state: Disposition) -> Receipt {
    Receipt { lease_id, state }
}

fn answer<T: Send + 'static>(answer: T) -> Answer<'static, T> {
    Box::pin(ready(answer.into()))
}

impl Provider for Nothing {
    fn offers(&self) -> Offers {
        Offers { find: true, resume: true, release: true, destroy: true, stop: true, network: false }
    }

    fn acquire(&self, _: Context, it: AcquireRequest) -> Answer<'_, Result<ProviderLease, AcquireFailure>> {
        answer(Ok(ProviderLease { id: it.creation_name, metadata: None, expires_at_ms: None }))
    }

    fn find(&self, _: Context, _: String) -> Answer<'_, Result<Finding, Fault>> {
        answer(Ok(Finding::Absent))
    }

    fn resume(&self, _: Context, it: ResumeRequest) -> Answer<'_, Result<ProviderLease, Fault>> {
        answer(Ok(it.lease))
    }

    fn release(&self, _: Context, it: ReleaseRequest) -> Answer<'_, Result<Receipt, Fault>> {
        answer(match self.refuses.load(Ordering::Relaxed) {
            true => Err(Fault::Denied("as told".into())),
            false => Ok(receipt(it.lease.id, Disposition::Destroyed)),
        })
    }

    fn destroy(&self, _: Context, it: DestroyTarget) -> Answer<'_, Result<Receipt, DestroyFailure>> {
        let id = match it {
            DestroyTarget::Lease(lease) => lease.id,
            DestroyTarget::Abandoned(record) => record.observed_id.unwrap_or_default(),
        };
        answer(Ok(receipt(id, Disposition::Destroyed)))
    }

    fn stop(&self, _: Context, it: ProviderLease) -> Answer<'_, Result<Receipt, StopFailure>> {
        answer(Ok(receipt(it.id, Disposition::Stopped)))
    }
}

struct Only(Arc<Nothing>);

impl Providers for Only {
    fn resolve<'a>(&'a self, _: &'a Pins) -> Resolving<'a> {
        let provider: Arc<dyn Provider> = self.0.clone();
        Box::pin(ready(Ok(provider)))
    }
}

fn wanted() -> Wanted {
    let text = |text: &str| text.to_owned();
    let pins =
        Pins { provider: text("acme"), plugin: text("acme-1"), driver: text("acme"), digest: text("d") };
    Wanted { run: Some(text("run")), ..Wanted::new("env", pins, "tenant") }
}

/// So many leases acquired, and released where that is asked for, by so many tasks: how many a second.
async fn rate(leases: &Leases, count: usize, tasks: usize, release: bool) -> f64 {
    let began = Instant::now();
    let each = move |leases: Leases| async move {
        for _ in 0..count / tasks {
            let lease = leases.acquire(wanted()).await.unwrap().lease;
            if release {
                leases.release(&lease.id, Releasing::default()).await.unwrap();
            }
        }
    };
    let all = (0..tasks).map(|_| tokio::spawn(each(leases.clone()))).collect::<Vec<_>>();
    for task in all {
        task.await.unwrap();
    }
    count as f64 / began.elapsed().as_secs_f64()
}

/// The middle of the times of this, in milliseconds.
async fn middle<F: Future>(rounds: usize, mut act: impl FnMut() -> F) -> f64 {
    let mut times = Vec::new();
    for _ in 0..rounds {
        let began = Instant::now();
        act().await;
        times.push(began.elapsed());
    }
    in_the_middle(times)
}

fn in_the_middle(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1e3
}

/// Memory of this process that is in the machine's, in MiB.
fn resident() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: f64 = statm.split(' ').nth(1).and_then(|it| it.parse().ok()).unwrap_or_default();
    pages * 4096.0 / f64::from(1 << 20)
}

fn row(what: &str, measured: String, wanted: &str) {
    println!("{what:<58} {measured:>14}   {wanted}");
}

#[tokio::main]
async fn main() {
    let share = if std::env::args().any(|it| it == "--quick") { 10 } else { 1 };
    // On the disk this is built on: a folder in memory would not wait for anything.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let nothing = Arc::new(Nothing::default());
    let store = Store::open(folder.path().join("leases.db"), Options::default()).await.unwrap();
    let providers = Arc::new(Only(nothing.clone()));
    let leases = Leases::open(store, providers, Settings::default()).await.unwrap();

    for tasks in [1, 8, 64] {
        let rate = rate(&leases, 6_400 / share, tasks, true).await;
        row(&format!("acquire and release, {tasks} at once"), format!("{rate:.0} /s"), "≥ 1000 /s");
    }
    let many = 10_000 / share;
    rate(&leases, many, 50, false).await;
    let active = || Filter { states: vec![State::Active], ..Filter::default() };
    assert_eq!(leases.list(active()).await.unwrap().len(), many);
    let list = middle(20, || leases.list(active())).await;
    row(&format!("list {many} active leases"), format!("{list:.1} ms"), "< 100 ms");
    let sweep = middle(20, || leases.sweep()).await;
    row("sweep beside them, nothing due", format!("{sweep:.1} ms"), "< 20 ms");
    let mut times = Vec::new();
    for _ in 0..20 {
        nothing.refuses.store(true, Ordering::Relaxed);
        for _ in 0..20 {
            let lease = leases.acquire(wanted()).await.unwrap().lease;
            leases.release(&lease.id, Releasing::default()).await.unwrap_err();
        }
        nothing.refuses.store(false, Ordering::Relaxed);
        let began = Instant::now();
        assert_eq!(leases.sweep().await.unwrap().settled.len(), 20);
        times.push(began.elapsed());
    }
    row("sweep a page of 20 that are due", format!("{:.1} ms", in_the_middle(times)), "< 20 ms");

    let mut after = Vec::new();
    for _ in 0..6 {
        for _ in 0..20 {
            leases.list(active()).await.unwrap();
            leases.sweep().await.unwrap();
            rate(&leases, 50, 5, true).await;
        }
        after.push(resident());
    }
    let grown = after[5] - after[2];
    row("memory after 120 rounds of all this", format!("{:.0} MiB", after[5]), "flat");
    row("grown over the last 60 rounds", format!("{grown:+.1} MiB"), "");
}
