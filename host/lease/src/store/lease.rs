//! A lease as it is stored.

use super::sql::{Row, SqlError};
use crate::{Disposition, Goal, LeaseId, Owner, Policy, ProviderLease, Retention, State, Wishes};
use serde::{Deserialize, Serialize};

/// The provider a lease is pinned to: the same one, at the same digest, must end it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Pins {
    /// Key of the provider.
    pub provider: String,
    /// Id of the installed provider, which no other ever has.
    pub plugin: String,
    /// Key of the provider's driver.
    pub driver: String,
    /// Digest of the component.
    pub digest: String,
}

/// For whom a lease that is kept between runs may be used again.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Scope {
    /// Id of the execution workspace.
    pub workspace: String,
    /// Id of the agent.
    pub agent: String,
    /// Kind of agent adapter, when one runs inside.
    pub adapter: Option<String>,
}

/// One stored lease. One lease is one allocation for all its life, however many runs use it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// Its name, which is the creation name of its allocation.
    pub id: LeaseId,
    /// How often it was written; of two that saw the same, one changes it.
    pub version: u64,
    /// The environment it was acquired from.
    pub environment: String,
    /// The provider that made it and must end it.
    pub pins: Pins,
    /// The tenant it belongs to.
    pub tenant: String,
    /// The run it was acquired for, or that uses it now.
    pub run: Option<String>,
    /// For whom it may be used again; none where it is not kept between runs.
    pub scope: Option<Scope>,
    /// What a later run must have in common with it: configuration, provider, secrets.
    pub fingerprint: String,
    /// What becomes of it when its use ends.
    pub policy: Policy,
    /// Whether work that was not brought back must never be deleted without a person.
    pub preserve: bool,
    /// Whether a person holds it instead of a process.
    pub held: bool,
    /// Where it stands.
    pub state: State,
    /// What is to become of its allocation, once its use ends.
    pub goal: Option<Goal>,
    /// Why its use ended, as a stable word.
    pub reason: Option<String>,
    /// The allocation, once its id has been seen.
    pub allocation: Option<ProviderLease>,
    /// The configuration as it was sent, without secrets.
    pub config: String,
    /// What else was asked for.
    pub wishes: Wishes,
    /// Whether it holds work that was not brought back.
    pub unexported: bool,
    /// What the last fitting receipt said.
    pub disposition: Option<Disposition>,
    /// Who works on it; none when nobody does.
    pub owner: Option<Owner>,
    /// How often a reconciler has tried to clean it up.
    pub attempts: u32,
    /// Whether only a person can help; it is then tried at the slowest interval.
    pub escalated: bool,
    /// When it is to be looked at again, in milliseconds since the Unix epoch.
    pub due_ms: u64,
    /// What went wrong last.
    pub last_error: Option<String>,
    /// How long it may be used in all, over every run.
    pub lifetime_ms: u64,
    /// How long earlier runs used it.
    pub used_ms: u64,
    /// When it last became active; none when it never was.
    pub acquired_ms: Option<u64>,
    /// When its lifetime is used up, while it is active.
    pub ends_ms: Option<u64>,
    /// When it was written first.
    pub created_ms: u64,
    /// When it was written last.
    pub updated_ms: u64,
    /// When it came to its end.
    pub released_ms: Option<u64>,
}

impl Lease {
    /// What the provider was told of its retention.
    #[must_use]
    pub fn retention(&self) -> Retention {
        self.policy.retention()
    }

    /// What is to become of it when whoever used it is no longer there: what was decided stays decided,
    /// what is meant to be kept is kept, and work is not deleted.
    pub(crate) fn goal_when_left(&self) -> Goal {
        match self.goal {
            Some(goal) => goal,
            None if self.acquired_ms.is_none() => Goal::Delete,
            None if self.unexported && self.preserve => Goal::Stop,
            None if self.policy == Policy::Reuse => Goal::Keep,
            None => Goal::Delete,
        }
    }
}

/// The columns in the order [`read`] takes them.
pub(super) const COLUMNS: &str = "id, version, environment, provider, plugin, driver, digest, tenant, run, \
    workspace, agent, adapter, fingerprint, policy, preserve, held, state, goal, reason, provider_lease_id, \
    metadata, expires_at_ms, config, wishes, unexported, disposition, owner, attempts, escalated, due_ms, \
    last_error, lifetime_ms, used_ms, acquired_ms, ends_ms, created_ms, updated_ms, released_ms";

/// Reads one row of [`COLUMNS`].
pub(super) fn read(mut row: Row) -> Result<Lease, SqlError> {
    let row = &mut row;
    Ok(Lease {
        id: row.word(LeaseId::parse)?,
        version: row.number()?,
        environment: row.text()?,
        pins: Pins { provider: row.text()?, plugin: row.text()?, driver: row.text()?, digest: row.text()? },
        tenant: row.text()?,
        run: row.optional_text()?,
        scope: scope(row)?,
        fingerprint: row.text()?,
        policy: row.word(Policy::parse)?,
        preserve: row.flag()?,
        held: row.flag()?,
        state: row.word(State::parse)?,
        goal: row.optional_word(Goal::parse)?,
        reason: row.optional_text()?,
        allocation: allocation(row)?,
        config: row.text()?,
        wishes: row.word(|text| serde_json::from_str(text).ok())?,
        unexported: row.flag()?,
        disposition: row.optional_word(Disposition::parse)?,
        owner: row.optional_word(Owner::parse)?,
        attempts: u32::try_from(row.number()?).unwrap_or(u32::MAX),
        escalated: row.flag()?,
        due_ms: row.number()?,
        last_error: row.optional_text()?,
        lifetime_ms: row.number()?,
        used_ms: row.number()?,
        acquired_ms: row.optional_number()?,
        ends_ms: row.optional_number()?,
        created_ms: row.number()?,
        updated_ms: row.number()?,
        released_ms: row.optional_number()?,
    })
}

fn scope(row: &mut Row) -> Result<Option<Scope>, SqlError> {
    let (workspace, agent, adapter) = (row.optional_text()?, row.optional_text()?, row.optional_text()?);
    Ok(workspace.zip(agent).map(|(workspace, agent)| Scope { workspace, agent, adapter }))
}

fn allocation(row: &mut Row) -> Result<Option<ProviderLease>, SqlError> {
    let (id, metadata, expires_at_ms) = (row.optional_text()?, row.optional_text()?, row.optional_number()?);
    Ok(id.map(|id| ProviderLease { id, metadata, expires_at_ms }))
}

/// Leases as a statement gives them.
pub(super) fn read_all(rows: Vec<Row>) -> Result<Vec<Lease>, SqlError> {
    rows.into_iter().map(read).collect()
}
