//! The provider `docker` by its hooks, past leases and their store.

use super::{Engine, IMAGE};
use crate::{context, limits};
use leasehold_authority::audit::Memory;
use leasehold_authority::facility::{ConnectFacility, EgressFacility, HttpFacility};
use leasehold_authority::http::{HttpEdge, HttpSettings};
use leasehold_authority::secret::resolve::{Consumer, NoSecrets, Purpose};
use leasehold_authority::state::MemoryState;
use leasehold_authority::{Reach, Services};
use leasehold_contract::authority::{Permission, Policy};
use leasehold_engine::bindings::types::Context;
use leasehold_engine::hook::Hook;
use leasehold_engine::{CallOptions, EngineOptions, Facility, Finished, Limit, Provider};
use serde_json::{Value, json};
use std::sync::Arc;

/// The provider, with one engine granted to it.
pub struct Docker {
    provider: Provider,
    policy: Arc<Policy>,
    config: Value,
}

impl Docker {
    /// The provider with this engine.
    pub fn of(engine: &Engine) -> Docker {
        let edge = Arc::new(HttpEdge::new(HttpSettings::default()).expect("the settings are good"));
        let facilities: Vec<Arc<dyn Facility>> = vec![
            Arc::new(HttpFacility::new(edge.clone())),
            Arc::new(ConnectFacility::new(edge)),
            Arc::new(EgressFacility),
        ];
        let options =
            EngineOptions { facilities: facilities.into_iter().collect(), ..EngineOptions::default() };
        let host = leasehold_engine::Engine::new(options).expect("the engine runs on this machine");
        let everything = Permission::ALL.iter().copied().collect();
        let compiled = host.load(&crate::bytes("docker")).expect("it is a component");
        let provider = compiled.link(&everything).expect("the host has all it wants");
        let grants = ["time".to_owned(), format!("unix-http=docker={}", engine.socket().display())];
        let grants = grants.iter().map(|grant| grant.parse().expect("a grant")).collect();
        let policy = Arc::new(Policy::new("docker", None, grants));
        Docker { provider, policy, config: json!({ "image": IMAGE }) }
    }

    /// Calls a method for a call of this id, with as much time as a long transfer takes.
    pub async fn call<H: Hook>(&self, invocation: &str, hook: H) -> Finished<H::Answer> {
        let services = Services {
            resolver: Arc::new(NoSecrets),
            state: Arc::new(MemoryState::default()),
            audit: Arc::new(Memory::default()),
        };
        let consumer = Consumer {
            tenant: "tenant".into(),
            environment: "environment".into(),
            run: None,
            purpose: Purpose::Use,
        };
        let opened = Reach::open(self.policy.clone(), services, &self.config.to_string(), &consumer).await;
        let (config, reach) = opened.expect("there are no secrets");
        let context = Context { invocation_id: invocation.into(), ..context(&config) };
        let limits = limits(&[(Limit::Wall, 600_000)]);
        let options = CallOptions { authority: Some(reach), limits, ..CallOptions::default() };
        self.provider.call(hook, context, &options).await
    }
}
