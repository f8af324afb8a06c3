//! Small changes within a state: nothing of the life cycle moves, so no transition is needed.

use super::event::note;
use super::intent::{done, millis, stamp};
use super::lease::{COLUMNS, read};
use super::sql::{Statements, Value, values};
use super::{Durability, Failure, Store, StoreError};
use crate::fault::Step;
use crate::{Lease, LeaseId, Owner, Policy, ProviderLease, State};
use std::time::Duration;

impl Store {
    /// Writes down whether an active or resumed lease holds work that was not brought back.
    ///
    /// # Errors
    /// [`StoreError::Missing`] when there is no such lease.
    pub(crate) async fn set_unexported(&self, lease: &Lease, unexported: bool) -> Result<Lease, StoreError> {
        // Where the mark keeps the allocation from being deleted, it must not be lost.
        let kept = lease.preserve || lease.policy == Policy::Reuse;
        let durability = if kept && unexported { Durability::Disk } else { Durability::Process };
        let what = if unexported { "it holds work" } else { "its work was brought back" };
        let set = ("unexported", Value::from(unexported));
        self.mark(Step::Preserve, durability, lease, vec![set], what, None).await
    }

    /// Writes down a longer life that the provider promised to an active lease.
    pub(crate) async fn renew(
        &self,
        lease: &Lease,
        renewed: &ProviderLease,
        bill: Option<String>,
    ) -> Result<Lease, StoreError> {
        let set = vec![
            ("metadata", Value::from(renewed.metadata.as_ref())),
            ("expires_at_ms", Value::from(renewed.expires_at_ms)),
        ];
        self.mark(Step::Renew, Durability::Process, lease, set, "renewed while in use", bill).await
    }

    /// Puts off a lease whose provider is not ready, if it is still as it was seen. No attempt is used and
    /// nothing has happened to it.
    pub(crate) async fn defer(&self, lease: &Lease, by: Duration, why: &str) -> Result<(), StoreError> {
        const SQL: &str = "UPDATE leases SET due_ms = ?1, updated_ms = ?2, last_error = ?3, \
            version = version + 1 WHERE id = ?4 AND version = ?5";
        let now = self.now_ms();
        let values = values![now.saturating_add(millis(by)), now, why, lease.id.as_str(), lease.version];
        self.step(Step::Defer, Durability::Process, move |on| {
            on.execute(SQL, &values)?;
            Ok(())
        })
        .await
    }

    async fn mark(
        &self,
        step: Step,
        durability: Durability,
        lease: &Lease,
        set: Vec<(&'static str, Value)>,
        what: &'static str,
        bill: Option<String>,
    ) -> Result<Lease, StoreError> {
        let (id, state) = (lease.id.clone(), lease.state);
        // A lease that a host of this name no longer owns was taken by another meanwhile.
        let owner = lease.owner.as_ref().map(Owner::to_text);
        let (now, stamp) = (self.now_ms(), stamp()?);
        self.step(step, durability, move |on| {
            let mut values = values![now, &stamp, id.as_str(), state.word(), owner.as_ref()].to_vec();
            let mut columns = String::new();
            for (column, value) in &set {
                values.push(value.clone());
                columns += &format!(", {column} = ?{}", values.len());
            }
            let sql = format!(
                "UPDATE leases SET version = version + 1, updated_ms = ?1, stamp = ?2{columns} \
                 WHERE id = ?3 AND state = ?4 AND owner IS NOT DISTINCT FROM ?5 RETURNING {COLUMNS}"
            );
            match on.query(&sql, &values)?.into_iter().next() {
                Some(row) => {
                    let lease = read(row)?;
                    note(on, &id, now, Some(state), state, what, bill.as_deref())?;
                    Ok(lease)
                }
                None => match done(on, &id, &stamp)? {
                    Some(lease) => Ok(lease),
                    None => Err(gone(on, &id, state)?),
                },
            }
        })
        .await
    }
}

fn gone(on: &mut dyn Statements, id: &LeaseId, expected: State) -> Result<Failure, super::sql::SqlError> {
    let rows = on.query("SELECT state FROM leases WHERE id = ?1", &values![id.as_str()])?;
    let id = id.clone();
    Ok(Failure::Refused(match rows.into_iter().next() {
        Some(mut row) => StoreError::Changed { id, expected, found: row.word(State::parse)? },
        None => StoreError::Missing { id },
    }))
}
