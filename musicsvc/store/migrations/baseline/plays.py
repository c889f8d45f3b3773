"""Plays, listeners and their counts."""

TABLES = """
CREATE TABLE listener (
    id BIGSERIAL PRIMARY KEY CHECK (id < 4294967296),
    key TEXT NOT NULL
);
CREATE UNIQUE INDEX listener_key ON listener (key);

CREATE TABLE play (
    slot BIGINT NOT NULL,
    track_id BIGINT NOT NULL,
    listener_id BIGINT NOT NULL,
    client_key BYTEA NOT NULL,
    played_at BIGINT NOT NULL,
    duration_ms BIGINT,
    reporter BIGINT NOT NULL DEFAULT 0,
    import_id BIGINT,
    names_hash BIGINT,
    reported_at BIGINT,
    PRIMARY KEY (slot, track_id, listener_id, client_key)
) WITHOUT ROWID;
CREATE UNIQUE INDEX play_client_key ON play (client_key) WHERE length(client_key) > 0;
CREATE INDEX play_of_day ON play ((slot / 2880), track_id, slot, listener_id);
CREATE INDEX play_of_reporter ON play (reporter, reported_at) WHERE reporter > 0;

CREATE TABLE play_count (
    key BIGINT NOT NULL PRIMARY KEY,
    plays BIGINT NOT NULL,
    own BIGINT NOT NULL,
    listeners BYTEA NOT NULL,
    histogram BYTEA NOT NULL
);

CREATE TABLE play_progress (
    id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    block8 BIGINT NOT NULL,
    block32 BIGINT NOT NULL,
    kept_from INTEGER NOT NULL
);
INSERT INTO play_progress (id, block8, block32, kept_from) VALUES (1, 2305843009213693952, 4611686018427387904, 0);

CREATE TABLE deleted_track (
    kind INTEGER NOT NULL CHECK (kind IN (1, 2, 3)),
    subject BIGINT NOT NULL,
    track_id BIGINT NOT NULL,
    duration BIGINT NOT NULL,
    PRIMARY KEY (kind, subject, track_id)
) WITHOUT ROWID;
CREATE INDEX deleted_track_track_id ON deleted_track (track_id);

CREATE TABLE dropped_play (
    client_key BYTEA NOT NULL PRIMARY KEY,
    slot BIGINT NOT NULL,
    listener_id BIGINT NOT NULL,
    names_hash BIGINT
) WITHOUT ROWID;
CREATE INDEX dropped_play_slot ON dropped_play (slot);

CREATE TABLE track_plays (
    track_id BIGINT NOT NULL PRIMARY KEY,
    plays BIGINT NOT NULL
);

CREATE TABLE engagement_day (
    kind INTEGER NOT NULL CHECK (kind IN (0, 1, 2, 3)),
    subject BIGINT NOT NULL,
    day INTEGER NOT NULL,
    likes BIGINT NOT NULL,
    reposts BIGINT NOT NULL,
    PRIMARY KEY (kind, subject, day)
) WITHOUT ROWID;
"""
