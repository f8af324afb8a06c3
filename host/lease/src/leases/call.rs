//! Calls of a provider: each on a task of its own, so that a panic in it ends nothing else, and each
//! with a time.

use crate::fault::Step;
use crate::{Clock, Reply};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tracing::Instrument;

/// What is said of a call whose task ended without an answer.
pub(super) const BROKE_OFF: &str = "the provider's call broke off without an answer";

/// Starts a call.
pub(super) fn start<T: Send + 'static>(
    step: Step,
    answer: impl Future<Output = Reply<T>> + Send + 'static,
) -> JoinHandle<Reply<T>> {
    let call = async move {
        step.before();
        let answer = answer.await;
        step.after();
        answer
    };
    tokio::spawn(call.in_current_span())
}

/// Calls and waits for the answer, or says why there was none.
pub(super) async fn timed<T: Send + 'static>(
    clock: &Arc<dyn Clock>,
    step: Step,
    budget: Duration,
    answer: impl Future<Output = Reply<T>> + Send + 'static,
) -> Result<Reply<T>, String> {
    let mut call = Call(start(step, answer));
    tokio::select! {
        biased;
        answered = &mut call.0 => answered.map_err(|_| BROKE_OFF.into()),
        () = clock.sleep(budget) => Err(format!("the provider gave no answer within {budget:?}")),
    }
}

/// A call that ends when nobody waits for it any more.
struct Call<T>(JoinHandle<T>);

impl<T> Drop for Call<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
