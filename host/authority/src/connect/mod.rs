//! Plain byte connections to endpoints that were granted by name.
//!
//! A connection ends with its handle, and at the latest with the call: its two tasks are owned by its streams.

mod stream;

use crate::http::{HttpEdge, Io, Unconnected};
use crate::reach::{Reach, Verdict};
use leasehold_contract::authority::{ConnectWay, Permission};
use leasehold_contract::text::plain;
use leasehold_engine::{Limit, Scope};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use stream::Streams;
use tokio::net::UnixStream;

/// Connections of one call that are open.
#[derive(Clone, Debug, Default)]
pub(crate) struct Open(Arc<AtomicU64>);

/// A place among them.
struct Place(Arc<AtomicU64>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Why there is no connection.
pub(crate) enum Failed {
    Denied(String),
    Unreachable(String),
    Timeout,
    Limit(String),
}

/// Opens a connection to a granted name.
pub(crate) async fn open(
    edge: &HttpEdge,
    scope: &Arc<Scope>,
    open: &Open,
    name: &str,
) -> Result<Streams, Failed> {
    let Some(reach) = scope.authority::<Reach>() else {
        return Err(Failed::Denied("this call may reach nothing".into()));
    };
    let allowed = scope.limits.get(Limit::Connections);
    let at = open.0.fetch_add(1, Ordering::Relaxed) + 1;
    let place = Place(open.0.clone());
    if at > allowed {
        let text = format!("limit `{}` hit: {at} of at most {allowed} connections", Limit::Connections);
        reach.note(Verdict::Limit(text.clone()));
        return Err(Failed::Limit(text));
    }
    let way = reach.policy().connect(name).map_err(|denial| {
        reach.denied(scope, &denial);
        Failed::Denied(denial.to_string())
    })?;
    scope.meter.request();
    let permission = match way {
        ConnectWay::Tcp(_) => Permission::Tcp,
        ConnectWay::Unix { .. } => Permission::UnixHttp,
    };
    let dial = async {
        match way {
            ConnectWay::Unix { socket, .. } => match UnixStream::connect(socket).await {
                Ok(stream) => Ok(Box::new(stream) as Box<dyn Io>),
                // Not where the socket is: that is the host's to know.
                Err(error) => Err(Failed::Unreachable(format!("`{}`: {error}", plain(name, 100)))),
            },
            ConnectWay::Tcp(endpoint) => {
                let host = endpoint.host.to_string();
                let host = host.trim_start_matches('[').trim_end_matches(']');
                match edge.tcp(host, endpoint.port, &endpoint.host, &endpoint.networks).await {
                    Ok((stream, _)) => Ok(Box::new(stream) as Box<dyn Io>),
                    Err(Unconnected::Failed(error)) => Err(Failed::Unreachable(error.to_string())),
                    Err(Unconnected::Address { found, network }) => {
                        let grant = format!("tcp={endpoint},{network}");
                        let denial = reach.policy().wrong_endpoint(name, found, grant);
                        reach.denied(scope, &denial);
                        Err(Failed::Denied(denial.to_string()))
                    }
                }
            }
        }
    };
    let time = scope.within(None, Limit::HttpConnect);
    let stream = tokio::time::timeout(time, dial).await.map_err(|_| Failed::Timeout)??;
    reach.note(Verdict::Allowed);
    let target = format!("a connection to `{}`", plain(name, 300));
    Ok(Streams::new(stream, scope.clone(), reach.clone(), permission, target, place))
}
