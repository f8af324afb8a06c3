//! A program that takes without end meets a typed limit, and the host does not feel it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "only tests use the helpers")]

mod common;

use common::{run, runs, said, sh, state};
use leasehold_authority::jail::{
    Bounds, Command, Enforcement, Exit, Isolation, JailError, Jails, Layer, Limit, LimitHit, Standing,
};

#[test]
fn all_of_this_holds_for_an_ordinary_user() {
    common::again_as_ordinary_user();
}

/// With control groups where there are any, and without.
fn isolations() -> [Isolation; 2] {
    [Isolation::default(), Isolation::default().waive(Layer::Cgroup).unwrap()]
}

fn hit(result: Result<common::Ran, JailError>) -> Limit {
    match result {
        Err(JailError::Limit(LimitHit { which, .. })) => which,
        Err(other) => panic!("not a limit: {other}"),
        Ok(ran) => panic!("ended with {}: {}{}", ran.exit, ran.output, ran.error),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_bomb_ends_in_the_limit_on_processes() {
    for isolation in isolations() {
        let state = state();
        let jails = Jails::open(state.path()).unwrap();
        let bounds = Bounds { processes: Some(40), ..Bounds::default() };
        let jail = jails.create("one", bounds, &isolation).await.unwrap();
        assert_ne!(jail.enforcement["processes"], Enforcement::Unbounded);
        assert_eq!(said(&jails, "for i in 1 2 3 4 5; do sleep 0.01 & done; wait; echo fine").await, "fine\n");
        let mark = common::marker("bomb");
        // Whether its processes stay or collapse at once: a group of the kernel remembers it either way.
        let bomb = if jail.enforcement["processes"] == Enforcement::Kernel {
            Command::new(["sh", "-c", "bomb() { bomb | bomb & }; bomb; while :; do sleep 1; done", &mark])
        } else {
            Command::new(["perl", "-e", "fork while 1", &mark])
        };
        assert_eq!(hit(run(&jails, bomb).await), Limit::Processes);
        common::until("nothing of the bomb runs", || !runs(&mark));
        assert_eq!(jails.find("one").await.unwrap(), Some(Standing::Stopped));
        // Told again until the jail is made anew.
        assert_eq!(hit(run(&jails, Command::new(["true"])).await), Limit::Processes);
        jails.create("one", bounds, &isolation).await.unwrap();
        said(&jails, "true").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_memory_eater_ends_in_the_limit_on_memory() {
    for isolation in isolations() {
        let state = state();
        let jails = Jails::open(state.path()).unwrap();
        let bounds = Bounds { memory_bytes: Some(64 << 20), ..Bounds::default() };
        jails.create("one", bounds, &isolation).await.unwrap();
        assert_eq!(said(&jails, "perl -e '$x = q(x) x 5000000; print length $x'").await, "5000000");
        // In steps, as real programs grow.
        let eater = "my @all; for (1..5000) { push @all, 'x' x 1000000 } sleep 1000";
        assert_eq!(hit(run(&jails, Command::new(["perl", "-e", eater])).await), Limit::Memory);
        jails.create("one", bounds, &isolation).await.unwrap();
        said(&jails, "true").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_is_counted_over_all_processes_together() {
    for isolation in isolations() {
        let state = state();
        let jails = Jails::open(state.path()).unwrap();
        let bounds = Bounds { memory_bytes: Some(96 << 20), ..Bounds::default() };
        jails.create("one", bounds, &isolation).await.unwrap();
        let eater = "for (1..10) { next if fork; my $x = 'x' x 30000000; sleep 1000 } sleep 1000";
        assert_eq!(hit(run(&jails, Command::new(["perl", "-e", eater])).await), Limit::Memory);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_shared_after_a_fork_is_counted_once() {
    let state = state();
    let jails = Jails::open(state.path()).unwrap();
    let bounds = Bounds { memory_bytes: Some(96 << 20), ..Bounds::default() };
    jails.create("one", bounds, &isolations()[1]).await.unwrap();
    let sharing = "my $x = 'x' x 20000000; for (1..10) { next if fork; select undef, undef, undef, 0.5; exit } wait for 1..10; print 'fine'";
    assert_eq!(run(&jails, Command::new(["perl", "-e", sharing])).await.unwrap().output, "fine");
}

#[tokio::test(flavor = "multi_thread")]
async fn shared_memory_has_a_size() {
    let state = state();
    let jails = Jails::open(state.path()).unwrap();
    let bounds = Bounds { memory_bytes: Some(32 << 20), ..Bounds::default() };
    jails.create("one", bounds, &isolations()[1]).await.unwrap();
    let ran = run(&jails, sh("head -c 100000000 /dev/zero > /dev/shm/x; stat -c %s /dev/shm/x")).await;
    // Either the file system is full first, or the host sees it first.
    match ran {
        Ok(ran) => assert!(ran.output.trim().parse::<u64>().unwrap() <= 32 << 20, "{}", ran.output),
        Err(error) => {
            assert!(matches!(error, JailError::Limit(LimitHit { which: Limit::Memory, .. })), "{error}")
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_large_file_ends_in_the_limit_on_disk() {
    let state = state();
    let jails = Jails::open(state.path()).unwrap();
    let bounds = Bounds { disk_bytes: Some(10 << 20), ..Bounds::default() };
    jails.create("one", bounds, &Isolation::default()).await.unwrap();
    said(&jails, "head -c 1000000 /dev/zero > fine").await;
    assert_eq!(hit(run(&jails, sh("exec head -c 1000000000 /dev/zero > big")).await), Limit::Disk);
    let size = std::fs::metadata(state.path().join("one/files/workspace/big")).unwrap().len();
    assert!(size <= 10 << 20, "{size}");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_files_end_in_the_limit_on_disk_wherever_they_lie() {
    for directory in ["/workspace", "/tmp", "/home"] {
        let state = state();
        let jails = Jails::open(state.path()).unwrap();
        let bounds = Bounds { disk_bytes: Some(10 << 20), ..Bounds::default() };
        jails.create("one", bounds, &Isolation::default()).await.unwrap();
        let filler = format!("i=0; while :; do head -c 100000 /dev/zero > {directory}/$i; i=$((i+1)); done");
        assert_eq!(hit(run(&jails, sh(&filler)).await), Limit::Disk);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn directories_too_deep_to_measure_end_in_a_limit_and_can_be_deleted() {
    let state = state();
    let jails = Jails::open(state.path()).unwrap();
    let bounds = Bounds { disk_bytes: Some(100 << 20), ..Bounds::default() };
    jails.create("one", bounds, &Isolation::default()).await.unwrap();
    let deep = "for (1..2000) { mkdir 'd'; chdir 'd' } sleep 1000";
    assert_eq!(hit(run(&jails, Command::new(["perl", "-e", deep])).await), Limit::Depth);
    assert!(jails.destroy("one").await.unwrap());
    assert_eq!(std::fs::read_dir(state.path()).unwrap().count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_background_process_meets_the_same_limits() {
    let state = state();
    let jails = Jails::open(state.path()).unwrap();
    let bounds = Bounds { memory_bytes: Some(64 << 20), ..Bounds::default() };
    jails.create("one", bounds, &Isolation::default()).await.unwrap();
    let eater =
        "perl -e 'my @all; for (1..5000) { push @all, q(x) x 1000000 } sleep 1000' > /dev/null 2>&1 &";
    run(&jails, sh(eater)).await.unwrap();
    while jails.find("one").await.unwrap() == Some(Standing::Running) {
        tokio::task::yield_now().await;
    }
    assert_eq!(hit(run(&jails, Command::new(["true"])).await), Limit::Memory);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_jail_that_asks_for_no_bounds_has_some_and_says_who_holds_them() {
    for isolation in isolations() {
        let state = state();
        let jails = Jails::open(state.path()).unwrap();
        let jail = jails.create("one", Bounds::default(), &isolation).await.unwrap();
        for bound in ["memory-bytes", "processes", "disk-bytes"] {
            let held = jail.enforcement[bound];
            assert!(!matches!(held, Enforcement::Unbounded | Enforcement::NotHeld), "{bound}: {held:?}");
        }
        assert_eq!(jail.enforcement["cpu-millis"], Enforcement::Unbounded);
        // However many that are, the bomb gets no further.
        let bomb =
            Command::new(["nice", "-n", "19", "perl", "-e", "fork while 1", &common::marker("unasked")]);
        assert_eq!(hit(run(&jails, bomb).await), Limit::Processes);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_gets_more_than_the_host_gives() {
    let state = state();
    let ceilings = Bounds { processes: Some(30), ..Bounds::default() };
    let jails = Jails::open(state.path()).unwrap().with_ceilings(ceilings);
    let asked = Bounds { processes: Some(31), ..Bounds::default() };
    let error = jails.create("one", asked, &Isolation::default()).await.err().unwrap();
    assert_eq!(error.to_string(), "bound `processes` must be from 1 to 30 here, not 31");
    // Who asks for nothing gets no more either.
    jails.create("one", Bounds::default(), &Isolation::default()).await.unwrap();
    let bomb = Command::new(["perl", "-e", "fork while 1", &common::marker("ceiling")]);
    assert_eq!(hit(run(&jails, bomb).await), Limit::Processes);
}

#[tokio::test(flavor = "multi_thread")]
async fn bounds_no_jail_can_work_with_are_refused() {
    let state = state();
    let jails = Jails::open(state.path()).unwrap();
    for bounds in [
        Bounds { memory_bytes: Some(1000), ..Bounds::default() },
        Bounds { processes: Some(0), ..Bounds::default() },
        Bounds { cpu_millis: Some(0), ..Bounds::default() },
        Bounds { disk_bytes: Some(0), ..Bounds::default() },
    ] {
        let error = jails.create("one", bounds, &Isolation::default()).await.err().unwrap();
        assert!(matches!(error, JailError::Bound { .. }), "{error}");
    }
    assert_eq!(jails.list().await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bound_on_processor_time_is_held_by_the_kernel_or_refused_by_name() {
    let state = state();
    let jails = Jails::open(state.path()).unwrap();
    let bounds = Bounds { cpu_millis: Some(500), ..Bounds::default() };
    match jails.create("one", bounds, &Isolation::default()).await {
        Ok(jail) => {
            assert_eq!(jail.enforcement["cpu-millis"], Enforcement::Kernel);
            assert_eq!(run(&jails, Command::new(["true"])).await.unwrap().exit, Exit::Exited(0));
        }
        Err(error) => {
            assert!(matches!(error, JailError::Unsupported { layer: Layer::Cgroup, .. }), "{error}");
            assert!(error.to_string().contains("`cgroup`"), "{error}");
            let less = Isolation::default().waive(Layer::Cgroup).unwrap();
            let jail = jails.create("one", bounds, &less).await.unwrap();
            assert_eq!(jail.enforcement["cpu-millis"], Enforcement::NotHeld);
        }
    }
}
