//! The registry over a real store and a loader that does what a test says.

mod changes;
mod listing;
mod resolving;

use super::home::{Home, on_both};
use crate::HandClock;
use crate::registry::*;
use leasehold_contract::declaration::manifest;
use leasehold_contract::{Method, Verdict, Verification};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

/// What the loader does with the components of a provider.
#[derive(Clone, Debug)]
enum Does {
    Load(Vec<Method>),
    Fail { passing: bool },
    Hang,
}

#[derive(Clone, Debug, Default)]
struct Bench {
    does: Arc<Mutex<HashMap<String, Does>>>,
    starts: Arc<AtomicU32>,
}

impl Bench {
    fn let_it(&self, key: &str, does: Does) {
        self.does.lock().unwrap().insert(key.into(), does);
    }

    fn starts(&self) -> u32 {
        self.starts.load(Ordering::Relaxed)
    }
}

/// A component that remembers which it is.
#[derive(Clone, Debug)]
struct Part {
    pin: ComponentRef,
    verification: Verification,
}

impl Loader for Bench {
    type Component = Part;

    fn load(&self, pin: ComponentRef) -> Starting<Part> {
        self.starts.fetch_add(1, Ordering::Relaxed);
        let does = self.does.lock().unwrap().get(&pin.key).cloned();
        Box::pin(async move {
            match does.unwrap_or(Does::Load(vec![Method::AcquireLease])) {
                Does::Load(methods) => {
                    let verification =
                        methods.into_iter().map(|method| (method, Verdict::Verified)).collect();
                    Ok(Part { pin, verification })
                }
                Does::Fail { passing } => Err(Unloaded { why: "it is broken".into(), passing }),
                Does::Hang => std::future::pending().await,
            }
        })
    }

    fn verification(component: &Part) -> &Verification {
        &component.verification
    }
}

async fn registry(home: &Home) -> (Registry<Bench>, Bench, HandClock) {
    let bench = Bench::default();
    (Registry::new(home.store().await, bench.clone()), bench, home.clock.clone())
}

/// A driver, as a declaration has it.
fn driver(key: &str, kind: &str, capabilities: Value) -> Value {
    json!({"driverKey": key, "kind": kind, "displayName": key, "configSchema": {"title": key},
        "sandboxCapabilities": capabilities})
}

fn sandbox(key: &str) -> Value {
    driver(key, "sandbox_provider", json!({}))
}

fn package(key: &str, digest: &str, drivers: &[Value]) -> Package {
    let declaration = json!({"pluginKey": key, "version": "1", "capabilities": ["environment.drivers.register"],
        "environmentDrivers": drivers});
    Package {
        id: format!("prv-{key}"),
        manifest: manifest(&declaration).unwrap(),
        digest: digest.into(),
        grants: "[]".into(),
        source: "a test".into(),
        embedded: false,
    }
}

/// Installs a provider with one sandbox driver.
async fn installed(registry: &Registry<Bench>, key: &str, driver: &str) -> ProviderRecord {
    let change = registry.install(package(key, "d1", &[sandbox(driver)])).await.unwrap();
    change.record().clone()
}

fn refused<T: std::fmt::Debug>(outcome: Result<T, RegistryError>) -> Refusal {
    match outcome.unwrap_err() {
        RegistryError::Refused(refusal) => refusal,
        other => unreachable!("{other}"),
    }
}
