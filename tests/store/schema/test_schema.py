"""Migrations run once, atomically, in one process at a time; and the checks of `db check`."""

import itertools
import signal
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import peewee
import pytest

from musicsvc.errors import Failure, MissingReference
from musicsvc.store import models, opening
from musicsvc.store.engine.sql import current, fetch
from musicsvc.store.engine.sqlite import files
from musicsvc.store.engine.store import Store
from musicsvc.store.schema import history, schema
from tests.conftest import Sample
from tests.support import upgrades
from tests.support.upgrades import MOODS

sqlite = pytest.mark.only_on("sqlite")


def _problems(url: str) -> list[str]:
    with opening.open_unchecked(url) as store:
        return store.read(schema.problems).result()


def test_an_upgrade_applies_everything_and_a_second_one_nothing(new_database: Callable[..., str]) -> None:
    url = new_database(migrated=False)

    assert schema.upgrade(url) == history.available()
    assert schema.upgrade(url) == []
    assert _problems(url) == []


def test_an_upgrade_changes_the_tables_and_keeps_the_rows(sample: Sample, store_url: str, tmp_path: Path) -> None:
    folder = upgrades.make_next(tmp_path / "next")
    saved: list[str] = []
    reported: list[tuple[float, float]] = []

    names = schema.upgrade(store_url, saved.append, lambda done, count: reported.append((done, count)), folder)

    assert (names, saved) == ([*upgrades.NEXT], ["9001_moods"])
    assert schema.upgrade(store_url, saved.append, folder=folder) == []
    with opening.connect(store_url, folder) as store:
        tracks, moods = store.read(lambda: (fetch("SELECT id, album_id FROM track ORDER BY id"), fetch(MOODS))).result()
        assert moods == [(track, f"mood of {track}", album) for track, album in tracks]
        albums = store.read(lambda: fetch(upgrades.ALBUM_MOODS)).result()
        assert {mood.removeprefix("mood of ") == name for name, mood in albums} == {True}
        assert store.read(schema.damage).result() == []
    assert len(tracks) == sample.made["tracks"]
    assert reported == sorted(reported)
    steps = [each / len(tracks) for each in range(len(tracks))]
    assert [done for done, _ in reported] == [0.0, *steps, 1.0, 2.0]
    assert {count for _, count in reported} == {2}
    with pytest.raises(Failure, match=r"needs musicsvc 9\.2\.0 or newer"):
        opening.connect(store_url)


@pytest.mark.slow
@pytest.mark.parametrize("migrated", [False, True])
def test_concurrent_processes_migrate_once(new_database: Callable[..., str], tmp_path: Path, *, migrated: bool) -> None:
    url = new_database(migrated=migrated)
    folder = upgrades.make_next(tmp_path / "next")
    processes = [upgrades.start(url, folder) for _ in range(2)]
    for process in processes:
        assert process.stdin
        process.stdin.write("\n")
        process.stdin.flush()

    said = sorted(process.communicate(timeout=60)[0].split() for process in processes)

    assert said == [[], history.available(folder)[len(history.available()) if migrated else 0 :]]
    assert [process.returncode for process in processes] == [0, 0]
    with opening.connect(url, folder) as store:
        assert store.read(schema.damage).result() == []


@pytest.mark.slow
def test_a_creation_killed_after_any_statement_is_finished_by_the_next(
    new_database: Callable[..., str], *, long: bool
) -> None:
    counts = itertools.count(1) if long else iter((4, 9, 30))
    killed = -signal.SIGKILL
    while killed == -signal.SIGKILL and (statements := next(counts, 0)):
        url = new_database(migrated=False)
        killed = upgrades.kill(url, history.MIGRATIONS, statements)

        schema.upgrade(url)

        assert _problems(url) == []
    assert killed == (0 if long else -signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.usefixtures("sample")
def test_an_upgrade_killed_after_any_statement_is_finished_by_the_next(
    new_database: Callable[..., str], tmp_path: Path, *, long: bool
) -> None:
    folder = upgrades.make_next(tmp_path / "next")
    counts = itertools.count(6, 1 if long else 9)
    killed, applied = -signal.SIGKILL, set[int]()
    while killed == -signal.SIGKILL:
        url = new_database()
        killed = upgrades.kill(url, folder, next(counts))

        with opening.open_unchecked(url) as store:
            applied.add(len(store.read(schema.applied).result()))
        schema.upgrade(url, folder=folder)

        with opening.connect(url, folder) as store:
            tracks, moods = store.read(lambda: (fetch("SELECT id FROM track"), fetch(MOODS))).result()
            assert {track for (track,) in tracks} == {row[0] for row in moods}
            assert store.read(schema.damage).result() == []
    released = len(history.available())
    assert (killed, applied) == (0, {released, released + 1, released + 2})


def test_an_upgrade_leaves_the_models_unbound(new_database: Callable[..., str]) -> None:
    schema.upgrade(new_database(migrated=False))

    with pytest.raises(RuntimeError, match="must run in a unit"):
        current()


def test_a_failing_migration_changes_nothing_and_is_reported_in_one_line(store_url: str, tmp_path: Path) -> None:
    failing = (
        "oldest_program = '0.1.0'\n"
        "def up(migrator, db):\n"
        "    db.execute_sql('CREATE TABLE half (x INTEGER)')\n"
        "    db.execute_sql('INSERT INTO nowhere VALUES (1)')\n"
    )
    folder = upgrades.make_next(tmp_path / "next", {"9998_next": failing})

    with pytest.raises(Failure, match="could not be upgraded") as refused:
        schema.upgrade(store_url, folder=folder)

    assert ". Of the migrations, 9998_next has changed nothing, and those before it are kept." in refused.value.here
    with opening.open_unchecked(store_url) as store:
        assert "half" not in store.read(lambda: current().get_tables()).result()
        assert "9998_next" not in store.read(schema.applied).result()


@pytest.mark.parametrize(
    ("statement", "missing"),
    [
        ("DROP INDEX track_artist_artist_id_track_id", "index track_artist (artist_id, track_id)"),
        ("ALTER TABLE account DROP COLUMN avatar", "column account.avatar"),
    ],
)
def test_what_was_dropped_is_a_problem(store: Store, statement: str, missing: str) -> None:
    store.write(lambda: current().execute_sql(statement) and None).result()
    assert store.read(schema.problems).result() == [f"schema: add {missing}"]


@sqlite
def test_an_index_that_differs_from_its_table_is_a_problem(store_url: str) -> None:
    connection = apsw.Connection(store_url.removeprefix("sqlite:///"))
    connection.execute("INSERT INTO tag (name) VALUES ('calm'), ('loud')")
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute("UPDATE sqlite_schema SET sql = replace(sql, '(name)', '(id)') WHERE name = 'tag_name'")
    connection.execute("PRAGMA writable_schema = RESET")
    connection.close()

    assert any(line.startswith("integrity: ") for line in _problems(store_url))


def _columns(url: str) -> dict[str, list[tuple[Any, ...]]]:
    def look() -> dict[str, list[tuple[Any, ...]]]:
        db = current()
        return {
            table._meta.table_name: sorted(
                (column.name, column.data_type, column.null, column.primary_key)
                for column in db.get_columns(table._meta.table_name)
            )
            + sorted(
                (key.column, key.dest_table, key.dest_column) for key in db.get_foreign_keys(table._meta.table_name)
            )
            for table in models.tables()
        }

    with opening.open_unchecked(url) as store:
        return store.read(look).result()


def test_the_migrations_produce_the_tables_of_the_models(new_database: Callable[..., str]) -> None:
    modelled = new_database(migrated=False)
    with opening.open_unchecked(modelled) as store:
        store.write(lambda: current().create_tables(models.tables(), safe=False)).result()

    assert _columns(new_database()) == _columns(modelled)


@sqlite
def test_tables_are_strict_and_never_reuse_ids(store: Store) -> None:
    def look() -> tuple[set[str], set[str]]:
        tables = {row[1]: row[5] for row in current().execute_sql("PRAGMA table_list") if row[2] == "table"}
        loose = {name for name, strict in tables.items() if not strict and not name.startswith("sqlite_")}
        rows = current().execute_sql("SELECT name FROM sqlite_schema WHERE sql LIKE '%AUTOINCREMENT%'").fetchall()
        return loose, {name for (name,) in rows}

    loose, counted = store.read(look).result()

    assert loose == {schema.HISTORY}
    assert counted == {
        table._meta.table_name for table in models.tables() if isinstance(table._meta.primary_key, peewee.BigAutoField)
    }


@sqlite
def test_only_the_owner_can_read_the_data_folder_and_its_files(tmp_path: Path) -> None:
    file = tmp_path / "new" / "musicsvc.db"
    files.create(file)
    url = f"sqlite:///{file}"
    schema.upgrade(url)

    with opening.connect(url) as store:
        store.write(lambda: models.Tag.create(name="calm")).result()
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in file.parent.iterdir()}

    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert {"musicsvc.db", "musicsvc.db-wal"} <= set(modes)
    assert set(modes.values()) == {0o600}


ALBUM = {"name": "Suite", "created_at": 0}
TRACK = {"name": "Air", "duration": 1, "created_at": 0}


BREAKING: list[tuple[type[peewee.Model], dict[str, Any]]] = [
    (models.Album, ALBUM | {"name": ""}),
    (models.Album, ALBUM | {"name": "x" * 256}),
    (models.Album, ALBUM | {"release_date": "2024"}),
    (models.Track, TRACK | {"duration": -1}),
    (models.Track, TRACK | {"duration": 86_400_001}),
    (models.Track, TRACK | {"bpm": 19}),
    (models.Track, TRACK | {"scale": "major"}),
    (models.Track, TRACK | {"price": -0.5}),
    (models.Track, TRACK | {"licensing_type": "none"}),
    (models.Track, TRACK | {"fingerprint_status": "done"}),
    (models.Track, TRACK | {"name": None}),
    (models.Token, {"user": 1, "name": "t", "digest": b"", "last_four": "abcd", "created_at": 0, "expires_at": 0}),
]


def test_the_database_refuses_rows_that_break_a_rule(store: Store) -> None:
    for table, row in BREAKING:
        with pytest.raises(peewee.IntegrityError):
            store.write(lambda table=table, row=row: table.insert(**row).execute() and None).result()  # type: ignore[misc]


def test_the_database_refuses_references_to_missing_rows(store: Store) -> None:
    with pytest.raises(MissingReference):
        store.write(lambda: models.Track.insert(**TRACK | {"album": 12}).execute() and None).result()
