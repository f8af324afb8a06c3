//! The host's own look at what a jail uses, for bounds the kernel does not hold here.

use super::cgroup::Controller;
use super::error::{Limit, LimitHit};
use super::running::Running;
use super::usage;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// Between two looks at memory and processes. A program fills memory at one to two gigabytes a second,
/// so the bound is passed by some 50 MB at most before the jail is ended.
const LOOK: Duration = Duration::from_millis(25);

/// Least time between two looks at the disk, which cost more.
const LOOK_AT_DISK: Duration = Duration::from_millis(100);

/// A look at the disk that took long is not repeated before this many times as long went by: counting a
/// large tree must not take more than a tenth of a processor.
const DISK_REST: u32 = 10;

/// Watches the jail as long as it is there. A jail without processes is not looked at.
pub(super) async fn watch(jail: Weak<Running>) {
    let mut disk_due = Instant::now();
    loop {
        let Some(running) = jail.upgrade() else { return };
        let disk = Instant::now() >= disk_due;
        let started = Instant::now();
        let looked = tokio::task::spawn_blocking(move || {
            look(&running, disk);
            // A last reference must not be dropped on a thread of the runtime: that waits.
            (running.alive(), usage::idle(&running))
        })
        .await;
        let Ok((alive, idle)) = looked else { return };
        if !alive {
            return;
        }
        if disk {
            disk_due = Instant::now() + LOOK_AT_DISK.max(started.elapsed() * DISK_REST);
        }
        if idle && !disk {
            // What was running a moment ago may have filled the disk with its last breath.
            disk_due = Instant::now();
        }
        if idle && disk {
            sleep_until_activity(&jail).await;
        } else {
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// Waits until a command is started or the jail is given up.
async fn sleep_until_activity(jail: &Weak<Running>) {
    /// How often an idle jail is looked at, to notice that it was given up.
    const IDLE: Duration = Duration::from_secs(1);
    while let Some(running) = jail.upgrade() {
        let woken = tokio::time::timeout(IDLE, running.activity.notified()).await;
        let last = Arc::strong_count(&running) == 1;
        if last {
            // The jail's end waits for its processes; not on a thread of the runtime.
            let _ = tokio::task::spawn_blocking(move || drop(running)).await;
            return;
        }
        if woken.is_ok() {
            return;
        }
    }
}

/// One look, now, after a command that failed.
pub(super) async fn look_now(running: &Arc<Running>) {
    let jail = Arc::clone(running);
    let _ = tokio::task::spawn_blocking(move || look(&jail, true)).await;
}

fn look(running: &Running, disk: bool) {
    let bounds = running.bounds;
    if let Some(allowed) = bounds.memory_bytes {
        if running.cgroups.holds(Controller::Memory) {
            if running.cgroups.memory_kills() > 0 {
                running.hit(LimitHit { which: Limit::Memory, allowed, at: allowed });
            }
        } else if let Some(at) = usage::memory(running, allowed).filter(|at| *at > allowed) {
            running.hit(LimitHit { which: Limit::Memory, allowed, at });
        }
    }
    if let Some(allowed) = bounds.processes.map(u64::from) {
        let at = usage::processes(running);
        // A bomb that collapsed between two looks has left its mark in the group.
        if at > allowed || running.cgroups.refused_forks() > 0 {
            running.hit(LimitHit { which: Limit::Processes, allowed, at: at.max(allowed + 1) });
        }
    }
    if let Some(allowed) = bounds.disk_bytes.filter(|_| disk) {
        match usage::disk(&running.locked.files()) {
            Ok(at) if at >= allowed => running.hit(LimitHit { which: Limit::Disk, allowed, at }),
            Ok(_) => {}
            Err(hit) => running.hit(hit),
        }
    }
}
