//! A call with every limit on, against the same call on the engine underneath.

use crate::measure::{in_turns, row};
use crate::raw::Raw;
use leasehold_engine::CallOptions;
use leasehold_engine::hook::AcquireLease;
use leasehold_tests::act::acquire;
use leasehold_tests::{bytes, context, provider};

const ROUNDS: usize = 20_000;

pub(crate) fn fresh() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (raw, ours, options) = (Raw::new(&bytes("minimal")), provider("minimal"), CallOptions::default());
    let (ours, raw) = in_turns(
        ROUNDS,
        || {
            runtime.block_on(async {
                let hook = AcquireLease { request: acquire("name-1") };
                ours.call(hook, context("{}"), &options).await.answer.unwrap().unwrap();
            });
        },
        || runtime.block_on(raw.fresh()),
    );
    let ratio = ours.as_secs_f64() / raw.as_secs_f64();
    let against = format!("raw engine, fresh: {raw:.2?}");
    row("fresh call, all limits on", ours, &against, &format!("{ratio:.2} ×"), "≤ 2 ×");
    let more = ours.saturating_sub(raw);
    row("what our side adds to a call", more, "the raw engine's own call", &format!("+ {more:.2?}"), "+ 2 µs");
}
