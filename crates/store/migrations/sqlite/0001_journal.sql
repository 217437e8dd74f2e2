-- The journal and what is folded from it.

CREATE TABLE sessions (
    pk         INTEGER PRIMARY KEY,
    id         TEXT    NOT NULL UNIQUE,   -- session_YYYYMMDD_HHMMSS_micros
    uid        BLOB    NOT NULL UNIQUE,   -- 16 bytes
    status     TEXT    NOT NULL,
    project    TEXT    NOT NULL,
    made_by    TEXT    NOT NULL,
    head_seq   INTEGER NOT NULL,
    head_hash  BLOB    NOT NULL,          -- 32 bytes, the newest event's
    updated_us INTEGER NOT NULL,
    summary    TEXT    NOT NULL           -- JSON, ready to print
) STRICT;

-- Only what rarely changes is indexed: an append must not move index entries about.
CREATE INDEX sessions_by_project ON sessions (project, status);

-- The row id is session pk * 2^36 + seq: a session's events lie together in order, without a second index.
CREATE TABLE events (
    id      INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    key     TEXT    NOT NULL,
    at_us   INTEGER NOT NULL,
    run     TEXT,
    epoch   INTEGER,
    kind    TEXT    NOT NULL,
    version INTEGER NOT NULL,
    body    TEXT    NOT NULL,
    hash    BLOB    NOT NULL              -- 32 bytes, over this event and the hash before it
) STRICT;

CREATE UNIQUE INDEX events_by_key ON events (session, key);

CREATE TABLE states (
    session INTEGER PRIMARY KEY,
    seq     INTEGER NOT NULL,             -- the last event folded in
    fold    INTEGER NOT NULL,             -- the version of the fold
    body    TEXT    NOT NULL,
    digest  BLOB    NOT NULL              -- over seq and body
) STRICT;

CREATE TABLE leases (
    session      INTEGER PRIMARY KEY,
    epoch        INTEGER NOT NULL,
    holder       TEXT,                    -- JSON; NULL when nobody holds it
    acquired_us  INTEGER NOT NULL,
    heartbeat_us INTEGER NOT NULL
) STRICT;
