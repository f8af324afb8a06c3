//! What the tables hold, for both databases in one text.
//!
//! `NUMBER`, `BYTES` and `COUNTER` stand for what each database calls them.

/// One step of the schema a version. Steps are only ever added: a store of any older version is brought up
/// to date by the steps it lacks.
pub(super) const MIGRATIONS: &[&str] = &["
    CREATE TABLE providers (
        id TEXT PRIMARY KEY NOT NULL,
        key TEXT NOT NULL,
        digest TEXT NOT NULL,
        version TEXT NOT NULL,
        declaration TEXT NOT NULL,
        grants TEXT NOT NULL,
        status TEXT NOT NULL,
        position NUMBER NOT NULL,
        source TEXT NOT NULL,
        installed_ms NUMBER NOT NULL,
        updated_ms NUMBER NOT NULL
    ) TABLE;
    -- A removed one stays while leases pin it; its key is free for another.
    CREATE UNIQUE INDEX providers_by_key ON providers (key) WHERE status <> 'removed';
    CREATE UNIQUE INDEX providers_by_position ON providers (position);

    CREATE TABLE drivers (
        provider TEXT NOT NULL REFERENCES providers (id),
        position NUMBER NOT NULL,
        key TEXT NOT NULL,
        kind TEXT NOT NULL,
        schema TEXT NOT NULL,
        revision TEXT NOT NULL,
        PRIMARY KEY (provider, position)
    ) TABLE;
    CREATE INDEX drivers_by_key ON drivers (key, kind);

    CREATE TABLE environments (
        name TEXT PRIMARY KEY NOT NULL,
        provider TEXT NOT NULL,
        config TEXT NOT NULL,
        narrowing TEXT NOT NULL,
        status TEXT NOT NULL,
        created_ms NUMBER NOT NULL,
        updated_ms NUMBER NOT NULL
    ) TABLE;

    CREATE TABLE leases (
        id TEXT PRIMARY KEY NOT NULL,
        version NUMBER NOT NULL,
        stamp TEXT NOT NULL,
        environment TEXT NOT NULL,
        provider TEXT NOT NULL,
        plugin TEXT NOT NULL,
        driver TEXT NOT NULL,
        digest TEXT NOT NULL,
        tenant TEXT NOT NULL,
        run TEXT,
        workspace TEXT,
        agent TEXT,
        adapter TEXT,
        fingerprint TEXT NOT NULL,
        policy TEXT NOT NULL,
        preserve NUMBER NOT NULL,
        held NUMBER NOT NULL,
        state TEXT NOT NULL,
        goal TEXT,
        reason TEXT,
        provider_lease_id TEXT,
        metadata TEXT,
        expires_at_ms NUMBER,
        config TEXT NOT NULL,
        wishes TEXT NOT NULL,
        unexported NUMBER NOT NULL DEFAULT 0,
        disposition TEXT,
        owner TEXT,
        attempts NUMBER NOT NULL DEFAULT 0,
        escalated NUMBER NOT NULL DEFAULT 0,
        due_ms NUMBER NOT NULL,
        last_error TEXT,
        lifetime_ms NUMBER NOT NULL,
        used_ms NUMBER NOT NULL DEFAULT 0,
        acquired_ms NUMBER,
        ends_ms NUMBER,
        created_ms NUMBER NOT NULL,
        updated_ms NUMBER NOT NULL,
        released_ms NUMBER
    ) TABLE;
    CREATE INDEX leases_by_age ON leases (created_ms, id);
    CREATE INDEX leases_unfinished ON leases (created_ms, id)
        WHERE state IN ('acquiring', 'resuming', 'releasing', 'pending_cleanup');
    CREATE INDEX leases_ending ON leases (ends_ms) WHERE state = 'active';
    CREATE INDEX leases_expiring ON leases (expires_at_ms) WHERE state = 'retained';
    CREATE INDEX leases_by_owner ON leases (owner) WHERE owner IS NOT NULL;
    CREATE INDEX leases_by_run ON leases (run) WHERE run IS NOT NULL;
    CREATE INDEX leases_by_scope ON leases (environment, workspace) WHERE workspace IS NOT NULL;
    -- One allocation is one lease's, whoever asks at the same moment.
    CREATE UNIQUE INDEX leases_by_allocation ON leases (provider, environment, provider_lease_id)
        WHERE provider_lease_id IS NOT NULL AND state IN
        ('active', 'resuming', 'releasing', 'retained', 'pending_cleanup');

    CREATE TABLE creations (
        name TEXT PRIMARY KEY NOT NULL,
        lease TEXT NOT NULL REFERENCES leases (id),
        begun_ms NUMBER NOT NULL,
        settle_ms NUMBER NOT NULL,
        record TEXT,
        outcome TEXT,
        ended_ms NUMBER
    ) TABLE;

    CREATE TABLE stop_intents (
        id TEXT PRIMARY KEY NOT NULL,
        lease TEXT NOT NULL REFERENCES leases (id),
        tenant TEXT NOT NULL,
        run TEXT,
        provider TEXT NOT NULL,
        plugin TEXT NOT NULL,
        digest TEXT NOT NULL,
        provider_lease_id TEXT NOT NULL,
        requested_ms NUMBER NOT NULL,
        outcome TEXT,
        settled_ms NUMBER
    ) TABLE;
    CREATE INDEX stop_intents_by_lease ON stop_intents (lease);

    CREATE TABLE attempts (
        lease TEXT NOT NULL REFERENCES leases (id),
        number NUMBER NOT NULL,
        host TEXT NOT NULL,
        goal TEXT NOT NULL,
        begun_ms NUMBER NOT NULL,
        outcome TEXT,
        ended_ms NUMBER,
        PRIMARY KEY (lease, number, begun_ms)
    ) TABLE;

    CREATE TABLE events (
        id COUNTER,
        lease TEXT NOT NULL REFERENCES leases (id),
        at_ms NUMBER NOT NULL,
        from_state TEXT,
        to_state TEXT NOT NULL,
        reason TEXT NOT NULL,
        bill TEXT
    ) TABLE;
    CREATE INDEX events_by_lease ON events (lease, id);

    CREATE TABLE hosts (
        owner TEXT PRIMARY KEY NOT NULL,
        beat_ms NUMBER NOT NULL
    ) TABLE;

    CREATE TABLE state (
        provider TEXT NOT NULL,
        environment TEXT NOT NULL,
        tenant TEXT NOT NULL,
        key TEXT NOT NULL,
        value BYTES NOT NULL,
        version NUMBER NOT NULL,
        expires_ms NUMBER,
        PRIMARY KEY (provider, environment, tenant, key)
    ) TABLE;

    CREATE TABLE audit (
        id COUNTER,
        at_ms NUMBER NOT NULL,
        kind TEXT NOT NULL,
        provider TEXT NOT NULL,
        environment TEXT,
        tenant TEXT,
        lease TEXT,
        what TEXT NOT NULL,
        verdict TEXT NOT NULL,
        bytes NUMBER
    ) TABLE;
    CREATE INDEX audit_by_age ON audit (at_ms);
"];

/// The same for SQLite, where a strict table refuses what is of another type.
pub(super) fn for_sqlite(step: &str) -> String {
    step.replace(") TABLE;", ") STRICT;")
        .replace("COUNTER", "INTEGER PRIMARY KEY")
        .replace("NUMBER", "INTEGER")
        .replace("BYTES", "BLOB")
}

/// The same for PostgreSQL.
#[cfg(feature = "postgres")]
pub(super) fn for_postgres(step: &str) -> String {
    step.replace(") TABLE;", ");")
        .replace("COUNTER", "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY")
        .replace("NUMBER", "BIGINT")
        .replace("BYTES", "BYTEA")
}
