//! Connections that are kept for the next request, apart for each provider, tenant and environment.

use crate::http::target::Target;
use hyper::client::conn::http1::SendRequest;
use leasehold_engine::{Digest, Scope};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use wasmtime_wasi::runtime::AbortOnDropJoinHandle;
use wasmtime_wasi_http::WasiBody;

/// How long an idle connection is kept. Servers close theirs after a minute or so; a shorter time meets
/// fewer that are closed already.
const IDLE: Duration = Duration::from_secs(30);

/// Idle connections of one pool. A call has 32 requests at one time; more connections would be of many hosts.
const IDLE_MAX: usize = 32;

/// Pools that are kept. Hit: those that nobody uses are dropped, and the others stay.
const POOLS_MAX: usize = 1_024;

/// Where a connection leads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Origin {
    /// Over the network.
    Network(Target),
    /// To a Unix socket.
    Unix(String),
}

/// An open connection. Dropping it closes it.
pub(super) struct Connection {
    pub(super) sender: SendRequest<WasiBody>,
    pub(super) origin: Origin,
    /// The address that was judged and connected to.
    pub(super) peer: Option<IpAddr>,
    pub(super) _driver: AbortOnDropJoinHandle<()>,
}

/// The connections of one provider, tenant and environment.
#[derive(Default)]
pub(super) struct Pool(Mutex<Vec<(Connection, Instant)>>);

impl Pool {
    /// An idle connection, the latest used first: it is the least likely to be closed.
    pub(super) fn take(&self, origin: &Origin) -> Option<Connection> {
        let mut idle = self.lock();
        let now = Instant::now();
        idle.retain(|(connection, since)| {
            !connection.sender.is_closed() && now.duration_since(*since) < IDLE
        });
        let found = idle.iter().rposition(|(connection, _)| connection.origin == *origin)?;
        Some(idle.remove(found).0)
    }

    /// Keeps a connection whose last answer was read to its end.
    pub(super) fn put(&self, connection: Connection) {
        if connection.sender.is_closed() {
            return;
        }
        let mut idle = self.lock();
        if idle.len() == IDLE_MAX {
            idle.remove(0);
        }
        idle.push((connection, Instant::now()));
    }

    fn expire(&self) -> bool {
        let mut idle = self.lock();
        let now = Instant::now();
        idle.retain(|(connection, since)| {
            !connection.sender.is_closed() && now.duration_since(*since) < IDLE
        });
        idle.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Connection, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whose connections they are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Owner {
    provider: Digest,
    tenant: String,
    environment: String,
}

/// The pools of a host.
#[derive(Default)]
pub(super) struct Pools(Mutex<Known>);

#[derive(Default)]
struct Known {
    pools: HashMap<Owner, Arc<Pool>>,
    swept: Option<Instant>,
}

impl Pools {
    /// The pool of a call's owner.
    pub(super) fn of(&self, scope: &Scope) -> Arc<Pool> {
        let owner = Owner {
            provider: scope.provider,
            tenant: scope.tenant.clone(),
            environment: scope.environment.clone(),
        };
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Known { pools, swept } = &mut *known;
        let due = swept.is_none_or(|swept| swept.elapsed() >= IDLE) || pools.len() >= POOLS_MAX;
        if due {
            // Nobody holds it and nothing is in it: it can be made again.
            pools.retain(|_, pool| !pool.expire() || Arc::strong_count(pool) > 1);
            *swept = Some(Instant::now());
        }
        pools.entry(owner).or_default().clone()
    }
}
