-- The long lists that follow from the journal, texts that were set aside, and what was found damaged.

CREATE TABLE items (
    id      INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    list    TEXT    NOT NULL,
    key     TEXT    NOT NULL,
    seq     INTEGER NOT NULL,             -- the event that made the row
    body    TEXT    NOT NULL
) STRICT;

CREATE UNIQUE INDEX items_by_key ON items (session, list, key);
-- Lists whose keys do not sort by time are read in the order of their events.
CREATE INDEX items_by_seq ON items (session, list, seq) WHERE list IN ('tools', 'files', 'outputs');

CREATE TABLE blobs (
    hash    BLOB    PRIMARY KEY,
    bytes   INTEGER NOT NULL,
    content BLOB    NOT NULL              -- zstd
) STRICT;

CREATE TABLE blob_refs (
    hash    BLOB    NOT NULL,
    session INTEGER NOT NULL,
    seq     INTEGER NOT NULL,
    PRIMARY KEY (hash, session, seq)
) STRICT, WITHOUT ROWID;

CREATE INDEX blob_refs_by_session ON blob_refs (session);

CREATE TABLE damage (
    id       INTEGER PRIMARY KEY,
    session  TEXT    NOT NULL,            -- the session's id
    seq      INTEGER,
    found_us INTEGER NOT NULL,
    what     TEXT    NOT NULL,
    content  BLOB                         -- the bytes as they were found
) STRICT;
