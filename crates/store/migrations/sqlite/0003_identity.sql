-- Which store this is. Files kept beside it (spool, captures, snapshots) carry its id.

CREATE TABLE identity (
    one    INTEGER PRIMARY KEY CHECK (one = 1),
    id     TEXT    NOT NULL,             -- a UUID, 32 hexadecimal digits
    path   TEXT,                         -- the file that is this store, as far as is known;
    device INTEGER,                      -- another file with the same id is a copy of it
    inode  INTEGER
) STRICT;

INSERT INTO identity (one, id) VALUES (1, lower(hex(randomblob(16))));
