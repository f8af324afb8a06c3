//! Reading leases.

use super::lease::{COLUMNS, read, read_all};
use super::sql::{Statements, Value, values};
use super::{Failure, Store, StoreError};
use crate::{Lease, LeaseId, Owner, State};

/// Which leases to list; what is none or empty leaves none out.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Only in these states.
    pub states: Vec<State>,
    /// Only of this environment.
    pub environment: Option<String>,
    /// Only of this tenant.
    pub tenant: Option<String>,
    /// Only of this run.
    pub run: Option<String>,
    /// Only of this execution workspace.
    pub workspace: Option<String>,
    /// Only made by a component of this digest.
    pub digest: Option<String>,
    /// Only those that wait for a person.
    pub stuck: bool,
    /// At most this many, the oldest.
    pub limit: Option<u32>,
}

impl Filter {
    /// What follows the table in a statement, and its values.
    pub(super) fn clause(&self) -> (String, Vec<Value>) {
        let mut only = Conditions::default();
        if !self.states.is_empty() {
            let states = only.list(self.states.iter().map(|state| state.word()));
            only.sql.push(format!("state IN {states}"));
        }
        only.equal("environment", self.environment.as_ref());
        only.equal("tenant", self.tenant.as_ref());
        only.equal("run", self.run.as_ref());
        only.equal("workspace", self.workspace.as_ref());
        only.equal("digest", self.digest.as_ref());
        if self.stuck {
            only.sql
                .push(format!("state = 'pending_cleanup' AND (attempts >= {MAX_ATTEMPTS} OR escalated = 1)"));
        }
        let limit = self.limit.map(|limit| format!(" LIMIT {limit}")).unwrap_or_default();
        (format!("WHERE {} ORDER BY created_ms, id{limit}", only.joined()), only.values)
    }
}

/// How often a lease is tried. What fails five times fails for a reason that only a person can see; it
/// is no longer tried and is reported as stuck.
pub(crate) const MAX_ATTEMPTS: u32 = 5;

/// Where a page ends and the next one begins: the age and the name of its last lease.
pub(crate) type Cursor = (u64, String);

/// Whose unfinished leases a reconciler may take: nobody's, those of the gone, and its own that nothing
/// in this process works on any more.
#[derive(Clone, Debug)]
pub(crate) struct Unowned {
    pub(crate) gone: Vec<String>,
    pub(crate) me: Owner,
    /// Only what is due by then; none takes everything.
    pub(crate) due_ms: Option<u64>,
    pub(crate) now_ms: u64,
}

/// Conditions with their values.
#[derive(Debug, Default)]
struct Conditions {
    sql: Vec<String>,
    values: Vec<Value>,
}

impl Conditions {
    /// The parameter that stands for this value.
    fn value(&mut self, value: impl Into<Value>) -> String {
        self.values.push(value.into());
        format!("?{}", self.values.len())
    }

    fn equal(&mut self, column: &str, value: Option<&String>) {
        if let Some(value) = value {
            let value = self.value(value);
            self.sql.push(format!("{column} = {value}"));
        }
    }

    /// A list of parameters in parentheses; an empty list holds nothing.
    fn list<'a>(&mut self, values: impl Iterator<Item = &'a str>) -> String {
        let values = values.map(|value| self.value(value)).collect::<Vec<_>>();
        if values.is_empty() { "(NULL)".into() } else { format!("({})", values.join(", ")) }
    }

    fn joined(&self) -> String {
        if self.sql.is_empty() { "1 = 1".into() } else { self.sql.join(" AND ") }
    }
}

impl Store {
    /// The leases that pass the filter, oldest first.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn list(&self, filter: Filter) -> Result<Vec<Lease>, StoreError> {
        let (which, values) = filter.clause();
        let sql = format!("SELECT {COLUMNS} FROM leases {which}");
        self.read("listing leases", move |on| Ok(read_all(on.query(&sql, &values)?)?)).await
    }

    /// One lease.
    ///
    /// # Errors
    /// [`StoreError::Missing`] when there is none of that name.
    pub async fn get(&self, id: &LeaseId) -> Result<Lease, StoreError> {
        let id = id.clone();
        self.read("reading a lease", move |on| one(on, &id)).await
    }

    /// The next page of leases a reconciler may take. The order is that of their making, which no attempt
    /// changes, so one pass sees each lease once.
    ///
    /// Leases that were tried too often are left out, so they hold up no other. An active lease is taken
    /// when its owner is gone or its lifetime is over, whoever owns it.
    pub(crate) async fn page(
        &self,
        unowned: Unowned,
        after: Option<Cursor>,
        limit: u32,
    ) -> Result<Vec<Lease>, StoreError> {
        let mut only = Conditions::default();
        let (age, name) = after.map_or((Value::Int(-1), String::new()), |(age, name)| (age.into(), name));
        let (age, name) = (only.value(age), only.value(name));
        only.sql.push(format!("(created_ms, id) > ({age}, {name})"));
        let (now, me) = (only.value(unowned.now_ms), only.value(unowned.me.to_text()));
        let gone = only.list(unowned.gone.iter().map(String::as_str));
        let due = match unowned.due_ms {
            // A time of writing in the future says that the clock was set back since; what is due cannot
            // be told then, so it counts as due.
            Some(due) => {
                let due = only.value(due);
                format!("(due_ms <= {due} OR updated_ms > {now})")
            }
            // Asked for by a person: all but what is only worth trying at the slowest interval.
            None => format!("(escalated = 0 OR due_ms <= {now} OR updated_ms > {now})"),
        };
        // Each of these has an index of its own, so that leases in use cost nothing.
        let theirs = format!(
            "SELECT id AS lease FROM leases WHERE state IN ('acquiring', 'resuming', 'releasing', 'pending_cleanup') \
             AND (owner IS NULL OR owner = {me} OR owner IN {gone}) \
             AND (attempts < {MAX_ATTEMPTS} OR escalated = 1) AND {due}"
        );
        let left = format!("SELECT id FROM leases WHERE owner IN {gone} AND state = 'active'");
        let over = format!("SELECT id FROM leases WHERE state = 'active' AND ends_ms <= {now}");
        let expired = format!(
            "SELECT id FROM leases WHERE state = 'retained' AND expires_at_ms <= {now} AND unexported = 0"
        );
        // SQLite takes a cross join as it stands: these few first, each by its index, instead of every lease
        // by age. A plain union it would merge in the order of names, which is to read all of them.
        let each = format!("{theirs} UNION ALL {left} UNION ALL {over} UNION ALL {expired}");
        let sql = format!(
            "SELECT {COLUMNS} FROM (SELECT DISTINCT lease FROM ({each}) AS several) AS found \
             CROSS JOIN leases WHERE id = lease AND {} ORDER BY created_ms, id LIMIT {limit}",
            only.joined()
        );
        self.read("looking for leases to clean up", move |on| Ok(read_all(on.query(&sql, &only.values)?)?))
            .await
    }

    /// Kept leases this scope may use again, and those of this run that are active, the last used first.
    pub(crate) async fn candidates(
        &self,
        environment: &str,
        tenant: &str,
        workspace: &str,
        agent: &str,
        run: &str,
    ) -> Result<Vec<Lease>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM leases WHERE environment = ?1 AND tenant = ?2 AND workspace = ?3 \
             AND agent = ?4 AND policy = 'reuse' AND (state = 'retained' OR (state = 'active' AND run = ?5)) \
             ORDER BY updated_ms DESC, id"
        );
        let values = values![environment, tenant, workspace, agent, run];
        self.read("looking for a lease to use again", move |on| Ok(read_all(on.query(&sql, &values)?)?)).await
    }
}

fn one(on: &mut dyn Statements, id: &LeaseId) -> Result<Lease, Failure> {
    let sql = format!("SELECT {COLUMNS} FROM leases WHERE id = ?1");
    match on.query(&sql, &values![id.as_str()])?.into_iter().next() {
        Some(row) => Ok(read(row)?),
        None => Err(StoreError::Missing { id: id.clone() }.into()),
    }
}
