//! A lease as programs read it.

use crate::when;
use leasehold::{Event, Lease};
use serde_json::{Value, json};

pub(crate) fn lease(lease: &Lease) -> Value {
    let time = |ms: Option<u64>| ms.map(when::at);
    let allocation = lease.allocation.as_ref();
    json!({
        "id": lease.id.as_str(),
        "state": lease.state.word(),
        "environment": lease.environment,
        "provider": lease.pins.provider,
        "providerId": lease.pins.plugin,
        "driver": lease.pins.driver,
        "digest": lease.pins.digest,
        "tenant": lease.tenant,
        "run": lease.run,
        "policy": lease.policy.word(),
        "held": lease.held,
        "unexported": lease.unexported,
        "reason": lease.reason,
        "allocation": allocation.map(|allocation| &allocation.id),
        "expiresAt": time(allocation.and_then(|allocation| allocation.expires_at_ms)),
        "endsAt": time(lease.ends_ms),
        "disposition": lease.disposition.map(|disposition| disposition.word()),
        "attempts": lease.attempts,
        "stuck": lease.escalated,
        "lastError": lease.last_error,
        "createdAt": when::at(lease.created_ms),
        "acquiredAt": time(lease.acquired_ms),
        "updatedAt": when::at(lease.updated_ms),
        "releasedAt": time(lease.released_ms),
    })
}

pub(super) fn event(event: &Event) -> Value {
    // A bill is kept as the JSON it was written as.
    let bill = event.bill.as_deref().and_then(|bill| serde_json::from_str::<Value>(bill).ok());
    json!({
        "at": when::at(event.at_ms),
        "from": event.from.map(|state| state.word()),
        "to": event.to.word(),
        "reason": event.reason,
        "bill": bill,
    })
}
