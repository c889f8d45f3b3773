"""Sum the calls of the log by hour and by day. Those that it has already are summed later, the newest first.

Programs of 0.1.0 leave the sums of calls that they delete. What they write is summed by newer ones.
"""

from musicsvc.store.migrations.baseline import tables

oldest_program = "0.1.0"
TABLES = """
CREATE TABLE activity_sum (
    dimension BIGINT NOT NULL,
    hours BIGINT NOT NULL,
    hour BIGINT NOT NULL,
    key TEXT NOT NULL,
    calls BIGINT NOT NULL,
    refused_401 BIGINT NOT NULL,
    refused_403 BIGINT NOT NULL,
    refused_404 BIGINT NOT NULL,
    refused_429 BIGINT NOT NULL,
    counted BIGINT NOT NULL,
    denied BIGINT NOT NULL,
    first_at BIGINT NOT NULL,
    last_at BIGINT NOT NULL,
    PRIMARY KEY (dimension, hours, hour, key)
) WITHOUT ROWID;
CREATE TABLE activity_objects (
    dimension BIGINT NOT NULL,
    hours BIGINT NOT NULL,
    hour BIGINT NOT NULL,
    key TEXT NOT NULL,
    hashes BYTEA NOT NULL,
    PRIMARY KEY (dimension, hours, key, hour)
);
CREATE TABLE activity_progress (
    newest BIGINT NOT NULL PRIMARY KEY,
    oldest BIGINT NOT NULL
) WITHOUT ROWID;
INSERT INTO activity_progress SELECT coalesce(MAX(id), 0), coalesce(MAX(id), 0) FROM activity;
"""


def up(migrator, db):
    tables.create(db, TABLES)
