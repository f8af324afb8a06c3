//! Writing a lease again that the store no longer has, from what was put aside.

use super::event::note;
use super::lease::{COLUMNS, read};
use super::sql::values;
use super::{Durability, Failure, Store, StoreError};
use crate::fault::Step;
use crate::{Lease, Owner, State};

impl Store {
    /// Writes a lease that is missing, as one whose creation may have happened.
    pub(crate) async fn restore(&self, lease: &Lease) -> Result<Lease, StoreError> {
        const SQL: &str = "INSERT INTO leases (id, version, stamp, environment, provider, plugin, driver, digest, tenant, \
             run, fingerprint, policy, preserve, held, state, config, wishes, owner, due_ms, lifetime_ms, \
             created_ms, updated_ms) VALUES (?1, 1, '', ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, \
             ?14, ?15, ?16, ?17, ?18, ?19, ?17) ON CONFLICT (id) DO NOTHING";
        let (lease, now) = (lease.clone(), self.now_ms());
        self.step(Step::TakeIn, Durability::Disk, move |on| {
            let wishes = serde_json::to_string(&lease.wishes).unwrap_or_else(|_| "{}".into());
            let (id, pins) = (lease.id.as_str(), &lease.pins);
            let values = values![
                id,
                &lease.environment,
                &pins.provider,
                &pins.plugin,
                &pins.driver,
                &pins.digest,
                &lease.tenant,
                lease.run.as_ref(),
                &lease.fingerprint,
                lease.policy.word(),
                lease.preserve,
                lease.held,
                State::Acquiring.word(),
                &lease.config,
                wishes,
                lease.owner.as_ref().map(Owner::to_text),
                now,
                lease.lifetime_ms,
                lease.created_ms
            ];
            if on.execute(SQL, &values)? > 0 {
                const CREATION: &str = "INSERT INTO creations (name, lease, begun_ms, settle_ms) \
                    VALUES (?1, ?1, ?2, ?3)";
                on.execute(CREATION, &values![id, lease.created_ms, now])?;
                note(on, &lease.id, now, None, State::Acquiring, "put back: the store had lost it", None)?;
            }
            let found = on.query(&format!("SELECT {COLUMNS} FROM leases WHERE id = ?1"), &values![id])?;
            let row = found.into_iter().next();
            row.map(read)
                .transpose()?
                .ok_or_else(|| Failure::Refused(StoreError::Missing { id: lease.id.clone() }))
        })
        .await
    }
}
