//! What the tests share: one engine, fixtures by name, and a context to call with.
#![allow(clippy::expect_used, clippy::panic, reason = "a test that cannot be set up has failed")]

pub mod act;
pub mod edge;
pub mod engines;

use leasehold_contract::authority::Permission;
use leasehold_engine::bindings::types::{Context, Lease};
use leasehold_engine::{Cache, CallOptions, Compiled, Engine, EngineOptions, Limit, Limits, Provider};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, OnceLock, PoisonError};

/// The engine of this test process. One for all tests, as in a host.
pub fn engine() -> &'static Engine {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    ENGINE.get_or_init(|| Engine::new(EngineOptions::default()).expect("the engine runs on this machine"))
}

/// An engine that keeps compiled components here.
pub fn engine_with(cache: Cache) -> Engine {
    let options = EngineOptions { cache: Some(cache), ..EngineOptions::default() };
    Engine::new(options).expect("the engine runs on this machine")
}

/// The bytes of a fixture.
pub fn bytes(fixture: &str) -> Vec<u8> {
    leasehold_builder::fixture(fixture).unwrap_or_else(|error| panic!("{error:#}"))
}

/// A fixture, compiled and read; compiled once for a test process.
pub fn compiled(fixture: &str) -> Compiled {
    static COMPILED: Mutex<BTreeMap<String, Compiled>> = Mutex::new(BTreeMap::new());
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    let load = || engine().load(&bytes(fixture)).unwrap_or_else(|error| panic!("{fixture}: {error}"));
    compiled.entry(fixture.into()).or_insert_with(load).clone()
}

/// A fixture, linked with clocks and random numbers.
pub fn provider(fixture: &str) -> Provider {
    let granted = BTreeSet::from([Permission::Time, Permission::Random]);
    compiled(fixture).link(&granted).unwrap_or_else(|error| panic!("{fixture}: {error}"))
}

/// A context with this configuration.
pub fn context(config: &str) -> Context {
    Context {
        driver_key: "fixture".into(),
        tenant: "tenant".into(),
        environment_id: "environment".into(),
        run_id: Some("run".into()),
        invocation_id: "invocation".into(),
        config: config.into(),
        remaining_ms: 0,
        trace_parent: None,
    }
}

/// A lease as a provider might have made it.
pub fn lease() -> Lease {
    Lease { id: "lease-1".into(), metadata: None, expires_at_ms: None }
}

/// Default limits with these changed.
pub fn limits(changes: &[(Limit, u64)]) -> Limits {
    let set = |limits: Limits, (limit, value): &(Limit, u64)| limits.with(*limit, *value);
    changes.iter().try_fold(Limits::default(), set).expect("the values are in range")
}

/// Options with these limits.
pub fn options(changes: &[(Limit, u64)]) -> CallOptions {
    CallOptions { limits: limits(changes), ..CallOptions::default() }
}

/// Every fixture there is, in alphabetical order.
pub fn fixtures() -> Vec<String> {
    let directory = leasehold_builder::guests_dir();
    let files = std::fs::read_dir(&directory)
        .unwrap_or_else(|error| panic!("{}: {error}; run `cargo guests` first", directory.display()));
    let mut names: Vec<_> = files
        .map(|file| file.expect("the directory can be read").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "wasm"))
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    names
}
