//! Attempts at a cleanup: who made them, and how they came out.

use super::change::{Attempts, Change};
use super::sql::{SqlError, Statements, values};
use crate::limits::shortened;
use crate::{Goal, Lease, Owner, State};

/// Begins an attempt with the change that claims it, and ends it with the one that gives the lease back.
pub(super) fn follow(
    on: &mut dyn Statements,
    change: &Change,
    lease: &Lease,
    now: u64,
) -> Result<(), SqlError> {
    let id = lease.id.as_str();
    if change.learned.attempts == Attempts::Begin {
        const SQL: &str = "INSERT INTO attempts (lease, number, host, goal, begun_ms) \
            VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING";
        let host = lease.owner.as_ref().map(Owner::to_text).unwrap_or_default();
        let goal = lease.goal.unwrap_or(Goal::Delete).word();
        return on.execute(SQL, &values![id, lease.attempts, host, goal, now]).map(|_| ());
    }
    let ended = change.from == State::PendingCleanup && lease.owner.is_none();
    if ended && (lease.attempts > 0 || change.learned.attempts == Attempts::GiveBack) {
        const SQL: &str = "UPDATE attempts SET outcome = ?1, ended_ms = ?2 \
            WHERE lease = ?3 AND ended_ms IS NULL";
        on.execute(SQL, &values![shortened(&change.reason), now, id])?;
    }
    Ok(())
}
