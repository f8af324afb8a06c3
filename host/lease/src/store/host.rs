//! Hosts that share a server cannot see each other's processes, so each says regularly that it lives.

use super::sql::{SqlError, Statements, values};
use super::{Durability, Store, StoreError};
use crate::{Owner, Standing};
use std::collections::HashMap;
use std::time::Duration;

/// The server's own time in milliseconds: the clocks of several hosts need not agree.
const NOW: &str = "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)";

/// A host that has not been heard of for this long by the server's clock is gone; with beats every ten
/// seconds five of them were lost. Its leases are then taken up by another host.
pub(crate) const STALE: Duration = Duration::from_secs(60);

impl Store {
    /// Says that this owner lives. On a machine's own file nobody needs to be told.
    pub(crate) async fn beat(&self, me: &Owner) -> Result<(), StoreError> {
        if !self.is_shared() {
            return Ok(());
        }
        let me = me.to_text();
        let sql = format!(
            "INSERT INTO hosts (owner, beat_ms) VALUES (?1, {NOW}) \
             ON CONFLICT (owner) DO UPDATE SET beat_ms = excluded.beat_ms"
        );
        self.write("saying that this host lives", Durability::Process, move |on| {
            on.execute(&sql, &values![&me])?;
            Ok(())
        })
        .await
    }

    /// Everybody who works on a lease, as written, and how they stand. An owner that cannot be read is
    /// out of sight.
    pub(crate) async fn owners(&self, stale: Duration) -> Result<Vec<(String, Standing)>, StoreError> {
        let shared = self.is_shared();
        self.read("looking for owners", move |on| {
            let rows = on.query("SELECT DISTINCT owner FROM leases WHERE owner IS NOT NULL", &[])?;
            let owners = rows.into_iter().map(|mut row| row.text()).collect::<Result<Vec<_>, _>>()?;
            let beats = if shared { since_beat(on)? } else { HashMap::new() };
            let standing = |text: &str| {
                let Some(owner) = Owner::parse(text) else { return Standing::OutOfSight };
                let elsewhere = || match beats.get(text) {
                    Some(since) if *since < stale => Standing::Alive,
                    Some(_) => Standing::Gone,
                    None => Standing::OutOfSight,
                };
                match (owner.standing(), owner.is_of_this_boot()) {
                    // What this machine can see of its own processes is certain at once.
                    (standing @ (Standing::Alive | Standing::Gone), true) => standing,
                    (_, _) if shared => elsewhere(),
                    (standing, _) => standing,
                }
            };
            Ok(owners.into_iter().map(|text| (standing(&text), text)).map(|(it, text)| (text, it)).collect())
        })
        .await
    }
}

/// How long ago each host was heard of.
fn since_beat(on: &mut dyn Statements) -> Result<HashMap<String, Duration>, SqlError> {
    let rows = on.query(&format!("SELECT owner, {NOW} - beat_ms FROM hosts"), &[])?;
    rows.into_iter().map(|mut row| Ok((row.text()?, Duration::from_millis(row.number()?)))).collect()
}
