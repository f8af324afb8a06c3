//! Where times and pauses come from, so that a test moves them by hand.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::{Notify, oneshot};

/// A pause.
pub type Pause = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A clock on the wall, and pauses that do not depend on it.
pub trait Clock: Debug + Send + Sync + 'static {
    /// Milliseconds since the Unix epoch. May jump either way.
    fn now_ms(&self) -> u64;

    /// Waits this long, however the clock on the wall is set meanwhile.
    fn sleep(&self, time: Duration) -> Pause;
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    fn sleep(&self, time: Duration) -> Pause {
        Box::pin(tokio::time::sleep(time))
    }
}

/// A clock that stands still until it is moved, for tests. Clones are one clock.
#[derive(Clone, Debug, Default)]
pub struct HandClock(Arc<Hands>);

#[derive(Debug, Default)]
struct Hands {
    now: Mutex<Now>,
    /// Told whenever a pause begins.
    began: Notify,
}

#[derive(Debug, Default)]
struct Now {
    wall_ms: u64,
    passed: Duration,
    pauses: VecDeque<(Duration, Duration, oneshot::Sender<()>)>,
}

impl HandClock {
    /// A clock that shows this time, in milliseconds since the Unix epoch.
    #[must_use]
    pub fn at(wall_ms: u64) -> HandClock {
        let clock = HandClock::default();
        clock.now().wall_ms = wall_ms;
        clock
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.0.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets time pass: the wall shows it, and pauses that are over by then end.
    pub fn advance(&self, time: Duration) {
        let mut now = self.now();
        now.wall_ms = now.wall_ms.saturating_add(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        now.passed += time;
        let passed = now.passed;
        let (over, left) = now.pauses.drain(..).partition(|(until, _, _)| *until <= passed);
        now.pauses = left;
        drop(now);
        let over: VecDeque<_> = over;
        for (_, _, waiting) in over {
            waiting.send(()).ok();
        }
    }

    /// Sets the wall to another time, without time passing.
    pub fn set(&self, wall_ms: u64) {
        self.now().wall_ms = wall_ms;
    }

    /// The pauses that are waited for now, as they were asked for.
    #[must_use]
    pub fn pauses(&self) -> Vec<Duration> {
        let asked =
            |(_, time, waiting): &(_, Duration, oneshot::Sender<()>)| (!waiting.is_closed()).then_some(*time);
        self.now().pauses.iter().filter_map(asked).collect()
    }

    /// Waits until a pause that passes the test is waited for, and gives it.
    pub async fn pausing(&self, is_it: impl Fn(Duration) -> bool) -> Duration {
        loop {
            let began = self.0.began.notified();
            if let Some(found) = self.pauses().into_iter().find(|time| is_it(*time)) {
                return found;
            }
            began.await;
        }
    }
}

impl Clock for HandClock {
    fn now_ms(&self) -> u64 {
        self.now().wall_ms
    }

    fn sleep(&self, time: Duration) -> Pause {
        let (waiting, over) = oneshot::channel();
        let mut now = self.now();
        let until = now.passed + time;
        if time.is_zero() {
            waiting.send(()).ok();
        } else {
            now.pauses.retain(|(_, _, waiting)| !waiting.is_closed());
            now.pauses.push_back((until, time, waiting));
        }
        drop(now);
        self.0.began.notify_waiters();
        Box::pin(async move {
            // Without the clock time no longer passes.
            if over.await.is_err() {
                std::future::pending::<()>().await;
            }
        })
    }
}
