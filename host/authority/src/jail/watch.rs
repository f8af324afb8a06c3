//! The host's own look at what jails use, for bounds the kernel does not hold here.
//!
//! One thread of its own looks at all jails of a [`Jails`](super::Jails): a runtime's threads may be busy, and
//! what fills every processor must not keep the one who ends it from its turn.

use super::cgroup::Controller;
use super::error::{Limit, LimitHit};
use super::running::Running;
use super::usage;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Between two looks at memory and processes. A program fills memory at one to two gigabytes a second,
/// so the bound is passed by some 50 MB at most before the jail is ended.
const LOOK: Duration = Duration::from_millis(25);

/// Between two counts of the files, when nothing tells that many were written. A count that took long rests
/// [`REST`] times as long, so that counting a large tree takes no more than a hundredth of a processor.
const COUNT: Duration = Duration::from_millis(100);
const REST: u32 = 100;

/// How much the watching thread goes before others, where this user may say so.
const URGENCY: i32 = -10;

/// Stack of a thread that looks; counting keeps a few hundred bytes for each nested directory.
const STACK: usize = 256 << 10;

/// The thread, and how it is woken. It ends with this value.
#[derive(Debug, Default)]
pub(super) struct Watch(Arc<Bell>);

#[derive(Debug, Default)]
struct Bell {
    jails: Mutex<Watched>,
    rung: Condvar,
}

#[derive(Debug, Default)]
struct Watched {
    jails: Vec<Weak<Running>>,
    started: bool,
    over: bool,
}

/// What is remembered of a jail between two looks.
#[derive(Debug)]
pub(super) struct Pulse {
    /// Something was started: it is looked at until nothing runs any more.
    active: AtomicBool,
    /// When its files are counted next at the latest; none while they are being counted.
    due: Mutex<Option<Instant>>,
    bell: Arc<Bell>,
}

impl Watch {
    /// The pulse of a jail that is about to be watched.
    pub(super) fn pulse(&self) -> Pulse {
        let (active, due) = (AtomicBool::new(false), Mutex::new(Some(Instant::now())));
        Pulse { active, due, bell: Arc::clone(&self.0) }
    }

    /// Watches a jail as long as it is there. A jail without processes costs nothing.
    pub(super) fn add(&self, jail: &Arc<Running>) -> io::Result<()> {
        let mut watched = self.0.lock();
        watched.jails.retain(|jail| jail.strong_count() > 0);
        watched.jails.push(Arc::downgrade(jail));
        if !watched.started {
            let bell = Arc::clone(&self.0);
            let thread = std::thread::Builder::new().name("leasehold-watch".into()).stack_size(STACK);
            thread.spawn(move || bell.look_round())?;
            watched.started = true;
        }
        Ok(())
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.lock().over = true;
        self.0.rung.notify_all();
    }
}

impl Pulse {
    /// Something is about to run in the jail.
    pub(super) fn quicken(&self) {
        if !self.active.swap(true, Ordering::AcqRel) {
            // Under the lock, or the thread could have looked before and wait after.
            drop(self.bell.lock());
            self.bell.rung.notify_all();
        }
    }
}

impl Bell {
    fn lock(&self) -> std::sync::MutexGuard<'_, Watched> {
        self.jails.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look_round(&self) {
        // Refused to ordinary users; their jails yield instead.
        let _ = rustix::process::setpriority_process(None, URGENCY);
        while let Some(active) = self.active() {
            for jail in active {
                turn(&jail);
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Waits until something runs, and gives the jails it runs in; none when this is over.
    fn active(&self) -> Option<Vec<Arc<Running>>> {
        let mut watched = self.lock();
        loop {
            if watched.over {
                return None;
            }
            let there = watched.jails.iter().filter_map(Weak::upgrade);
            let active: Vec<_> = there.filter(|jail| jail.pulse.active.load(Ordering::Acquire)).collect();
            if !active.is_empty() {
                return Some(active);
            }
            watched = self.rung.wait(watched).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// One look at a jail in which something runs.
fn turn(jail: &Arc<Running>) {
    // Before the look: what starts meanwhile sets it again.
    let idle = usage::idle(jail);
    if idle {
        jail.pulse.active.store(false, Ordering::Release);
    }
    look(jail);
    if !jail.alive() {
        jail.pulse.active.store(false, Ordering::Release);
        return;
    }
    let mut due = jail.pulse.due.lock().unwrap_or_else(PoisonError::into_inner);
    // What was running a moment ago may have filled the disk with its last breath.
    if !due.is_some_and(|due| idle || Instant::now() >= due || fills(jail)) {
        return;
    }
    // On a thread of its own: a large tree takes longer than the next look may wait.
    let counted = Arc::clone(jail);
    let thread = std::thread::Builder::new().name("leasehold-count".into()).stack_size(STACK);
    let started = thread.spawn(move || {
        let from = Instant::now();
        count(&counted);
        let next = Instant::now() + COUNT.max(from.elapsed() * REST);
        *counted.pulse.due.lock().unwrap_or_else(PoisonError::into_inner) = Some(next);
    });
    // Without a thread it is tried again at the next look.
    *due = started.is_err().then(Instant::now);
}

/// Whether the file system lost so much space since the last count that this jail may be near its bound.
/// It costs nothing, and files are only counted often while somebody writes much.
fn fills(running: &Running) -> bool {
    let Some(allowed) = running.bounds.disk_bytes else { return false };
    let left = allowed.saturating_sub(running.disk_used.load(Ordering::Acquire));
    let lost = running.disk_free.load(Ordering::Acquire).saturating_sub(running.locked.free());
    lost > left / 4
}

/// One look, now, after a command that failed.
pub(super) async fn look_now(running: &Arc<Running>) {
    let jail = Arc::clone(running);
    let looked = move || {
        look(&jail);
        if fills(&jail) {
            count(&jail);
        }
    };
    let _ = tokio::task::spawn_blocking(looked).await;
}

/// Processes first: it costs least, and among hundreds of them the host gets few moments.
fn look(running: &Running) {
    let bounds = running.bounds;
    if let Some(allowed) = bounds.processes.map(u64::from) {
        // A bomb that collapsed between two looks has left its mark in the group.
        let collapsed = running.cgroups.refused_forks() > 0;
        let at = if collapsed { allowed + 1 } else { usage::processes(running, allowed) };
        if at > allowed {
            return running.hit(LimitHit { which: Limit::Processes, allowed, at });
        }
    }
    let Some(allowed) = bounds.memory_bytes else { return };
    if running.cgroups.holds(Controller::Memory) {
        if running.cgroups.memory_kills() > 0 {
            running.hit(LimitHit { which: Limit::Memory, allowed, at: allowed });
        }
    } else if let Some(at) = usage::memory(running, allowed).filter(|at| *at > allowed) {
        running.hit(LimitHit { which: Limit::Memory, allowed, at });
    }
}

/// Counts the files.
fn count(running: &Running) {
    let Some(allowed) = running.bounds.disk_bytes else { return };
    let free = running.locked.free();
    match usage::disk(&running.locked.files()) {
        Ok(at) if at >= allowed => running.hit(LimitHit { which: Limit::Disk, allowed, at }),
        Ok(at) => {
            running.disk_used.store(at, Ordering::Release);
            running.disk_free.store(free, Ordering::Release);
        }
        Err(hit) => running.hit(hit),
    }
}
