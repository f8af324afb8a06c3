//! What a reconcile did, as text and as JSON.

use crate::lease;
use leasehold::contract::text::plain;
use leasehold::{Lease, Report, State};
use serde_json::{Value, json as object};

/// Bytes of a reason that are shown; a provider may give a whole log.
const WHY_MAX: usize = 1_000;

/// Whether nothing waits for another try or for a person.
pub(super) fn is_clean(report: &Report) -> bool {
    report.unsettled.is_empty() && report.stuck.is_empty() && report.store_failed.is_empty()
}

/// One line for everything that was left.
pub(super) fn text(report: &Report) -> String {
    let mut text = String::new();
    let mut say = |what: &str, lease: &Lease, why: &str| {
        let why = if why.is_empty() { String::new() } else { format!(": {}", plain(why, WHY_MAX)) };
        text.push_str(&format!("{what} {} ({}){why}\n", lease.id, plain(&lease.environment, WHY_MAX)));
    };
    let why = |lease: &Lease| lease.last_error.clone().unwrap_or_else(|| "no reason was recorded".into());
    for lease in &report.settled {
        say(if lease.state == State::Retained { "kept" } else { "ended" }, lease, "");
    }
    report.unsettled.iter().for_each(|lease| say("not ended", lease, &why(lease)));
    report.put_off.iter().for_each(|(lease, unready)| say("put off", lease, &unready.to_string()));
    report.stuck.iter().for_each(|lease| say("stuck", lease, &why(lease)));
    report.out_of_sight.iter().for_each(|lease| say("out of sight", lease, ""));
    for id in &report.taken_in {
        text.push_str(&format!("written down now {id}\n"));
    }
    for (id, error) in &report.store_failed {
        text.push_str(&format!("not written {id}: {error}\n"));
    }
    text
}

/// The same for programs.
pub(super) fn json(report: &Report) -> Value {
    let all = |leases: &[Lease]| leases.iter().map(lease::json::lease).collect::<Vec<_>>();
    let put_off: Vec<_> = report
        .put_off
        .iter()
        .map(|(lease, unready)| object!({"lease": lease::json::lease(lease), "why": unready.to_string()}))
        .collect();
    let failed: Vec<_> = report
        .store_failed
        .iter()
        .map(|(id, error)| object!({"id": id.as_str(), "error": error.to_string()}))
        .collect();
    object!({
        "settled": all(&report.settled),
        "unsettled": all(&report.unsettled),
        "putOff": put_off,
        "stuck": all(&report.stuck),
        "outOfSight": all(&report.out_of_sight),
        "storeFailed": failed,
        "takenIn": report.taken_in.iter().map(|id| id.as_str()).collect::<Vec<_>>(),
    })
}
