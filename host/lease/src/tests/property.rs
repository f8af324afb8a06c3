//! Any sequence of operations, by hosts that live and hosts that die in the middle, keeps the invariants.

use super::fake::Act;
use super::home::{Home, kept, wanted};
use crate::{Disposition, Filter, Leases, Policy, Releasing, State, Wanted};
use proptest::prelude::*;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// What is done; a number chooses among the active leases.
#[derive(Clone, Debug)]
enum What {
    Acquire,
    AcquireKept,
    Work(usize),
    Release(usize),
    Stop(usize),
    Reconcile,
}

/// One operation of one host, and what the provider does meanwhile.
#[derive(Clone, Debug)]
struct Op {
    what: What,
    /// Whether the host dies where a call hangs; one that lives waits for the call's time to be over.
    dies: bool,
    acts: Vec<Act>,
}

fn op() -> impl Strategy<Value = Op> {
    let act = prop_oneof![
        4 => Just(Act::Honest),
        1 => Just(Act::Fails),
        1 => Just(Act::DoesAndFails),
        1 => Just(Act::Hangs),
        1 => Just(Act::DoesAndHangs),
        1 => Just(Act::Panics),
        1 => Just(Act::About("a-nobody".into())),
        1 => Just(Act::Says(Disposition::Retained)),
        1 => Just(Act::TwoPhases),
    ];
    let what = prop_oneof![
        2 => Just(What::Acquire),
        3 => Just(What::AcquireKept),
        2 => (0..4usize).prop_map(What::Work),
        3 => (0..4usize).prop_map(What::Release),
        1 => (0..4usize).prop_map(What::Stop),
        1 => Just(What::Reconcile),
    ];
    let acts = prop::collection::vec(act, 0..4);
    (what, any::<bool>(), acts).prop_map(|(what, dies, acts)| Op { what, dies, acts })
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().build().unwrap()
}

struct Hosts {
    home: Home,
    living: Leases,
    runtime: Runtime,
}

impl Hosts {
    fn new() -> Hosts {
        let (home, runtime) = (Home::sqlite(), runtime());
        let living = runtime.block_on(home.leases());
        Hosts { home, living, runtime }
    }

    fn run(&self, op: Op) {
        let fake = &self.home.fake;
        fake.back().script = op.acts.into();
        if op.dies {
            // Everything of it that has not been written when the runtime ends never is.
            let dead = runtime().block_on(async {
                let dead = self.home.dead().await;
                tokio::select! {
                    () = operate(&dead, op.what) => {}
                    () = fake.waits.notified() => {}
                }
                dead
            });
            // What it had handed in goes on in a thread of its own: a last piece of work comes after all of it.
            let nobody = crate::LeaseId::random().unwrap();
            self.runtime.block_on(dead.record(&nobody, "nothing", None)).unwrap_err();
        } else {
            self.runtime.block_on(async {
                let done = async {
                    operate(&self.living, op.what).await;
                    self.living.idle().await;
                };
                // Whatever hangs is given up when its time is over.
                let moving = async {
                    loop {
                        fake.waits.notified().await;
                        while self.home.clock.pauses().is_empty() {
                            tokio::task::yield_now().await;
                        }
                        let longest = self.home.clock.pauses().into_iter().max().unwrap_or_default();
                        self.home.clock.advance(longest);
                        // An acquisition is then listened to for a while longer.
                        for _ in 0..1000 {
                            tokio::task::yield_now().await;
                        }
                        self.home.clock.advance(Duration::from_secs(60));
                    }
                };
                tokio::select! {
                    () = done => {}
                    () = moving => {}
                }
            });
        }
        fake.back().script.clear();
    }

    /// What holds at every moment.
    fn check(&self) {
        let stored = self.runtime.block_on(self.living.list(Filter::default())).unwrap();
        for name in self.home.fake.back().allocations.keys() {
            let Some(lease) = stored.iter().find(|lease| lease.id.as_str() == name) else {
                panic!("allocation {name} has no lease")
            };
            assert!(!lease.state.is_final(), "allocation {name} outlives its lease: {lease:?}");
        }
        for lease in &stored {
            let history = self.runtime.block_on(self.living.history(&lease.id)).unwrap();
            let before = std::iter::once(None).chain(history.iter().map(|it| Some(it.to)));
            for (before, event) in before.zip(&history) {
                assert_eq!(before, event.from);
                assert!(before.is_none_or(|from| from == event.to || from.may_become(event.to)));
            }
            assert_eq!(history.last().map(|event| event.to), Some(lease.state));
            let exists = self.home.fake.back().allocations.contains_key(lease.id.as_str());
            match lease.state {
                State::Active => assert!(lease.owner.is_some() && lease.allocation.is_some(), "{lease:?}"),
                State::Retained => assert!(exists && lease.owner.is_none(), "{lease:?}"),
                state if state.is_final() => assert!(lease.owner.is_none() && !exists, "{lease:?}"),
                _ => {}
            }
            if lease.unexported && (lease.preserve || lease.policy == Policy::Reuse) {
                assert!(exists, "work was deleted: {lease:?}");
            }
        }
    }

    /// What holds after a reconcile with a provider that works: what still exists is used by the living or
    /// is kept, or waits, reported, for a person.
    fn check_settled(&self) {
        let report = self.runtime.block_on(self.living.reconcile()).unwrap();
        let stored = self.runtime.block_on(self.living.list(Filter::default())).unwrap();
        let living = |lease: &crate::Lease| {
            lease.state == State::Active
                && lease.owner.as_ref().is_some_and(|it| it.standing() == crate::Standing::Alive)
        };
        for lease in &stored {
            let reported = report.stuck.iter().any(|stuck| stuck.id == lease.id);
            let settled = lease.state.is_final() || lease.state == State::Retained;
            assert!(settled || living(lease) || reported, "{lease:?}");
        }
    }
}

async fn operate(host: &Leases, what: What) {
    let active = async |which: usize| {
        let active = Filter { states: vec![State::Active], ..Filter::default() };
        host.list(active).await.unwrap().into_iter().nth(which)
    };
    let how = Releasing { failed: false, cancel_active_work: true };
    match what {
        What::Acquire => drop(host.acquire(Wanted { preserve: true, ..wanted() }).await),
        What::AcquireKept => drop(host.acquire(kept()).await),
        What::Work(which) => {
            if let Some(lease) = active(which).await {
                host.set_unexported(&lease.id, true).await.ok();
            }
        }
        What::Release(which) => {
            if let Some(lease) = active(which).await
                && !(lease.unexported && lease.policy != Policy::Reuse)
            {
                host.release(&lease.id, how).await.ok();
            }
        }
        What::Stop(which) => {
            if let Some(lease) = active(which).await {
                host.stop(&lease.id, "test").await.ok();
            }
        }
        What::Reconcile => drop(host.reconcile().await.unwrap()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_of_operations_keeps_the_invariants(ops in prop::collection::vec(op(), 1..14)) {
        let hosts = Hosts::new();
        for op in ops {
            hosts.run(op);
            hosts.check();
        }
        hosts.check_settled();
        hosts.check();
    }
}
