//! A configured provider, from which leases are acquired.

use crate::error::Error;
use crate::runtime::Leasehold;
use crate::session::Session;
use leasehold_lease::Wanted;
use serde_json::{Map, Value};

/// A provider, and how it is to be used.
#[derive(Clone, Debug, PartialEq)]
pub struct Environment {
    /// The environment's own name, under which leases are recorded.
    pub name: String,
    /// The provider's name.
    pub provider: String,
    /// The provider's configuration. Never holds a secret.
    pub config: Map<String, Value>,
}

/// Who a lease is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct For {
    /// The tenant it belongs to.
    pub tenant: String,
    /// The run it is for, if it is for one.
    pub run: Option<String>,
}

impl Default for For {
    /// The one tenant of a host that serves one person.
    fn default() -> Self {
        For { tenant: "local".into(), run: None }
    }
}

impl Environment {
    /// An environment of this provider, named like it and without configuration.
    pub fn of(provider: impl Into<String>) -> Self {
        let provider = provider.into();
        Environment { name: provider.clone(), provider, config: Map::new() }
    }

    /// Acquires a lease that ends with its run.
    ///
    /// Dropping the future undoes it. A lease whose host dies is ended by [`Leasehold::reconcile`].
    ///
    /// # Errors
    /// When there is no such provider, or it does not supply a sandbox.
    pub async fn acquire(&self, runtime: &Leasehold, who: For) -> Result<Session, Error> {
        let provider = runtime.provider(&self.provider)?;
        let wanted = Wanted {
            run: who.run,
            config: Value::Object(self.config.clone()).to_string(),
            ..Wanted::new(self.name.clone(), provider.pins(&self.provider), who.tenant)
        };
        let leases = runtime.leases().clone();
        let lease = leases.acquire(wanted).await?.lease;
        Ok(Session { environment: self.clone(), provider, leases, lease })
    }
}
