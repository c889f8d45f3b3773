"""The activity log of version 0.1.0, on SQLite in a separate file."""

from musicsvc.store.migrations.baseline import tables

oldest_program = "0.1.0"
TABLES = """
CREATE TABLE activity (
    id BIGSERIAL PRIMARY KEY,
    at BIGINT NOT NULL,
    request_id TEXT NOT NULL,
    account_id BIGINT,
    token_id BIGINT,
    address TEXT NOT NULL,
    method TEXT NOT NULL,
    route TEXT,
    resource TEXT,
    status INTEGER NOT NULL,
    retry_after INTEGER,
    milliseconds DOUBLE PRECISION NOT NULL,
    size BIGINT NOT NULL,
    limits_apply BOOLEAN NOT NULL,
    private BOOLEAN NOT NULL DEFAULT FALSE,
    calls INTEGER NOT NULL DEFAULT 1
);
CREATE INDEX activity_at ON activity (at);
CREATE INDEX activity_request_id ON activity (request_id);
CREATE INDEX activity_account ON activity (account_id, at) WHERE account_id IS NOT NULL;
CREATE INDEX activity_token ON activity (token_id, at) WHERE token_id IS NOT NULL;
CREATE INDEX activity_address ON activity (address, at);
CREATE INDEX activity_refused ON activity (at) WHERE status >= 400;
CREATE INDEX activity_read ON activity (account_id, resource, at) WHERE private AND status < 400;
"""


def up(migrator, db):
    tables.create(db, TABLES)
