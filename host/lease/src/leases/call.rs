//! Calls of a provider: each on a task of its own, so that a panic in it ends nothing else, and each
//! with a time.

use crate::fault::Step;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tracing::Instrument;

/// What is said of a call whose task ended without an answer.
pub(super) const BROKE_OFF: &str = "the provider's call broke off without an answer";

/// Starts a call.
pub(super) fn start<T: Send + 'static>(
    step: Step,
    answer: impl Future<Output = T> + Send + 'static,
) -> JoinHandle<T> {
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
    step: Step,
    budget: Duration,
    answer: impl Future<Output = T> + Send + 'static,
) -> Result<T, String> {
    let mut call = start(step, answer);
    match timeout(budget, &mut call).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(_)) => Err(BROKE_OFF.into()),
        Err(_) => {
            call.abort();
            Err(format!("the provider gave no answer within {budget:?}"))
        }
    }
}
