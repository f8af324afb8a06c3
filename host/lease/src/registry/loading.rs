//! One start for everybody who waits for it, and a memory of how it ended.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// A component that cannot be called, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct Unloaded {
    /// For people: what is wrong and what to do.
    pub why: String,
    /// Whether trying again may help: the component is not there yet, or the machine was short of something.
    pub passing: bool,
}

/// What is known of a component without starting it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing<T> {
    /// Nobody asked for it yet.
    Untried,
    /// It is being loaded.
    UnderWay,
    /// It can be called.
    Loaded(T),
    /// It could not be loaded.
    Failed(Unloaded),
}

/// What to do where an earlier start failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterFailure {
    /// Try again if that may help.
    TryIfPassing,
    /// Try again.
    Try,
}

type Outcome<T> = Option<Result<T, Unloaded>>;

/// Starts by key. A start goes on when nobody waits for it any more.
#[derive(Clone, Debug)]
pub(crate) struct Loading<T> {
    starts: Arc<Mutex<HashMap<String, watch::Receiver<Outcome<T>>>>>,
}

impl<T> Default for Loading<T> {
    fn default() -> Self {
        Loading { starts: Arc::default() }
    }
}

impl<T: Clone + Send + Sync + 'static> Loading<T> {
    /// What is known under this key.
    pub(crate) fn standing(&self, key: &str) -> Standing<T> {
        match self.starts().get(key) {
            None => Standing::Untried,
            Some(start) => standing(start),
        }
    }

    /// Forgets all keys but these, and with them what they hold.
    pub(crate) fn keep(&self, wanted: impl Fn(&str) -> bool) {
        self.starts().retain(|key, _| wanted(key));
    }

    /// The outcome under this key: the known one, that of a start under way, or that of a new start.
    pub(crate) async fn get<F>(
        &self,
        key: &str,
        after: AfterFailure,
        start: impl FnOnce() -> F,
    ) -> Result<T, Unloaded>
    where
        F: Future<Output = Result<T, Unloaded>> + Send + 'static,
    {
        let mut known = {
            let mut starts = self.starts();
            match starts.get(key) {
                Some(known) if !again(&standing(known), after) => known.clone(),
                _ => {
                    let known = begun(start());
                    starts.insert(key.to_owned(), known.clone());
                    known
                }
            }
        };
        let ended = known.wait_for(Option::is_some).await.map(|outcome| outcome.clone());
        ended.ok().flatten().unwrap_or_else(|| Err(broke_off()))
    }

    /// Begins a start nobody waits for yet. One that is known already stays.
    pub(crate) fn begin<F>(&self, key: &str, start: F)
    where
        F: Future<Output = Result<T, Unloaded>> + Send + 'static,
    {
        self.starts().entry(key.to_owned()).or_insert_with(|| begun(start));
    }

    fn starts(&self) -> MutexGuard<'_, HashMap<String, watch::Receiver<Outcome<T>>>> {
        // Nothing that holds the lock can leave the map half changed.
        self.starts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn begun<T: Send + Sync + 'static>(
    start: impl Future<Output = Result<T, Unloaded>> + Send + 'static,
) -> watch::Receiver<Outcome<T>> {
    let (ends, known) = watch::channel(None);
    tokio::spawn(async move { ends.send_replace(Some(start.await)) });
    known
}

fn again<T>(standing: &Standing<T>, after: AfterFailure) -> bool {
    match (standing, after) {
        (Standing::Failed(_), AfterFailure::Try) => true,
        (Standing::Failed(failed), AfterFailure::TryIfPassing) => failed.passing,
        _ => false,
    }
}

fn standing<T: Clone>(start: &watch::Receiver<Outcome<T>>) -> Standing<T> {
    match &*start.borrow() {
        Some(Ok(loaded)) => Standing::Loaded(loaded.clone()),
        Some(Err(failed)) => Standing::Failed(failed.clone()),
        // Its task ended without an outcome.
        None if start.has_changed().is_err() => Standing::Failed(broke_off()),
        None => Standing::UnderWay,
    }
}

fn broke_off() -> Unloaded {
    Unloaded { why: "loading it broke off; try again, and report it if it stays".into(), passing: true }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    fn failed(passing: bool) -> Unloaded {
        Unloaded { why: "no".into(), passing }
    }

    #[tokio::test]
    async fn everybody_who_asks_meanwhile_waits_for_the_one_start() {
        let (loading, starts) = (Loading::default(), Arc::new(AtomicU32::new(0)));
        let load = || async {
            let count = starts.clone();
            let start = move || async move {
                tokio::task::yield_now().await;
                Ok(count.fetch_add(1, Ordering::Relaxed))
            };
            loading.get("a", AfterFailure::TryIfPassing, start).await
        };
        assert_eq!(tokio::join!(load(), load(), load()), (Ok(0), Ok(0), Ok(0)));
        assert_eq!(loading.standing("a"), Standing::Loaded(0));
        assert_eq!(loading.standing("b"), Standing::Untried);
    }

    #[tokio::test]
    async fn a_start_goes_on_when_whoever_asked_is_gone() {
        let loading = Loading::default();
        let (go, wait) = tokio::sync::oneshot::channel::<()>();
        let start = || async move { wait.await.map(|()| 7).map_err(|_| failed(true)) };
        let asked = loading.get("a", AfterFailure::TryIfPassing, start);
        tokio::select! { biased; _ = asked => unreachable!(), () = std::future::ready(()) => {} }
        assert_eq!(loading.standing("a"), Standing::UnderWay);
        go.send(()).unwrap();
        let never = || async { Err(failed(false)) };
        assert_eq!(loading.get("a", AfterFailure::TryIfPassing, never).await, Ok(7));
    }

    #[tokio::test]
    async fn a_failure_is_remembered_and_tried_again_only_as_asked() {
        for (passing, after, tried_again) in [
            (true, AfterFailure::TryIfPassing, true),
            (true, AfterFailure::Try, true),
            (false, AfterFailure::TryIfPassing, false),
            (false, AfterFailure::Try, true),
        ] {
            let loading = Loading::default();
            let fails = || async move { Err::<u32, _>(failed(passing)) };
            assert_eq!(loading.get("a", after, fails).await, Err(failed(passing)));
            let outcome = loading.get("a", after, || async { Ok(1) }).await;
            assert_eq!(outcome.is_ok(), tried_again, "{passing} {after:?}");
        }
    }

    #[tokio::test]
    async fn a_start_that_panics_is_a_failure_that_may_pass() {
        let loading = Loading::<u32>::default();
        let panics = || async { std::panic::resume_unwind(Box::new("a test")) };
        let failed = loading.get("a", AfterFailure::TryIfPassing, panics).await.unwrap_err();
        assert!(failed.passing);
        assert_eq!(loading.standing("a"), Standing::Failed(failed));
        assert_eq!(loading.get("a", AfterFailure::TryIfPassing, || async { Ok(1) }).await, Ok(1));
    }
}
