"""Deletes by a program that reach the tables of a newer schema, so that no node shows what is gone."""

from pathlib import Path

import pytest

from musicsvc.store import opening
from musicsvc.store.engine import sql
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Album, Track
from musicsvc.store.schema import schema
from tests.support import upgrades

MOODS = """
oldest_program = "0.1.0"

def up(migrator, db):
    db.execute_sql("CREATE TABLE mood (track_id BIGINT PRIMARY KEY REFERENCES track (id) ON DELETE CASCADE)")
    db.execute_sql("CREATE TABLE mood_word (mood_id BIGINT REFERENCES mood (track_id) ON DELETE CASCADE, word TEXT)")
    db.execute_sql("CREATE TABLE shelf (album_id BIGINT REFERENCES album (id) ON DELETE SET NULL)")
    db.execute_sql("CREATE TABLE season (name TEXT)")
"""
NEW = ("mood", "mood_word", "shelf", "season")


@pytest.fixture
def newer(tmp_path: Path) -> Path:
    return upgrades.make_next(tmp_path / "next", {"9001_moods": MOODS})


def _prepare() -> None:
    for number in (1, 2, 3):
        Album.create(name=f"Album {number}", created_at=number)
        Track.create(name=f"Track {number}", duration=1, created_at=number, album=number)


def _fill() -> None:
    for number in (1, 2, 3):
        sql.run(f"INSERT INTO mood VALUES ({number})")
        sql.run(f"INSERT INTO mood_word VALUES ({number}, 'calm')")
        sql.run(f"INSERT INTO shelf VALUES ({number})")


def _advanced(store: Store, statement: str) -> set[str]:
    """Return the new tables whose version numbers the statement advances."""
    before = store.read(_versions).result()
    store.write(lambda: sql.run(statement)).result()
    after = store.read(_versions).result()
    return {name for name in NEW if after.get(name) != before.get(name)}


def _versions() -> dict[str, int]:
    return {
        str(name): int(number)
        for name, number in sql.fetch("SELECT name, sum(number) FROM table_version GROUP BY name")
    }


def _check(store: Store) -> None:
    assert _advanced(store, "DELETE FROM track WHERE id = 1") == {"mood", "mood_word"}
    assert _advanced(store, "DELETE FROM album WHERE id = 2") >= {"shelf"}
    assert _advanced(store, "UPDATE track SET name = 'a' WHERE id = 3") == set()
    assert store.read(lambda: sql.fetch("SELECT count(*) FROM mood_word")).result() != [(3,)]


@pytest.mark.only_on("postgres")
def test_a_program_that_was_opened_before_an_upgrade_advances_the_versions_of_new_tables(
    store: Store, store_url: str, newer: Path
) -> None:
    store.write(_prepare).result()
    schema.upgrade(store_url, folder=newer)
    with opening.connect(store_url) as other:
        other.write(_fill).result()

    _check(store)


def test_a_program_that_opens_a_newer_schema_advances_the_versions_of_new_tables(store_url: str, newer: Path) -> None:
    schema.upgrade(store_url, folder=newer)
    with opening.connect(store_url) as store:
        store.write(_prepare).result()
        store.write(_fill).result()

        _check(store)
