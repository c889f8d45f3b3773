"""Artists, albums, tracks, playlists and imports."""

TABLES = """
CREATE TABLE artist (
    id BIGSERIAL PRIMARY KEY,
    name TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 255),
    description TEXT,
    image_small TEXT,
    verified BOOLEAN NOT NULL DEFAULT FALSE,
    manager_id BIGINT REFERENCES account (id) ON DELETE SET NULL,
    created_at BIGINT NOT NULL,
    edited_at BIGINT
);
CREATE INDEX artist_manager_id_name ON artist (manager_id, name);

CREATE TABLE album (
    id BIGSERIAL PRIMARY KEY,
    name TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 255),
    image TEXT,
    release_date TEXT CHECK (length(release_date) = 10),
    description TEXT,
    external_id TEXT,
    imported_for BIGINT NOT NULL DEFAULT 0,
    created_at BIGINT NOT NULL,
    upc TEXT CHECK (length(upc) BETWEEN 12 AND 13),
    label TEXT CHECK (length(label) BETWEEN 1 AND 255),
    edited_at BIGINT
);
CREATE UNIQUE INDEX album_external_id_imported_for ON album (external_id, imported_for);
CREATE INDEX album_upc ON album (upc);

CREATE TABLE album_artist (
    album_id BIGINT NOT NULL REFERENCES album (id) ON DELETE CASCADE,
    artist_id BIGINT NOT NULL REFERENCES artist (id) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    PRIMARY KEY (album_id, artist_id)
);
CREATE INDEX album_artist_artist_id_album_id ON album_artist (artist_id, album_id);

CREATE TABLE track (
    id BIGSERIAL PRIMARY KEY,
    name TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 255),
    release_date TEXT CHECK (length(release_date) = 10),
    image TEXT,
    duration BIGINT NOT NULL CHECK (duration BETWEEN 0 AND 86400000),
    description TEXT,
    album_id BIGINT REFERENCES album (id) ON DELETE SET NULL,
    bpm INTEGER CHECK (bpm BETWEEN 20 AND 400),
    key TEXT,
    scale TEXT CHECK (scale IN ('Major', 'Minor')),
    price DOUBLE PRECISION CHECK (price >= 0),
    currency TEXT NOT NULL CHECK (length(currency) = 3),
    licensing_type TEXT NOT NULL CHECK (licensing_type IN ('non_exclusive_only', 'both', 'exclusive_only')),
    exclusive_status TEXT NOT NULL CHECK (exclusive_status IN ('available', 'not_available', 'sold')),
    exclusive_price DOUBLE PRECISION CHECK (exclusive_price >= 0),
    fingerprint_status TEXT NOT NULL
        CHECK (fingerprint_status IN ('pending', 'processing', 'completed', 'failed')),
    likes_count BIGINT NOT NULL DEFAULT 0,
    reposts_count BIGINT NOT NULL DEFAULT 0,
    external_id TEXT,
    imported_for BIGINT NOT NULL DEFAULT 0,
    created_at BIGINT NOT NULL,
    isrc TEXT CHECK (length(isrc) = 12),
    track_number INTEGER CHECK (track_number BETWEEN 1 AND 9999),
    disc_number INTEGER CHECK (disc_number BETWEEN 1 AND 999),
    explicit BOOLEAN CHECK (explicit IN (FALSE, TRUE)),
    edited_at BIGINT
);
CREATE INDEX track_album_id ON track (album_id);
CREATE UNIQUE INDEX track_external_id_imported_for ON track (external_id, imported_for);
CREATE INDEX track_isrc ON track (isrc);

CREATE TABLE track_artist (
    track_id BIGINT NOT NULL REFERENCES track (id) ON DELETE CASCADE,
    artist_id BIGINT NOT NULL REFERENCES artist (id) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    PRIMARY KEY (track_id, artist_id)
);
CREATE INDEX track_artist_artist_id_track_id ON track_artist (artist_id, track_id);

CREATE TABLE genre (
    id BIGSERIAL PRIMARY KEY,
    name TEXT COLLATE "C" NOT NULL,
    display_name TEXT NOT NULL
);
CREATE UNIQUE INDEX genre_name ON genre (name);

CREATE TABLE track_genre (
    track_id BIGINT NOT NULL REFERENCES track (id) ON DELETE CASCADE,
    genre_id BIGINT NOT NULL REFERENCES genre (id) ON DELETE CASCADE,
    PRIMARY KEY (track_id, genre_id)
);
CREATE INDEX track_genre_genre_id_track_id ON track_genre (genre_id, track_id);

CREATE TABLE tag (
    id BIGSERIAL PRIMARY KEY,
    name TEXT NOT NULL
);
CREATE UNIQUE INDEX tag_name ON tag (name);

CREATE TABLE track_tag (
    track_id BIGINT NOT NULL REFERENCES track (id) ON DELETE CASCADE,
    tag_id BIGINT NOT NULL REFERENCES tag (id) ON DELETE CASCADE,
    PRIMARY KEY (track_id, tag_id)
);
CREATE INDEX track_tag_tag_id ON track_tag (tag_id);

CREATE TABLE album_tag (
    album_id BIGINT NOT NULL REFERENCES album (id) ON DELETE CASCADE,
    tag_id BIGINT NOT NULL REFERENCES tag (id) ON DELETE CASCADE,
    PRIMARY KEY (album_id, tag_id)
);
CREATE INDEX album_tag_tag_id ON album_tag (tag_id);

CREATE TABLE comment (
    id BIGSERIAL PRIMARY KEY,
    track_id BIGINT NOT NULL REFERENCES track (id) ON DELETE CASCADE,
    user_id BIGINT REFERENCES account (id) ON DELETE SET NULL,
    parent_id BIGINT REFERENCES comment (id) ON DELETE CASCADE,
    content TEXT NOT NULL,
    position INTEGER NOT NULL CHECK (position BETWEEN 0 AND 100),
    depth INTEGER NOT NULL CHECK (depth >= 0),
    deleted BOOLEAN NOT NULL DEFAULT FALSE,
    place BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX comment_user_id ON comment (user_id);
CREATE INDEX comment_parent_id ON comment (parent_id);
CREATE INDEX comment_track_id_place ON comment (track_id, place);
CREATE INDEX comment_root ON comment (track_id, position, place) WHERE parent_id IS NULL;

CREATE TABLE track_like (
    track_id BIGINT NOT NULL REFERENCES track (id) ON DELETE CASCADE,
    user_id BIGINT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (track_id, user_id)
);
CREATE INDEX track_like_user_id_created_at_track_id ON track_like (user_id, created_at, track_id);
CREATE INDEX track_like_track_id_created_at ON track_like (track_id, created_at);

CREATE TABLE track_repost (
    track_id BIGINT NOT NULL REFERENCES track (id) ON DELETE CASCADE,
    user_id BIGINT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (track_id, user_id)
);
CREATE INDEX track_repost_user_id_created_at_track_id ON track_repost (user_id, created_at, track_id);
CREATE INDEX track_repost_track_id_created_at ON track_repost (track_id, created_at);

CREATE TABLE playlist (
    id BIGSERIAL PRIMARY KEY,
    owner_id BIGINT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
    name TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 250),
    description TEXT CHECK (length(description) BETWEEN 20 AND 170),
    image TEXT,
    public BOOLEAN NOT NULL DEFAULT FALSE,
    collaborative BOOLEAN NOT NULL DEFAULT FALSE,
    external_id TEXT,
    created_at BIGINT NOT NULL
);
CREATE INDEX playlist_owner_id_id ON playlist (owner_id, id);
CREATE INDEX playlist_owner_id_name ON playlist (owner_id, name);
CREATE UNIQUE INDEX playlist_external_id_owner_id ON playlist (external_id, owner_id);

CREATE TABLE playlist_track (
    id BIGSERIAL PRIMARY KEY,
    playlist_id BIGINT NOT NULL REFERENCES playlist (id) ON DELETE CASCADE,
    track_id BIGINT NOT NULL REFERENCES track (id) ON DELETE CASCADE,
    added_by_id BIGINT REFERENCES account (id) ON DELETE SET NULL,
    added_at BIGINT NOT NULL
);
CREATE INDEX playlist_track_playlist_id_id ON playlist_track (playlist_id, id);
CREATE INDEX playlist_track_track_id ON playlist_track (track_id);
CREATE INDEX playlist_track_added_by_id ON playlist_track (added_by_id);

CREATE TABLE playlist_invite (
    id BIGSERIAL PRIMARY KEY,
    playlist_id BIGINT NOT NULL REFERENCES playlist (id) ON DELETE CASCADE,
    user_id BIGINT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
    state TEXT NOT NULL CHECK (state IN ('pending', 'accepted', 'declined')),
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    answered_at BIGINT
);
CREATE UNIQUE INDEX playlist_invite_playlist_id_user_id ON playlist_invite (playlist_id, user_id);
CREATE INDEX playlist_invite_user_id ON playlist_invite (user_id);

CREATE TABLE collection (
    id BIGSERIAL PRIMARY KEY,
    user_id BIGINT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
    name TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 255),
    description TEXT,
    created_at BIGINT NOT NULL
);
CREATE INDEX collection_user_id_id ON collection (user_id, id);

CREATE TABLE collection_track (
    collection_id BIGINT NOT NULL REFERENCES collection (id) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    track_id BIGINT NOT NULL REFERENCES track (id) ON DELETE CASCADE,
    PRIMARY KEY (collection_id, position)
);
CREATE INDEX collection_track_track_id ON collection_track (track_id);

CREATE TABLE merged (
    id BIGSERIAL PRIMARY KEY,
    kind INTEGER NOT NULL CHECK (kind IN (1, 2, 3)),
    former_id BIGINT NOT NULL,
    into_id BIGINT NOT NULL,
    name TEXT NOT NULL,
    code TEXT,
    external_id TEXT,
    imported_for BIGINT NOT NULL,
    album_id BIGINT
);
CREATE INDEX merged_kind_former_id ON merged (kind, former_id);
CREATE INDEX merged_kind_into_id ON merged (kind, into_id);
CREATE INDEX merged_kind_name ON merged (kind, name);
CREATE INDEX merged_kind_code ON merged (kind, code);
CREATE INDEX merged_kind_external_id ON merged (kind, external_id);
CREATE INDEX merged_album_id ON merged (album_id);

CREATE TABLE merged_credit (
    merged_id BIGINT NOT NULL REFERENCES merged (id) ON DELETE CASCADE,
    artist_id BIGINT NOT NULL,
    PRIMARY KEY (merged_id, artist_id)
);
CREATE INDEX merged_credit_artist_id ON merged_credit (artist_id);

CREATE TABLE import_run (
    id BIGSERIAL PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('catalog', 'plays', 'follows', 'playlists')),
    file TEXT NOT NULL,
    user_id BIGINT,
    state TEXT NOT NULL CHECK (state IN ('running', 'done', 'stopped', 'undoing', 'partly', 'undone')),
    rows BIGINT NOT NULL DEFAULT 0,
    counts TEXT NOT NULL DEFAULT '{}',
    first_slot BIGINT,
    last_slot BIGINT,
    started_at BIGINT NOT NULL,
    undone_at BIGINT
);

CREATE INDEX import_run_user_id ON import_run (user_id, id);

CREATE TABLE import_task (
    id BIGSERIAL PRIMARY KEY,
    user_id BIGINT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
    step TEXT NOT NULL CHECK (step IN ('check', 'import', 'undo')),
    state TEXT NOT NULL CHECK (state IN ('waiting', 'running', 'stopping', 'done', 'stopped')),
    kind TEXT NOT NULL CHECK (kind IN ('catalog', 'plays', 'follows', 'playlists')),
    file TEXT NOT NULL,
    place TEXT NOT NULL,
    stored_as TEXT NOT NULL,
    options TEXT NOT NULL DEFAULT '{}',
    report TEXT NOT NULL DEFAULT '{}',
    percent INTEGER NOT NULL DEFAULT 0,
    run_id BIGINT,
    created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX import_task_user_id ON import_task (user_id, (step = 'undo'));
CREATE INDEX import_task_state ON import_task (state);

CREATE TABLE import_item (
    run_id BIGINT NOT NULL,
    kind TEXT NOT NULL,
    item BIGINT NOT NULL,
    changes TEXT,
    PRIMARY KEY (run_id, kind, item)
) WITHOUT ROWID;
CREATE INDEX import_item_kind_item ON import_item (kind, item);
"""
