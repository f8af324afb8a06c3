//! Reading and resolving a component that is already compiled.

use crate::measure::{median, row, time};
use leasehold_contract::capability::{Declared, Narrowing, resolve};
use leasehold_tests::compiled;
use std::hint::black_box;

const ROUNDS: usize = 5_000;

pub(crate) fn cached() {
    for fixture in ["minimal", "full"] {
        let compiled = compiled(fixture);
        let mut verify = || {
            let inspection = compiled.inspect();
            let effective = resolve(inspection.verification(), &Declared::nothing(), &Narrowing::none());
            black_box(effective);
        };
        let taken = median((0..ROUNDS).map(|_| time(&mut verify)).collect());
        row(&format!("verify `{fixture}`, compiled already"), taken, "", "", "< 100 µs");
    }
}
