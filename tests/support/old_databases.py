"""A database of the first version, with rows that later ones must keep."""

from pathlib import Path
from typing import Any

import apsw

from musicsvc.store import opening
from musicsvc.store.engine.sql import run
from musicsvc.store.engine.sqlite import files
from musicsvc.store.schema import schema

ROWS = """
INSERT INTO account (id, email, email_key, display_name, api_access, created_at) VALUES
    (1, 'ann@label.test', 'ann@label.test', 'Ann', 1, 1000), (2, 'ben@label.test', 'ben@label.test', 'Бен', 0, 2000);
INSERT INTO artist (id, name, manager_id, created_at) VALUES (1, 'Trio', 1, 1), (2, 'Solo', NULL, 2);
INSERT INTO album (id, name, release_date, created_at) VALUES (1, 'Suite', '2024-02-29', 3);
INSERT INTO track (id, name, duration, album_id, currency, licensing_type, exclusive_status, fingerprint_status,
    created_at) VALUES (1, 'Air', 1000, 1, 'USD', 'both', 'sold', 'failed', 4),
    (2, 'Gigue', 2000, NULL, 'EUR', 'both', 'available', 'failed', 5);
INSERT INTO album_artist (album_id, artist_id, position) VALUES (1, 1, 0);
INSERT INTO track_artist (track_id, artist_id, position) VALUES (1, 1, 0), (1, 2, 1), (2, 2, 0);
INSERT INTO tag (id, name) VALUES (1, 'calm');
INSERT INTO track_tag (track_id, tag_id) VALUES (1, 1);
INSERT INTO token (id, user_id, name, digest, last_four, created_at, expires_at, revoked_at, revoked_reason) VALUES
    (1, 1, 'laptop', zeroblob(32), 'abcd', 10, 20, NULL, NULL), (2, 1, 'lost', randomblob(32), 'efgh', 10, 20, 15, 'x');
INSERT INTO comment (id, track_id, user_id, content, position, depth, place, created_at)
    VALUES (1, 1, 2, 'ah', 50, 0, 1, 6);
INSERT INTO genre (name, display_name)
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 300) SELECT i, i FROM n;
INSERT INTO playlist (id, owner_id, name, public, created_at) VALUES (1, 1, 'Mornings', 1, 7);
INSERT INTO playlist_track (playlist_id, track_id, added_by_id, added_at) VALUES (1, 2, 1, 8), (1, 1, 1, 9);
INSERT INTO follow (follower_id, followed_id, created_at) VALUES (1, 2, 10);
INSERT INTO track_like (track_id, user_id, created_at) VALUES (1, 2, 11);
INSERT INTO conversation (id, created_at, last_at) VALUES (1, 12, 13);
INSERT INTO participant (conversation_id, user_id) VALUES (1, 1), (1, 2);
INSERT INTO message (conversation_id, user_id, message_text, created_at) VALUES (1, 1, 'hello', 13)
"""

Rows = dict[str, list[tuple[Any, ...]]]


def make(file: Path) -> None:
    """Create a SQLite database with rows."""
    files.create(file)
    url = f"sqlite:///{file}"
    schema.upgrade(url)

    def fill() -> None:
        for statement in ROWS.split(";"):
            run(statement)

    with opening.connect(url) as store:
        store.write(fill).result()


def columns(file: Path) -> dict[str, list[str]]:
    """Return the current columns of each table."""
    connection = apsw.Connection(str(file))
    tables = [str(row[1]) for row in connection.execute("PRAGMA table_list") if row[2] == "table"]
    found = {
        table: [str(row[1]) for row in connection.execute(f"PRAGMA table_info({table})")]
        for table in tables
        if not table.startswith("sqlite_") and table != schema.HISTORY
    }
    connection.close()
    return found


def rows(file: Path, of: dict[str, list[str]]) -> Rows:
    """Return the values of these columns."""
    connection = apsw.Connection(str(file))
    found: Rows = {
        table: connection.execute(f"SELECT {', '.join(names)} FROM {table} ORDER BY 1, 2").fetchall()
        for table, names in of.items()
    }
    connection.close()
    return found
