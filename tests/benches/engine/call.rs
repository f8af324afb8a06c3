//! A call with every limit on, against the same call on the engine underneath.

use crate::measure::{in_turns, row};
use crate::raw::Raw;
use leasehold_engine::CallOptions;
use leasehold_engine::hook::AcquireLease;
use leasehold_tests::act::acquire;
use leasehold_tests::{bytes, context, provider};
use std::time::Duration;

const ROUNDS: usize = 20_000;

pub(crate) fn fresh() {
    let component = bytes("minimal");
    for (which, raw) in [("its own pool", Raw::new(&component)), ("our pool", Raw::tuned(&component))] {
        let (ours, raw) = compare(&raw);
        let (ours_us, raw_us) = (ours.as_secs_f64() * 1e6, raw.as_secs_f64() * 1e6);
        let against = format!("raw engine with {which}: {raw:.2?}");
        row("fresh call, all limits on", ours, &against, &format!("{:.2} ×", ours_us / raw_us), "≤ 2 ×");
        let more = format!("{:+.1} µs", ours_us - raw_us);
        println!("| what our side adds to it | {more} | {against} | | + 2 µs |");
    }
}

fn compare(raw: &Raw) -> (Duration, Duration) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (ours, options) = (provider("minimal"), CallOptions::default());
    in_turns(
        ROUNDS,
        || {
            runtime.block_on(async {
                let hook = AcquireLease { request: acquire("name-1") };
                ours.call(hook, context("{}"), &options).await.answer.unwrap().unwrap();
            });
        },
        || runtime.block_on(raw.fresh()),
    )
}
