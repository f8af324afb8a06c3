//! The first row of a lease: written, and on the disk, before the provider is asked for anything.

use super::event::note;
use super::lease::{COLUMNS, read};
use super::sql::{SqlError, Statements, values};
use super::{Durability, Failure, Store, StoreError};
use crate::fault::Step;
use crate::{Lease, LeaseId, Owner, Pins, Policy, Scope, State, Wishes};
use std::time::Duration;

/// A lease before anything was asked for.
#[derive(Clone, Debug)]
pub(crate) struct Intent {
    pub(crate) id: LeaseId,
    pub(crate) environment: String,
    pub(crate) pins: Pins,
    pub(crate) tenant: String,
    pub(crate) run: Option<String>,
    pub(crate) scope: Option<Scope>,
    pub(crate) fingerprint: String,
    pub(crate) policy: Policy,
    pub(crate) preserve: bool,
    pub(crate) held: bool,
    pub(crate) config: String,
    pub(crate) wishes: Wishes,
    pub(crate) lifetime: Duration,
    pub(crate) owner: Owner,
    /// How long after now a creation may still come to light at the back end.
    pub(crate) settle: Duration,
    pub(crate) reason: String,
}

impl Store {
    /// Writes a lease down, with the creation it is about to ask for.
    pub(crate) async fn intend(&self, intent: Intent) -> Result<Lease, StoreError> {
        let (now, stamp) = (self.now_ms(), stamp()?);
        self.step(Step::Intent, Durability::Disk, move |on| insert(on, &intent, now, &stamp)).await
    }
}

/// A mark by which a write that may have been done before the connection was lost is known again.
pub(super) fn stamp() -> Result<String, StoreError> {
    let mut bytes = [0u8; 8];
    getrandom::fill(&mut bytes).map_err(|source| StoreError::Random { source })?;
    Ok(format!("{:016x}", u64::from_ne_bytes(bytes)))
}

/// The lease if it carries this mark: then the write was done, and only its answer was lost.
pub(super) fn done(on: &mut dyn Statements, id: &LeaseId, stamp: &str) -> Result<Option<Lease>, SqlError> {
    let sql = format!("SELECT {COLUMNS} FROM leases WHERE id = ?1 AND stamp = ?2");
    on.query(&sql, &values![id.as_str(), stamp])?.pop().map(read).transpose()
}

fn insert(on: &mut dyn Statements, intent: &Intent, now: u64, stamp: &str) -> Result<Lease, Failure> {
    let sql = format!(
        "INSERT INTO leases (id, version, stamp, environment, provider, plugin, driver, digest, tenant, run, \
         workspace, agent, adapter, fingerprint, policy, preserve, held, state, config, wishes, owner, \
         due_ms, lifetime_ms, created_ms, updated_ms) VALUES (?1, 1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, \
         ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?21, ?21) \
         ON CONFLICT (id) DO NOTHING RETURNING {COLUMNS}"
    );
    let Intent { pins, scope, .. } = intent;
    let wishes = serde_json::to_string(&intent.wishes).unwrap_or_else(|_| "{}".into());
    let rows = on.query(
        &sql,
        &values![
            intent.id.as_str(),
            stamp,
            &intent.environment,
            &pins.provider,
            &pins.plugin,
            &pins.driver,
            &pins.digest,
            &intent.tenant,
            intent.run.as_ref(),
            scope.as_ref().map(|scope| &scope.workspace),
            scope.as_ref().map(|scope| &scope.agent),
            scope.as_ref().and_then(|scope| scope.adapter.as_ref()),
            &intent.fingerprint,
            intent.policy.word(),
            intent.preserve,
            intent.held,
            State::Acquiring.word(),
            &intent.config,
            wishes,
            intent.owner.to_text(),
            now,
            millis(intent.lifetime),
        ],
    )?;
    let Some(row) = rows.into_iter().next() else {
        let written = done(on, &intent.id, stamp)?;
        return written.ok_or(Failure::Refused(StoreError::Conflict { doing: "writing a lease" }));
    };
    let lease = read(row)?;
    let creation = "INSERT INTO creations (name, lease, begun_ms, settle_ms) VALUES (?1, ?1, ?2, ?3)";
    let settle = now.saturating_add(millis(intent.settle));
    on.execute(creation, &values![intent.id.as_str(), now, settle])?;
    note(on, &lease.id, now, None, State::Acquiring, &intent.reason, None)?;
    Ok(lease)
}

pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
