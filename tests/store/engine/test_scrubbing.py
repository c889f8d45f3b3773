"""Erased rows of a SQLite file are overwritten wherever they are left, while others read and write."""

import random
from pathlib import Path

import apsw
import pytest

from musicsvc.store.engine.sqlite import scrubbing
from tests.support.file_bytes import of_folder

pytestmark = pytest.mark.only_on("sqlite")
TABLES = """
    PRAGMA journal_mode = WAL;
    CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
    CREATE UNIQUE INDEX person_name ON person (name);
    CREATE TABLE letter (name TEXT, n INTEGER, text BLOB, PRIMARY KEY (name, n)) WITHOUT ROWID;
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "some.db"


def connect(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path))
    connection.set_busy_timeout(10_000)
    connection.execute("PRAGMA synchronous = OFF").fetchall()
    return connection


def content(path: Path) -> bytes:
    """Return the bytes of the file and of its WAL."""
    return of_folder(path.parent)


def fill(database: apsw.Connection, chance: random.Random) -> list[str]:
    """Add people with letters of many lengths in random order, delete some, and return the names of the others."""
    names = [f"name-{chance.getrandbits(64):016x}" for _ in range(1200)]
    for start in range(0, len(names), 100):
        some = names[start : start + 100]
        database.execute("BEGIN")
        database.executemany("INSERT INTO person (name) VALUES (?)", [(name,) for name in some])
        letters = [(name, n, name * chance.choice((1, 20, 500))) for name in some[::4] for n in range(3)]
        database.executemany("INSERT INTO letter VALUES (?, ?, ?)", letters)
        database.executemany("DELETE FROM letter WHERE name = ? AND n = 1", [(name,) for name in some[::8]])
        database.execute("COMMIT")
    return names


def erase(database: apsw.Connection, names: list[str], chance: random.Random) -> None:
    database.execute("BEGIN")
    for name in names:
        database.execute("UPDATE person SET name = ? WHERE name = ?", (f"x{chance.getrandbits(99)}", name))
        database.execute("DELETE FROM letter WHERE name = ?", (name,))
    database.execute("COMMIT")


def dump(database: apsw.Connection) -> list[object]:
    return [*database.execute("SELECT * FROM person ORDER BY id"), *database.execute("SELECT * FROM letter")]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_nothing_of_erased_rows_is_left_and_all_others_stay(path: Path, seed: int) -> None:
    chance = random.Random(seed)
    database = connect(path)
    database.execute(TABLES).fetchall()
    database.execute("PRAGMA secure_delete = ON").fetchall()
    names = fill(database, chance)
    for _ in range(3):
        erased = [names.pop(chance.randrange(len(names))) for _ in range(100)]
        erase(database, erased, chance)
        before = dump(database)
        assert scrubbing.scrub(path, lambda: False)
        found = content(path)
        assert [name for name in erased if name.encode() in found] == []
        assert dump(database) == before
        assert database.execute("PRAGMA integrity_check").get == "ok"
        fill(database, chance)
    database.close()


@pytest.mark.slow
def test_what_earlier_versions_left_between_rows_and_in_free_pages_is_overwritten(path: Path) -> None:
    chance = random.Random(1)
    database = connect(path)
    database.execute(TABLES).fetchall()
    database.execute("PRAGMA secure_delete = OFF").fetchall()
    names = fill(database, chance)
    erase(database, names, chance)
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    left = content(path)
    assert sum(name.encode() in left for name in names) > 100
    before = dump(database)
    assert scrubbing.scrub(path, lambda: False)
    left = content(path)
    assert sum(name.encode() in left for name in names) == 0
    assert dump(database) == before
    assert database.execute("PRAGMA integrity_check").get == "ok"
    database.close()


def test_it_waits_for_a_transaction_that_reads_what_was_there_before(path: Path) -> None:
    chance = random.Random(2)
    database, reader = connect(path), connect(path)
    database.execute(TABLES).fetchall()
    names = fill(database, chance)
    reader.execute("BEGIN")
    before = dump(reader)
    erase(database, names[:50], chance)
    asked = 0

    def is_stopping() -> bool:
        nonlocal asked
        asked += 1
        if asked == 5:
            assert dump(reader) == before
            assert names[0].encode() in content(path)
            reader.execute("COMMIT")
        return False

    assert scrubbing.scrub(path, is_stopping)
    assert asked > 5
    found = content(path)
    assert [name for name in names[:50] if name.encode() in found] == []
    for each in (database, reader):
        each.close()


def test_a_writer_with_pages_in_memory_does_not_write_back_what_was_overwritten(path: Path) -> None:
    chance = random.Random(3)
    database = connect(path)
    database.execute(TABLES).fetchall()
    database.execute("PRAGMA secure_delete = OFF").fetchall()
    erased = [name for at, name in enumerate(fill(database, chance)[:400]) if at % 4]  # those without letters
    erase(database, erased, chance)
    dump(database)  # reads all pages into memory
    assert scrubbing.scrub(path, lambda: False)
    database.execute("UPDATE person SET name = name || '.'")
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    found = content(path)
    assert [name for name in erased if name.encode() in found] == []
    database.close()


def test_pages_of_an_unexpected_form_are_left_alone() -> None:
    page = bytearray(512)
    page[0] = scrubbing.TABLE_LEAF
    page[3:5], page[5:7] = (300).to_bytes(2, "big"), (400).to_bytes(2, "big")  # rows end after they begin
    assert scrubbing.unused_ranges(bytes(page)) == []
    page[3:5], page[1:3] = (1).to_bytes(2, "big"), (400).to_bytes(2, "big")  # a free block that follows itself
    page[400:404] = (400).to_bytes(2, "big") + (8).to_bytes(2, "big")
    assert scrubbing.unused_ranges(bytes(page)) == []
    page[400:404] = bytes(2) + (300).to_bytes(2, "big")  # one that ends after the page
    assert scrubbing.unused_ranges(bytes(page)) == []
    page[400:404] = bytes(2) + (20).to_bytes(2, "big")
    assert scrubbing.unused_ranges(bytes(page)) == [(10, 400), (404, 420)]
