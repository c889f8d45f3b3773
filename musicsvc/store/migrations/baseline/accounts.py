"""Accounts, access, sessions, follows and messages."""

TABLES = """
CREATE TABLE account (
    id BIGSERIAL PRIMARY KEY,
    email TEXT NOT NULL CHECK (length(email) BETWEEN 3 AND 255),
    email_key TEXT NOT NULL,
    display_name TEXT NOT NULL,
    avatar TEXT,
    password_hash TEXT,
    admin BOOLEAN NOT NULL DEFAULT FALSE,
    api_access BOOLEAN NOT NULL DEFAULT FALSE,
    reports_plays BOOLEAN NOT NULL DEFAULT FALSE,
    suspended_at BIGINT,
    suspended_reason TEXT,
    created_at BIGINT NOT NULL,
    external_id TEXT
);
CREATE UNIQUE INDEX account_email_key ON account (email_key);
CREATE UNIQUE INDEX account_external_id ON account (external_id);

CREATE TABLE access_request (
    id BIGSERIAL PRIMARY KEY,
    email TEXT NOT NULL,
    email_key TEXT NOT NULL,
    use_case TEXT NOT NULL,
    volume TEXT NOT NULL,
    organization TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'approved', 'denied')),
    reason TEXT,
    created_at BIGINT NOT NULL,
    decided_at BIGINT
);
CREATE INDEX access_request_email_key ON access_request (email_key);
CREATE UNIQUE INDEX access_request_pending ON access_request (email_key) WHERE state = 'pending';

CREATE TABLE token (
    id BIGSERIAL PRIMARY KEY,
    user_id BIGINT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    digest BYTEA NOT NULL CHECK (length(digest) = 32),
    last_four TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    last_used_at BIGINT,
    revoked_at BIGINT,
    revoked_reason TEXT,
    scope TEXT NOT NULL DEFAULT 'read-write'
);
CREATE INDEX token_user_id ON token (user_id);
CREATE UNIQUE INDEX token_digest ON token (digest);

CREATE TABLE session (
    id BIGSERIAL PRIMARY KEY,
    user_id BIGINT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
    digest BYTEA NOT NULL CHECK (length(digest) = 32),
    created_at BIGINT NOT NULL,
    last_used_at BIGINT NOT NULL,
    address TEXT NOT NULL,
    agent TEXT NOT NULL
);
CREATE INDEX session_user_id ON session (user_id);
CREATE UNIQUE INDEX session_digest ON session (digest);
CREATE INDEX session_last_used_at ON session (last_used_at);

CREATE TABLE password_link (
    digest BYTEA NOT NULL PRIMARY KEY,
    user_id BIGINT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
) WITHOUT ROWID;
CREATE UNIQUE INDEX password_link_user_id ON password_link (user_id);

CREATE TABLE report_link (
    id BIGSERIAL PRIMARY KEY,
    user_id BIGINT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
    kind INTEGER NOT NULL CHECK (kind IN (1, 2, 3)),
    first_day INTEGER NOT NULL,
    end_day INTEGER NOT NULL CHECK (end_day > first_day),
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX report_link_user_id ON report_link (user_id);

CREATE TABLE report_link_subject (
    report_link_id BIGINT NOT NULL REFERENCES report_link (id) ON DELETE CASCADE,
    position INTEGER NOT NULL CHECK (position >= 0),
    subject BIGINT NOT NULL,
    PRIMARY KEY (report_link_id, position)
) WITHOUT ROWID;

CREATE TABLE security_event (
    id BIGSERIAL PRIMARY KEY,
    at BIGINT NOT NULL,
    kind TEXT NOT NULL CHECK (kind <> ''),
    account_id BIGINT,
    token_id BIGINT,
    actor TEXT NOT NULL CHECK (actor <> ''),
    reason TEXT,
    actor_id BIGINT
);
CREATE INDEX security_event_at ON security_event (at);
CREATE INDEX security_event_account ON security_event (account_id, at);
CREATE INDEX security_event_token ON security_event (token_id, at);

CREATE TABLE secret (
    name TEXT NOT NULL PRIMARY KEY,
    value BYTEA NOT NULL CHECK (length(value) >= 32)
);

CREATE TABLE follow (
    id BIGSERIAL PRIMARY KEY,
    follower_id BIGINT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
    followed_id BIGINT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
    created_at BIGINT NOT NULL,
    CHECK (follower_id <> followed_id)
);
CREATE UNIQUE INDEX follow_follower_id_followed_id ON follow (follower_id, followed_id);
CREATE INDEX follow_follower_id_id ON follow (follower_id, id);
CREATE INDEX follow_followed_id_id ON follow (followed_id, id);

CREATE TABLE conversation (
    id BIGSERIAL PRIMARY KEY,
    created_at BIGINT NOT NULL,
    last_at BIGINT NOT NULL
);

CREATE TABLE participant (
    conversation_id BIGINT NOT NULL REFERENCES conversation (id) ON DELETE CASCADE,
    user_id BIGINT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
    PRIMARY KEY (conversation_id, user_id)
);
CREATE INDEX participant_user_id ON participant (user_id);

CREATE TABLE message (
    id BIGSERIAL PRIMARY KEY,
    conversation_id BIGINT NOT NULL REFERENCES conversation (id) ON DELETE CASCADE,
    user_id BIGINT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
    message_text TEXT NOT NULL CHECK (length(message_text) BETWEEN 1 AND 2000),
    created_at BIGINT NOT NULL
);
CREATE INDEX message_conversation_id_id ON message (conversation_id, id);
CREATE INDEX message_user_id ON message (user_id);

CREATE TABLE device (
    id BIGSERIAL PRIMARY KEY,
    token TEXT NOT NULL,
    user_id BIGINT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
    platform TEXT NOT NULL CHECK (platform IN ('web', 'android', 'ios')),
    device_name TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX device_token ON device (token);
CREATE INDEX device_user_id ON device (user_id);

CREATE TABLE notification_choice (
    user_id BIGINT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
    notif_id TEXT NOT NULL,
    email BOOLEAN NOT NULL DEFAULT TRUE,
    in_app BOOLEAN NOT NULL DEFAULT TRUE,
    mobile BOOLEAN NOT NULL DEFAULT TRUE,
    PRIMARY KEY (user_id, notif_id)
);
"""
