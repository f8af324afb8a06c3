//! Many runs, some of them ended by force at any moment, leave nothing.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use common::sandbox::{alive, groups, leasehold, mark, nothing_left, place, ran, until};
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Runs in all, and those that are ended by SIGKILL.
const RUNS: usize = 200;
const KILLED: usize = 50;

/// Runs at one time: as many as a small machine has processors, and one more.
const AT_ONCE: usize = 3;

#[test]
fn two_hundred_runs_fifty_of_them_killed_and_one_reconcile_leave_nothing() {
    let place = place();
    std::fs::write(place.path().join("project/file"), "content").unwrap();
    let mark = mark("stress");
    // Once before: the cache is made, and it is known how long a run takes.
    let arguments = ["run", "--", "sh", "-c", "sleep 300 & cat file > copy; rm copy", mark.as_str()];
    ran(&place, &arguments);
    let start = Instant::now();
    assert_eq!(ran(&place, &arguments), (0, String::new(), String::new()));
    let usual = start.elapsed();

    let (next, failed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= RUNS {
                        return;
                    }
                    let mut run = leasehold(&place, &arguments).stdout(Stdio::null()).spawn().unwrap();
                    if number % (RUNS / KILLED) == 0 {
                        // Spread over the whole of a run that shares the machine, by a step that meets no beat.
                        let moment = number * 617 % 1000;
                        std::thread::sleep(usual * AT_ONCE as u32 / 2 * moment as u32 / 1000);
                        run.kill().unwrap();
                        run.wait().unwrap();
                    } else if !run.wait().unwrap().success() {
                        failed.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    assert_eq!(failed.load(Ordering::Relaxed), 0, "runs that nobody killed failed");

    // A jail ends by its own doing, without anybody looking after it.
    until("no process of a jail whose host was killed runs any more", || !alive(&mark));
    let (code, ended, error) = ran(&place, &["reconcile"]);
    assert_eq!((code, error.as_str()), (0, ""), "{ended}");
    // Otherwise every kill came too late to hit anything, and this shows nothing.
    assert!(!ended.is_empty(), "no kill left anything");
    until("the kernel let go of every group", || groups(&place).is_empty());
    // The next run in a folder removes what a transfer that was cut off left in it.
    assert_eq!(ran(&place, &arguments), (0, String::new(), String::new()));
    nothing_left(&place, &mark);
}
