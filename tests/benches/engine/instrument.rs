//! What fuel and epochs cost in guest code: a tight loop, and calls and nothing else.

use crate::measure::{median, time};
use crate::raw::config;
use std::hint::black_box;
use wasmtime::component::{Component, Linker, TypedFunc};
use wasmtime::{Engine, Store};

const LOOP: u64 = 50_000_000;
const FIB: u64 = 30;
const ROUNDS: usize = 11;

const COMPONENT: &str = r#"(component
    (core module $code
        (func (export "spin") (param $n i64) (result i64) (local $x i64)
            (local.set $x (i64.const 88172645463325252))
            (loop $again
                (local.set $x (i64.xor (local.get $x) (i64.shl (local.get $x) (i64.const 13))))
                (local.set $x (i64.xor (local.get $x) (i64.shr_u (local.get $x) (i64.const 7))))
                (local.set $n (i64.sub (local.get $n) (i64.const 1)))
                (br_if $again (i64.ne (local.get $n) (i64.const 0))))
            (local.get $x))
        (func $fib (export "fib") (param $n i64) (result i64)
            (if (result i64) (i64.lt_u (local.get $n) (i64.const 2))
                (then (local.get $n))
                (else (i64.add
                    (call $fib (i64.sub (local.get $n) (i64.const 1)))
                    (call $fib (i64.sub (local.get $n) (i64.const 2))))))))
    (core instance $i (instantiate $code))
    (func (export "spin") (param "n" u64) (result u64) (canon lift (core func $i "spin")))
    (func (export "fib") (param "n" u64) (result u64) (canon lift (core func $i "fib"))))"#;

struct Case {
    name: &'static str,
    store: Store<()>,
    spin: TypedFunc<(u64,), (u64,)>,
    fib: TypedFunc<(u64,), (u64,)>,
}

pub(crate) fn compare() {
    let kinds = [("none", false, false), ("epoch", false, true), ("fuel", true, false), ("both", true, true)];
    let mut cases: Vec<_> = kinds.into_iter().map(|(name, fuel, epoch)| case(name, fuel, epoch)).collect();
    let mut times = vec![(Vec::new(), Vec::new()); cases.len()];
    for _ in 0..ROUNDS {
        for (case, (spins, fibs)) in cases.iter_mut().zip(&mut times) {
            spins.push(time(&mut || _ = black_box(case.spin.call(&mut case.store, (LOOP,)).unwrap())));
            fibs.push(time(&mut || _ = black_box(case.fib.call(&mut case.store, (FIB,)).unwrap())));
        }
    }
    let medians: Vec<_> = times.into_iter().map(|(spins, fibs)| (median(spins), median(fibs))).collect();
    for (case, (spin, fib)) in cases.iter().zip(&medians) {
        let over = |taken: f64, base: f64| format!("{:+.0} %", (taken / base - 1.0) * 100.0);
        let spin_over = over(spin.as_secs_f64(), medians[0].0.as_secs_f64());
        let fib_over = over(fib.as_secs_f64(), medians[0].1.as_secs_f64());
        println!("| {} | {spin:.1?} ({spin_over}) | {fib:.1?} ({fib_over}) |", case.name);
    }
}

fn case(name: &'static str, fuel: bool, epoch: bool) -> Case {
    let mut config = config();
    config.consume_fuel(fuel).epoch_interruption(epoch);
    let engine = Engine::new(&config).unwrap();
    let component = Component::new(&engine, wat::parse_str(COMPONENT).unwrap()).unwrap();
    let mut store = Store::new(&engine, ());
    if fuel {
        store.set_fuel(u64::MAX).unwrap();
    }
    if epoch {
        store.set_epoch_deadline(u64::MAX / 2);
    }
    let instance = Linker::new(&engine).instantiate(&mut store, &component).unwrap();
    let spin = instance.get_typed_func(&mut store, "spin").unwrap();
    let fib = instance.get_typed_func(&mut store, "fib").unwrap();
    Case { name, store, spin, fib }
}
