"""The tracks of artists with very many tracks, sorted by plays. Triggers add and remove tracks."""

from peewee import *

TABLES = """
CREATE TABLE track_rank (
    artist_id BIGINT NOT NULL,
    plays BIGINT NOT NULL,
    track_id BIGINT NOT NULL,
    PRIMARY KEY (artist_id, plays, track_id)
) WITHOUT ROWID;
"""
# An artist has ranks once the list of the artist's tracks is counted in blocks (number 7).
FILL = """
    INSERT INTO track_rank (artist_id, plays, track_id)
        SELECT l.artist_id, coalesce(p.plays, 0), l.track_id
        FROM track_artist l LEFT JOIN track_plays p ON p.track_id = l.track_id WHERE l.artist_id
"""
RANKED = "EXISTS (SELECT 1 FROM track_rank r WHERE r.artist_id = {artist})"

SQLITE = [
    f"""
    CREATE TRIGGER track_rank_begin AFTER INSERT ON list_block
    WHEN NEW.list = 7 AND NEW.first_key = 0 AND NOT {RANKED.format(artist="NEW.owner")} BEGIN
        {FILL} = NEW.owner;
    END
    """,
    f"""
    CREATE TRIGGER track_rank_added AFTER INSERT ON track_artist WHEN {RANKED.format(artist="NEW.artist_id")} BEGIN
        INSERT INTO track_rank VALUES (
            NEW.artist_id, coalesce((SELECT plays FROM track_plays WHERE track_id = NEW.track_id), 0), NEW.track_id
        );
    END
    """,
    f"""
    CREATE TRIGGER track_rank_removed AFTER DELETE ON track_artist WHEN {RANKED.format(artist="OLD.artist_id")} BEGIN
        DELETE FROM track_rank WHERE artist_id = OLD.artist_id AND track_id = OLD.track_id
            AND plays = coalesce((SELECT plays FROM track_plays WHERE track_id = OLD.track_id), 0);
    END
    """,
]
LOCK = 0x504C4159  # which every transaction holds that changes plays
POSTGRES = [
    f"""
    CREATE FUNCTION track_rank_added() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE artist bigint;
    BEGIN
        IF EXISTS (SELECT 1 FROM changed WHERE {RANKED.format(artist="changed.artist_id")}) THEN
            PERFORM pg_advisory_xact_lock({LOCK});
            INSERT INTO track_rank (artist_id, plays, track_id)
                SELECT c.artist_id, coalesce(p.plays, 0), c.track_id
                FROM changed c LEFT JOIN track_plays p ON p.track_id = c.track_id
                WHERE {RANKED.format(artist="c.artist_id")};
        END IF;
        FOR artist IN
            SELECT DISTINCT owner FROM list_block WHERE list = 7 AND owner IN (SELECT artist_id FROM changed)
            AND NOT {RANKED.format(artist="owner")}
        LOOP
            -- Nobody else changes the artist's tracks or any plays meanwhile; otherwise a later row does it.
            IF pg_try_advisory_xact_lock(7, (artist & 63)::integer) AND pg_try_advisory_xact_lock({LOCK}) THEN
                {FILL} = artist;
            END IF;
        END LOOP;
        RETURN NULL;
    END $$
    """,
    f"""
    CREATE FUNCTION track_rank_removed() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF EXISTS (SELECT 1 FROM changed WHERE {RANKED.format(artist="changed.artist_id")}) THEN
            PERFORM pg_advisory_xact_lock({LOCK});
            DELETE FROM track_rank r USING changed c LEFT JOIN track_plays p ON p.track_id = c.track_id
                WHERE r.artist_id = c.artist_id AND r.track_id = c.track_id AND r.plays = coalesce(p.plays, 0);
        END IF;
        RETURN NULL;
    END $$
    """,
    """
    CREATE TRIGGER track_rank_added AFTER INSERT ON track_artist REFERENCING NEW TABLE AS changed
        FOR EACH STATEMENT EXECUTE FUNCTION track_rank_added()
    """,
    """
    CREATE TRIGGER track_rank_removed AFTER DELETE ON track_artist REFERENCING OLD TABLE AS changed
        FOR EACH STATEMENT EXECUTE FUNCTION track_rank_removed()
    """,
]


def create_triggers(db):
    for statement in SQLITE if isinstance(db, SqliteDatabase) else POSTGRES:
        db.execute_sql(statement)
