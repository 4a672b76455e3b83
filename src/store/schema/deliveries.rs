//! Schema 2: webhook deliveries, and the names of the repositories that deliver.

pub(super) const V2: &str = r"
CREATE TABLE deliveries (
    -- The order in which first copies came; what is forgotten first.
    seq           INTEGER PRIMARY KEY,
    hook          TEXT    NOT NULL,
    id            TEXT    NOT NULL,
    event         TEXT    NOT NULL,
    action        TEXT,
    repository    TEXT,
    repository_id INTEGER,
    reference     TEXT,
    sha           TEXT,
    received_at   INTEGER NOT NULL,
    last_at       INTEGER NOT NULL,
    copies        INTEGER NOT NULL,
    bytes         INTEGER NOT NULL,
    secret_slot   INTEGER NOT NULL,
    reason        TEXT    NOT NULL,
    message       TEXT    NOT NULL,
    woken         TEXT    NOT NULL,
    woken_count   INTEGER NOT NULL,
    UNIQUE (id, hook)
) STRICT;

CREATE TABLE repository_names (
    id      INTEGER NOT NULL,
    name    TEXT    NOT NULL,
    seen_at INTEGER NOT NULL,
    PRIMARY KEY (id, name)
) STRICT, WITHOUT ROWID;

PRAGMA user_version = 2;
";
