//! The schema of the embedded engine, as migrations that only go forward.
//!
//! `PRAGMA user_version` counts those that ran. A migration that was released is never edited: a
//! change is a new one behind it. Times are UTC microseconds. Records inside records are JSON
//! where no question looks into them. Nothing in it is secret.

mod deliveries;

/// `PRAGMA application_id` of our files: `trup` in ASCII, so that no other program's database is
/// ever taken for ours.
pub const APPLICATION_ID: u32 = 0x7472_7570;

/// The migrations, in order; the n-th one (counted from 1) leads to schema n.
pub const MIGRATIONS: &[&str] = &[V1, deliveries::V2, V3];

/// The schema that this program reads and writes.
#[must_use]
pub fn newest() -> u32 {
    u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX)
}

const V1: &str = r"
PRAGMA application_id = 0x74727570;

CREATE TABLE meta (
    key   TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
-- This installation's id: 16 hex digits, made once.
INSERT INTO meta (key, value) VALUES ('instance', lower(hex(randomblob(8))));

CREATE TABLE known_targets (
    target      TEXT    NOT NULL PRIMARY KEY,
    is_orphaned INTEGER NOT NULL CHECK (is_orphaned IN (0, 1))
) STRICT, WITHOUT ROWID;

CREATE TABLE observed_refs (
    target      TEXT    NOT NULL PRIMARY KEY,
    branch      TEXT    NOT NULL,
    tip         TEXT,
    looked_at   INTEGER NOT NULL,
    moved_at    INTEGER NOT NULL,
    suspect_sha TEXT,
    suspect_at  INTEGER,
    CHECK ((suspect_sha IS NULL) = (suspect_at IS NULL))
) STRICT, WITHOUT ROWID;

CREATE TABLE pauses (
    target TEXT    NOT NULL PRIMARY KEY,
    by     TEXT    NOT NULL,
    at     INTEGER NOT NULL,
    note   TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE pins (
    target TEXT    NOT NULL PRIMARY KEY,
    sha    TEXT    NOT NULL,
    tip    TEXT,
    by     TEXT    NOT NULL,
    at     INTEGER NOT NULL,
    note   TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE quarantine (
    target    TEXT    NOT NULL,
    sha       TEXT    NOT NULL,
    registry  TEXT    NOT NULL,
    reason    TEXT    NOT NULL,
    release   INTEGER NOT NULL,
    at        INTEGER NOT NULL,
    lifted_by TEXT,
    lifted_at INTEGER,
    PRIMARY KEY (target, sha),
    CHECK ((lifted_by IS NULL) = (lifted_at IS NULL))
) STRICT, WITHOUT ROWID;

CREATE TABLE plans (
    id         TEXT    NOT NULL PRIMARY KEY,
    target     TEXT    NOT NULL,
    -- Grows each time that another plan of the target is stored or stored again.
    seq        INTEGER NOT NULL,
    revision   TEXT    NOT NULL,
    at         INTEGER NOT NULL,
    plan       TEXT    NOT NULL,
    difference TEXT    NOT NULL,
    UNIQUE (target, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE approvals (
    target      TEXT    NOT NULL,
    plan_hash   TEXT    NOT NULL,
    is_approved INTEGER NOT NULL CHECK (is_approved IN (0, 1)),
    by          TEXT    NOT NULL,
    at          INTEGER NOT NULL,
    PRIMARY KEY (target, plan_hash)
) STRICT, WITHOUT ROWID;

-- The last number given to a release of a target: survives the deletion of releases.
CREATE TABLE release_counters (
    target TEXT    NOT NULL PRIMARY KEY,
    last   INTEGER NOT NULL CHECK (last > 0)
) STRICT, WITHOUT ROWID;

CREATE TABLE releases (
    target      TEXT    NOT NULL,
    number      INTEGER NOT NULL CHECK (number > 0),
    revision    TEXT    NOT NULL,
    slot        TEXT,
    plan_id     TEXT REFERENCES plans (id),
    manifest    TEXT,
    registry    TEXT    NOT NULL,
    desired     TEXT,
    trigger     TEXT    NOT NULL,
    at          INTEGER NOT NULL,
    phase       TEXT    NOT NULL,
    reason      TEXT,
    image_id    TEXT,
    switched_at INTEGER,
    ended_at    INTEGER,
    retired_at  INTEGER,
    PRIMARY KEY (target, number)
) STRICT, WITHOUT ROWID;
-- What a restart asks for: see `unfinished`.
CREATE INDEX releases_unfinished ON releases (at) WHERE retired_at IS NULL;
CREATE INDEX releases_live ON releases (target, number) WHERE phase = 'live';
-- One statement begins a release, so that a full disk can never leave half of it.
CREATE TRIGGER releases_are_counted AFTER INSERT ON releases
BEGIN
    INSERT INTO release_counters (target, last) VALUES (NEW.target, NEW.number)
    ON CONFLICT (target) DO UPDATE SET last = max(last, excluded.last);
END;

CREATE TABLE journal (
    target  TEXT    NOT NULL,
    release INTEGER NOT NULL,
    seq     INTEGER NOT NULL,
    section TEXT    NOT NULL,
    ordinal INTEGER NOT NULL,
    step    TEXT    NOT NULL,
    state   TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    note    TEXT,
    PRIMARY KEY (target, release, seq),
    FOREIGN KEY (target, release) REFERENCES releases (target, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE manifests (
    digest TEXT NOT NULL PRIMARY KEY,
    path   TEXT NOT NULL,
    text   TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE ci (
    target         TEXT    NOT NULL,
    sha            TEXT    NOT NULL,
    first_asked_at INTEGER NOT NULL,
    asked_at       INTEGER NOT NULL,
    reason         TEXT,
    message        TEXT    NOT NULL,
    link           TEXT,
    PRIMARY KEY (target, sha)
) STRICT, WITHOUT ROWID;

CREATE TABLE conditions (
    target  TEXT    NOT NULL,
    kind    TEXT    NOT NULL,
    is_true INTEGER NOT NULL CHECK (is_true IN (0, 1)),
    reason  TEXT    NOT NULL,
    message TEXT    NOT NULL,
    since   INTEGER NOT NULL,
    PRIMARY KEY (target, kind)
) STRICT, WITHOUT ROWID;

CREATE TABLE drift (
    target     TEXT    NOT NULL PRIMARY KEY,
    revision   TEXT    NOT NULL,
    difference TEXT    NOT NULL,
    summary    TEXT    NOT NULL,
    since      INTEGER NOT NULL,
    looked_at  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE audit (
    seq     INTEGER PRIMARY KEY AUTOINCREMENT,
    at      INTEGER NOT NULL,
    target  TEXT,
    by      TEXT    NOT NULL,
    kind    TEXT    NOT NULL,
    message TEXT    NOT NULL,
    sha     TEXT,
    release INTEGER
) STRICT;
CREATE INDEX audit_of_target ON audit (target, seq);
CREATE TRIGGER audit_is_never_changed BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'audit events are never changed'); END;
CREATE TRIGGER audit_is_never_removed BEFORE DELETE ON audit
BEGIN SELECT RAISE(ABORT, 'audit events are never removed'); END;
-- An `INSERT OR REPLACE` would remove a row without the trigger above.
CREATE TRIGGER audit_is_only_appended BEFORE INSERT ON audit
WHEN EXISTS (SELECT 1 FROM audit WHERE seq = NEW.seq)
BEGIN SELECT RAISE(ABORT, 'audit events are only appended'); END;

PRAGMA user_version = 1;
";

const V3: &str = r"
-- Reverts that were written to Git: at most one for each commit and branch.
CREATE TABLE reverts (
    repo      TEXT    NOT NULL,
    branch    TEXT    NOT NULL,
    bad       TEXT    NOT NULL,
    good      TEXT    NOT NULL,
    target    TEXT    NOT NULL,
    by        TEXT    NOT NULL,
    at        INTEGER NOT NULL,
    commit_id TEXT,
    on_branch TEXT    NOT NULL,
    link      TEXT,
    PRIMARY KEY (repo, branch, bad)
) STRICT, WITHOUT ROWID;

-- What was last reported of a commit under one name.
CREATE TABLE reports (
    repo        TEXT    NOT NULL,
    sha         TEXT    NOT NULL,
    context     TEXT    NOT NULL,
    state       TEXT    NOT NULL,
    description TEXT    NOT NULL,
    at          INTEGER NOT NULL,
    deployment  INTEGER,
    is_full     INTEGER NOT NULL CHECK (is_full IN (0, 1)),
    PRIMARY KEY (repo, sha, context)
) STRICT, WITHOUT ROWID;

PRAGMA user_version = 3;
";
