//! Taking turns and taking medians.

use std::time::{Duration, Instant};

/// Medians of `a` and `b`, taken in turns after a warm-up of a tenth.
pub(crate) fn in_turns(rounds: usize, mut a: impl FnMut(), mut b: impl FnMut()) -> (Duration, Duration) {
    let (mut of_a, mut of_b) = (Vec::with_capacity(rounds), Vec::with_capacity(rounds));
    for round in 0..rounds + rounds / 10 {
        let (taken_a, taken_b) = (time(&mut a), time(&mut b));
        if round >= rounds / 10 {
            of_a.push(taken_a);
            of_b.push(taken_b);
        }
    }
    (median(of_a), median(of_b))
}

pub(crate) fn time(work: &mut impl FnMut()) -> Duration {
    let started = Instant::now();
    work();
    started.elapsed()
}

pub(crate) fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// A row of the first table.
pub(crate) fn row(what: &str, ours: Duration, against: &str, ratio: &str, goal: &str) {
    println!("| {what} | {ours:.2?} | {against} | {ratio} | {goal} |");
}
