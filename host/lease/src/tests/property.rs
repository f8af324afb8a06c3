//! Any sequence of operations, by hosts that live and hosts that die in the middle, keeps the invariants.

use super::fake::{Act, Fake, only};
use super::{leases, leases_of_the_dead, store, wanted};
use crate::{Disposition, Filter, Leases, Retention, State, Store};
use proptest::prelude::*;
use std::sync::Arc;
use tokio::runtime::{Builder, Runtime};

/// One operation.
#[derive(Clone, Debug)]
enum Op {
    Acquire {
        dies: bool,
        reuse: bool,
        acts: Vec<Act>,
    },
    /// Of the lease at this place among the active ones.
    Release {
        dies: bool,
        which: usize,
        acts: Vec<Act>,
    },
    Reconcile {
        dies: bool,
        acts: Vec<Act>,
    },
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
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
    prop::collection::vec(act, 0..4)
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        3 => (any::<bool>(), any::<bool>(), acts())
            .prop_map(|(dies, reuse, acts)| Op::Acquire { dies, reuse, acts }),
        2 => (any::<bool>(), 0..4usize, acts()).prop_map(|(dies, which, acts)| Op::Release { dies, which, acts }),
        1 => (any::<bool>(), acts()).prop_map(|(dies, acts)| Op::Reconcile { dies, acts }),
    ]
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

/// A host: one that lives, and one that dies where its operation hangs.
struct Hosts {
    store: Store,
    living: Leases,
    runtime: Runtime,
    fake: Arc<Fake>,
}

impl Hosts {
    fn new() -> Hosts {
        let store = store();
        Hosts { living: leases(&store), store, runtime: runtime(), fake: Fake::new([]) }
    }

    fn run(&self, op: Op) {
        let (dies, acts) = match &op {
            Op::Acquire { dies, acts, .. }
            | Op::Release { dies, acts, .. }
            | Op::Reconcile { dies, acts } => (*dies, acts.clone()),
        };
        self.fake.back().script = acts.into();
        if dies {
            let dead = leases_of_the_dead(&self.store);
            // Everything of it that has not been written when the runtime ends never is.
            runtime().block_on(async {
                tokio::select! {
                    () = self.operate(&dead, op) => {}
                    () = self.fake.waits.notified() => {}
                }
            });
        } else {
            self.runtime.block_on(async {
                self.operate(&self.living, op).await;
                self.living.idle().await;
            });
        }
        self.fake.back().script.clear();
    }

    async fn operate(&self, host: &Leases, op: Op) {
        match op {
            Op::Acquire { reuse, .. } => {
                let retention = if reuse { Retention::Reuse } else { Retention::Ephemeral };
                host.acquire(self.fake.clone(), wanted(retention)).await.ok();
            }
            Op::Release { which, .. } => {
                let active = Filter { states: vec![State::Active], ..Filter::default() };
                if let Some(lease) = host.list(active).await.unwrap().get(which) {
                    host.release(self.fake.clone(), &lease.id, true).await.ok();
                }
            }
            Op::Reconcile { .. } => {
                host.reconcile(only(&self.fake)).await.unwrap();
            }
        }
    }

    /// What holds at every moment.
    fn check(&self) {
        let stored = self.runtime.block_on(self.living.list(Filter::default())).unwrap();
        for name in self.fake.back().allocations.keys() {
            let Some(lease) = stored.iter().find(|lease| lease.id.as_str() == name) else {
                panic!("allocation {name} has no lease")
            };
            let kept = matches!(lease.disposition, Some(Disposition::Stopped | Disposition::Retained));
            let ended = lease.state == State::Failed || (lease.state == State::Released && !kept);
            assert!(!ended, "allocation {name} outlives its lease: {lease:?}");
        }
        for lease in &stored {
            let history = self.runtime.block_on(self.living.history(&lease.id)).unwrap();
            for (before, event) in
                std::iter::once(None).chain(history.iter().map(|it| Some(it.to))).zip(&history)
            {
                assert_eq!(before, event.from);
                assert!(before.is_none_or(|from| from.may_become(event.to)));
            }
            assert_eq!(history.last().map(|event| event.to), Some(lease.state));
            assert!(lease.owner.is_none() || !lease.state.is_final(), "{lease:?}");
            if lease.state == State::Active {
                assert!(lease.owner.is_some() && lease.allocation.is_some(), "{lease:?}");
            }
            if lease.retention == Retention::Reuse && lease.acquired_ms.is_some() {
                assert!(!self.fake.back().deleted.contains(&lease.id.as_str().to_owned()), "{lease:?}");
            }
        }
    }

    /// What holds after a reconcile with a provider that works: what still exists is used by the living or
    /// was to be kept, or waits, reported, for a person.
    fn check_settled(&self) {
        let report = self.runtime.block_on(self.living.reconcile(only(&self.fake))).unwrap();
        let stored = self.runtime.block_on(self.living.list(Filter::default())).unwrap();
        let mine = |lease: &crate::Lease| {
            lease.state == State::Active
                && lease.owner.as_ref().is_some_and(|it| it.standing() == crate::Standing::Alive)
        };
        for lease in &stored {
            let reported = report.stuck.iter().any(|stuck| stuck.id == lease.id);
            assert!(lease.state.is_final() || mine(lease) || reported, "{lease:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

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
