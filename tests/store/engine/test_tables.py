"""The tables that the text of a statement reads and changes."""

from pathlib import Path

import pytest

from musicsvc.store import models
from musicsvc.store.activity.log import LogFile
from musicsvc.store.engine.store import Store
from musicsvc.store.engine.tables import Tables, counting, current_tables, note, noting

TABLES = Tables([
    ("account", None), ("album", None), ("artist", "account"), ("track", "album"), ("play", None), ("seen", None),
    ("track_like", "track"), ("track_like", "account"), ("comment", "track"), ("comment", "comment"),
    ("table_version", None),
])  # fmt: skip


@pytest.mark.parametrize(
    ("statement", "changed"),
    [
        ("SELECT * FROM track WHERE name = 'INSERT INTO play'", set()),
        ("SELECT replace(name, 'a', 'b') FROM track FOR NO KEY UPDATE", set()),
        ("SELECT 1 FROM track FOR UPDATE OF track SKIP LOCKED", set()),
        ('INSERT INTO "album" ("id") VALUES (?)', {"album"}),
        ("insert or ignore into play values (?)", {"play"}),
        ("INSERT INTO play SELECT id FROM track ON CONFLICT (id) DO UPDATE SET a = 1", {"play"}),
        ("INSERT OR REPLACE INTO track VALUES (1)", {"track", "track_like", "comment"}),
        ("REPLACE INTO play VALUES (1)", {"play"}),
        ("UPDATE album SET name = ?", {"album"}),
        ('UPDATE OR IGNORE "album" SET name = ?', {"album"}),
        ("DELETE FROM album WHERE id = 1", {"album", "track", "track_like", "comment"}),
        ("\n  DELETE\n FROM ONLY comment", {"comment"}),
        ("WITH gone AS (DELETE FROM play RETURNING id) INSERT INTO seen SELECT id FROM gone", {"play", "seen"}),
        ('COPY "play" ("id") FROM STDIN', {"play"}),
        ("SAVEPOINT unit", set()),
        ("counters:UPDATE album SET name = ?", {"counters:album"}),
        ("counters:DELETE FROM track", {"counters:track", "counters:track_like", "counters:comment"}),
    ],
)
def test_a_statement_changes(statement: str, changed: set[str]) -> None:
    assert TABLES.changed(statement) == changed


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE unheard_of SET a = 1",
        'UPDATE main."track" SET a = 1',
        "TRUNCATE play",
        "DROP TABLE play",
        "MERGE INTO play USING seen ON false",
        "INSERT INTO play VALUES (1); DELETE FROM other",
    ],
)
def test_a_statement_that_is_not_understood_changes_all_tables(statement: str) -> None:
    assert TABLES.changed(statement) == TABLES.names


def test_the_tables_that_a_statement_mentions_are_those_it_may_read() -> None:
    statement = (
        'SELECT t.id FROM track t JOIN "album" a, (SELECT track_id FROM main.track_like) WHERE play_id = play.id'
    )
    assert TABLES.mentioned(statement) == {"track", "album", "track_like", "play"}
    assert "table_version" not in TABLES.names


def test_statements_that_change_counters_are_noted_as_such_in_blocks_within_blocks() -> None:
    with noting() as outer:
        note("a")
        with noting() as inner:
            with counting():
                note("b")
            note("c")
        note("d")
    assert inner == {"counters:b", "c"}
    assert outer == {"a", "counters:b", "c", "d"}


def test_both_databases_tell_their_tables_and_foreign_keys(store: Store) -> None:
    tables = store.read(current_tables).result()
    assert {table._meta.table_name for table in models.tables()} <= tables.names
    assert tables.versioned
    assert tables.changed('DELETE FROM "playlist" WHERE id = 1') == {"playlist", "playlist_track", "playlist_invite"}
    assert tables.changed("DELETE FROM album_artist") == {"album_artist"}
    assert tables.changed("DELETE FROM album") >= {"album", "album_artist", "track", "track_like", "playlist_track"}


def test_the_tables_of_an_activity_log_are_not_looked_up_for_each_batch(tmp_path: Path) -> None:
    with LogFile(tmp_path / "activity.db") as log:
        log.prepare()
        assert log.write(current_tables).result() is log.write(current_tables).result()
