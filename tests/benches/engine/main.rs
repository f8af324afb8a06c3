//! What the engine costs, as ratios measured in one run: `cargo bench --bench engine`.
//!
//! Every comparison takes turns, A B A B …, so that a machine that slows down slows both. Medians are
//! shown; on a shared machine a single absolute time says little.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a benchmark"
)]

mod call;
mod first;
mod instrument;
mod measure;
mod raw;
mod verify;

fn main() {
    // The benchmark starts itself as the new process whose first call is measured.
    if let Some(cache) = std::env::args().skip_while(|arg| arg != first::CHILD).nth(1) {
        return first::child(&cache);
    }
    println!("| what | ours | against | ratio | goal |");
    println!("| --- | --- | --- | --- | --- |");
    call::fresh();
    verify::cached();
    first::reply();
    println!();
    println!("| instrumentation | loop | call-heavy |");
    println!("| --- | --- | --- |");
    instrument::compare();
}
