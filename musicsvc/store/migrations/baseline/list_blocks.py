"""Counts of long lists in blocks, kept by triggers."""

from peewee import *

TABLES = """
CREATE TABLE list_block (
    list INTEGER NOT NULL,
    owner BIGINT NOT NULL,
    first_key BIGINT NOT NULL,
    first_id BIGINT NOT NULL,
    slot INTEGER NOT NULL,
    size BIGINT NOT NULL,
    PRIMARY KEY (list, owner, first_key, first_id, slot)
) WITHOUT ROWID;
"""

# number: (table, owner of the list, the one or two columns by which its rows are sorted into blocks, an id)
LISTS = {
    1: ("album", "0", "id", "0", "id"),
    2: ("artist", "0", "id", "0", "id"),
    3: ("genre", "0", "id", "0", "id"),
    4: ("playlist", "owner_id", "id", "0", "id"),
    5: ("comment", "track_id", "place", "id", "id"),
    6: ("album_artist", "artist_id", "album_id", "0", "album_id"),
    7: ("track_artist", "artist_id", "track_id", "0", "track_id"),
    8: ("playlist_track", "playlist_id", "id", "0", "id"),
    9: ("follow", "followed_id", "id", "0", "id"),
    10: ("follow", "follower_id", "id", "0", "id"),
    11: ("message", "conversation_id", "id", "0", "id"),
    12: ("participant", "user_id", "conversation_id", "0", "conversation_id"),
    13: ("collection", "user_id", "id", "0", "id"),
    14: ("track_rank", "artist_id", "plays", "track_id", "track_id"),
    15: ("track", "0", "id", "0", "id"),
    16: ("track_genre", "genre_id", "track_id", "0", "track_id"),
}
# In all statements, names in <> are replaced. A list of at most 4,096 rows has no blocks.
COLUMNS = "list_block (list, owner, first_key, first_id, slot, size)"
BLOCK_OF_ROW = """
    FROM list_block WHERE list = <list> AND owner = <row.owner> AND (first_key, first_id) <= (<row.key>, <row.id>)
    ORDER BY first_key DESC, first_id DESC LIMIT 1
"""
# Cuts the rows of a block that has become too large into blocks of 2,048 rows.
DIVIDE = f"""
    INTO {COLUMNS}
    SELECT <list>, <block>.owner, CASE at WHEN 0 THEN <block>.first_key ELSE list_key END,
        CASE at WHEN 0 THEN <block>.first_id ELSE list_id END, 0,
        CASE WHEN <block>.size - at < 2048 THEN <block>.size - at ELSE 2048 END
    FROM (
        SELECT <key> AS list_key, <id> AS list_id, row_number() OVER (ORDER BY <key>, <id>) - 1 AS at FROM <table>
        WHERE <owner> = <block>.owner AND (<key>, <id>) >= (<block>.first_key, <block>.first_id)
        ORDER BY list_key, list_id LIMIT <block>.size
    ) AS numbered
    WHERE (at & 2047) = 0
"""

SQLITE_COUNT = f"""
    UPDATE list_block SET size = size + <sign> WHERE (list, owner, first_key, first_id, slot) =
        (SELECT list, owner, first_key, first_id, slot {BLOCK_OF_ROW})
"""
SQLITE = [
    # Before a row is added, which is then counted like any other. One row in 64 tests whether its list is long.
    (
        f"""
        CREATE TRIGGER list_<list>_begin BEFORE INSERT ON <table> WHEN (random() & 63) = 0
        AND NOT EXISTS (SELECT 1 FROM list_block WHERE list = <list> AND owner = <row.owner>)
        AND EXISTS (SELECT 1 FROM <table> WHERE <owner> = <row.owner> LIMIT 1 OFFSET 4096) BEGIN
            INSERT INTO {COLUMNS}
                SELECT <list>, <row.owner>, 0, 0, 0, count(*) FROM <table> WHERE <owner> = <row.owner>;
        END
        """,
        {"row": "NEW"},
    ),
    (
        f"CREATE TRIGGER list_<list>_added AFTER INSERT ON <table> BEGIN {SQLITE_COUNT}; END",
        {"row": "NEW", "sign": "1"},
    ),
    (
        f"CREATE TRIGGER list_<list>_removed AFTER DELETE ON <table> BEGIN {SQLITE_COUNT}; END",
        {"row": "OLD", "sign": "-1"},
    ),
    # A list that is sorted in another way loses its blocks, until a later row begins them.
    (
        """
        CREATE TRIGGER list_<list>_moved AFTER UPDATE OF <moving> ON <table> BEGIN
            DELETE FROM list_block WHERE list = <list> AND owner IN (<old.owner>, <row.owner>);
        END
        """,
        {"row": "NEW"},
    ),
    (
        f"""
        CREATE TRIGGER list_<list>_divide AFTER UPDATE OF size ON list_block
        WHEN NEW.list = <list> AND NEW.size > 4096 BEGIN
            DELETE FROM list_block WHERE list = NEW.list AND owner = NEW.owner
                AND first_key = NEW.first_key AND first_id = NEW.first_id;
            INSERT {DIVIDE};
        END
        """,
        {"block": "NEW"},
    ),
]
SQLITE_EMPTY = """
    CREATE TRIGGER list_block_empty AFTER UPDATE OF size ON list_block
    WHEN NEW.size = 0 AND (NEW.first_key, NEW.first_id) > (0, 0) BEGIN
        DELETE FROM list_block WHERE list = NEW.list AND owner = NEW.owner
            AND first_key = NEW.first_key AND first_id = NEW.first_id;
    END
"""

# Each transaction adds to rows with a number of its own (`slot`), so that none waits for another.
POSTGRES_SLOT = """
    CREATE FUNCTION list_block_slot() RETURNS integer LANGUAGE sql VOLATILE AS $$
        SELECT coalesce(
            (SELECT slot FROM generate_series(0, 63) slot WHERE pg_try_advisory_xact_lock(0, slot) LIMIT 1),
            64 + pg_backend_pid()
        )
    $$
"""
POSTGRES_COUNT = f"""
    PERFORM pg_advisory_xact_lock_shared(<list>, part)
        FROM (SELECT DISTINCT (<owner> & 63)::integer AS part FROM changed ORDER BY 1) AS parts;
    INSERT INTO {COLUMNS}
        SELECT <list>, block.owner, block.first_key, block.first_id, list_block_slot(), <sign> * count(*)
        FROM changed CROSS JOIN LATERAL (SELECT owner, first_key, first_id {BLOCK_OF_ROW}) AS block
        GROUP BY block.owner, block.first_key, block.first_id
        ON CONFLICT (list, owner, first_key, first_id, slot) DO UPDATE SET size = list_block.size + excluded.size;
"""
POSTGRES_LONG = """
    SELECT owner, first_key, first_id, sum(size)::bigint AS size FROM list_block WHERE list = <list> AND owner = wanted
    GROUP BY owner, first_key, first_id HAVING sum(size) > 4096
"""
POSTGRES = [
    # Lists begin to have blocks, and blocks divide, while no other transaction changes the list, else at a later row.
    (
        f"""
        CREATE FUNCTION list_<list>_divide(wanted bigint) RETURNS void LANGUAGE plpgsql AS $$
        DECLARE
            begun boolean := EXISTS (SELECT 1 FROM list_block WHERE list = <list> AND owner = wanted);
            block record;
        BEGIN
            IF begun AND NOT EXISTS ({POSTGRES_LONG}) THEN RETURN; END IF;
            IF NOT begun AND NOT EXISTS (SELECT 1 FROM <table> WHERE <owner> = wanted LIMIT 1 OFFSET 4096) THEN
                RETURN;
            END IF;
            IF NOT pg_try_advisory_xact_lock(<list>, (wanted & 63)::integer) THEN RETURN; END IF;
            IF NOT EXISTS (SELECT 1 FROM list_block WHERE list = <list> AND owner = wanted) THEN
                INSERT INTO {COLUMNS} SELECT <list>, wanted, 0, 0, 0, count(*) FROM <table> WHERE <owner> = wanted;
            END IF;
            FOR block IN {POSTGRES_LONG} LOOP
                DELETE FROM list_block WHERE list = <list> AND owner = wanted
                    AND first_key = block.first_key AND first_id = block.first_id;
                INSERT {DIVIDE};
            END LOOP;
        END $$
        """,
        {"block": "block"},
    ),
    (
        f"""
        CREATE FUNCTION list_<list>_added() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            {POSTGRES_COUNT}
            PERFORM list_<list>_divide(changed_owner) FROM (
                SELECT <owner> AS changed_owner FROM changed GROUP BY 1
                HAVING count(*) > 63 OR bool_or((<sample> & 63) = 0) ORDER BY 1
            ) AS owners;
            RETURN NULL;
        END $$;
        CREATE TRIGGER list_<list>_added AFTER INSERT ON <table> REFERENCING NEW TABLE AS changed
            FOR EACH STATEMENT EXECUTE FUNCTION list_<list>_added()
        """,
        {"row": "changed", "sign": "1"},
    ),
    (
        f"""
        CREATE FUNCTION list_<list>_removed() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            {POSTGRES_COUNT}
            RETURN NULL;
        END $$;
        CREATE TRIGGER list_<list>_removed AFTER DELETE ON <table> REFERENCING OLD TABLE AS changed
            FOR EACH STATEMENT EXECUTE FUNCTION list_<list>_removed()
        """,
        {"row": "changed", "sign": "-1"},
    ),
    (
        """
        CREATE FUNCTION list_<list>_moved() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            PERFORM pg_advisory_xact_lock(<list>, (part & 63)::integer)
                FROM (SELECT <old.owner> AS part UNION SELECT <row.owner> ORDER BY 1) AS parts;
            DELETE FROM list_block WHERE list = <list> AND owner IN (<old.owner>, <row.owner>);
            RETURN NULL;
        END $$;
        CREATE TRIGGER list_<list>_moved AFTER UPDATE OF <moving> ON <table>
            FOR EACH ROW EXECUTE FUNCTION list_<list>_moved()
        """,
        {"row": "NEW"},
    ),
]


def create_triggers(db):
    sqlite = isinstance(db, SqliteDatabase)
    db.execute_sql(SQLITE_EMPTY if sqlite else POSTGRES_SLOT)
    for number, columns in LISTS.items():
        for statement, names in SQLITE if sqlite else POSTGRES:
            db.execute_sql(_filled_in(statement, names, number, *columns))


def _filled_in(statement, names, number, table, owner, key, row_id, sample):
    columns = {"owner": owner, "key": key, "id": row_id}
    row = names.get("row", "")
    values = {f"row.{name}": column if column == "0" else f"{row}.{column}" for name, column in columns.items()}
    values["old.owner"] = owner if owner == "0" else f"OLD.{owner}"
    values["moving"] = ", ".join(column for column in (owner, key) if column != "0")
    values |= {"list": str(number), "table": table, "sample": sample} | columns | names
    for name, value in values.items():
        statement = statement.replace(f"<{name}>", value)
    return statement
