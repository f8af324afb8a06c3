//! The one thread that advances the engine's epoch.
//!
//! One for each engine, on a thread of its own: a guest that computes can starve a runtime's timers but
//! not this thread, and two tickers would make every deadline come twice as fast. A tick decides nothing;
//! it only makes running guests look at the clock, so jitter does not add up. While no call runs, the
//! thread sleeps.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::thread::Thread;
use std::time::Duration;

/// How often a running guest looks at the clock. A deadline is overshot by at most this; shorter costs
/// wake-ups and gains nothing a caller could notice.
pub(crate) const TICK: Duration = Duration::from_millis(5);

/// Handle on the ticker thread; the thread ends when the last handle is dropped.
#[derive(Debug)]
pub(crate) struct Ticker {
    running: Arc<AtomicUsize>,
    thread: Thread,
}

/// Keeps the ticker awake for as long as it lives; one for each running call.
#[derive(Debug)]
pub(crate) struct Awake(Arc<AtomicUsize>);

impl Ticker {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system refuses a thread.
    pub(crate) fn start(engine: &wasmtime::Engine) -> std::io::Result<Ticker> {
        let running = Arc::new(AtomicUsize::new(0));
        let (engine, weak) = (engine.weak(), Arc::downgrade(&running));
        let handle = std::thread::Builder::new()
            .name("leasehold-ticker".into())
            .spawn(move || tick(&engine, &weak))?;
        Ok(Ticker { running, thread: handle.thread().clone() })
    }

    /// Says that a call runs.
    pub(crate) fn wake(&self) -> Awake {
        if self.running.fetch_add(1, Ordering::SeqCst) == 0 {
            self.thread.unpark();
        }
        Awake(self.running.clone())
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        // The thread must find its count gone when it wakes, so the count goes first.
        drop(std::mem::take(&mut self.running));
        self.thread.unpark();
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn tick(engine: &wasmtime::EngineWeak, running: &Weak<AtomicUsize>) {
    loop {
        let busy = match running.upgrade() {
            Some(running) => running.load(Ordering::SeqCst) > 0,
            None => return,
        };
        if busy {
            std::thread::sleep(TICK);
            match engine.upgrade() {
                Some(engine) => engine.increment_epoch(),
                None => return,
            }
        } else {
            std::thread::park();
        }
    }
}
