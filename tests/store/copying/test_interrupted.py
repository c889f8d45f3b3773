"""A copy that runs into a full disk or loses its connection says so, and the same command finishes it."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import apsw
import pytest

from musicsvc.store.copying import copy
from musicsvc.store.engine import bulk
from musicsvc.store.engine.store import Store
from musicsvc.store.models import PlayCount
from musicsvc.store.schema import history, schema
from tests.faults import small_disk
from tests.faults.small_disk import SmallDisk
from tests.support import databases, every_table
from tests.support.program import Program, run, until

LARGE = 100_000  # bytes of a row, so that a copy takes a while and fills a small disk


@databases.prefilling
def prefilled(store: Store) -> None:
    """A database with rows in every table, some of them large."""

    def fill() -> None:
        every_table.fill()
        rows = [(2**62 + n, n, 0, bytes([n]) * LARGE, b"") for n in range(50)]
        bulk.insert(PlayCount, ["key", "plays", "own", "listeners", "histogram"], rows)

    store.write(fill).result()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk.mounted(tmp_path / "small") as disk:
        yield disk


@pytest.mark.slow
def test_a_copy_to_a_full_disk_names_the_file_and_continues_when_there_is_room(
    prefilled: databases.Filled[None],  # noqa: ARG001 - `store_url` is a copy of it
    store_url: str,
    disk: SmallDisk,
) -> None:
    target = disk.folder / "copy.db"
    (disk.folder / "other").write_bytes(bytes(18 << 20))
    done = run("db", "copy", store_url, str(target))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"Error: The disk of {target} is full. Make room on it, then try again. Everything copied so far is kept: run"
        " the same command again to continue.\n"
    )
    (disk.folder / "other").unlink()

    assert run("db", "copy", store_url, str(target)).returncode == 0
    assert run("db", "compare", store_url, str(target)).returncode == 0


@pytest.mark.slow
def test_a_copy_that_ended_between_two_migrations_continues(
    prefilled: databases.Filled[None],  # noqa: ARG001 - `store_url` is a copy of it
    store_url: str,
    template: databases.Template,
    tmp_path: Path,
) -> None:
    for name in history.available()[:2]:
        (tmp_path / f"{name}.py").write_bytes((history.MIGRATIONS / f"{name}.py").read_bytes())
    (tmp_path / "made").mkdir()
    with databases.Maker(template, tmp_path / "made") as maker:
        target = maker.make(migrated=False)
        assert schema.upgrade(target, folder=tmp_path) == history.available()[:2]
        assert run("db", "copy", store_url, target).returncode == 0
        assert run("db", "compare", store_url, target).returncode == 0


@pytest.mark.slow
@pytest.mark.only_on("postgres")
def test_a_copy_that_loses_its_connection_continues(
    prefilled: databases.Filled[None],  # noqa: ARG001 - `store_url` is a copy of it
    store_url: str,
    template: databases.Template,
    tmp_path: Path,
) -> None:
    (tmp_path / "made").mkdir()
    with databases.Maker(template, tmp_path / "made") as maker:
        target = maker.make(migrated=False)
        with Program(tmp_path, "db", "copy", store_url, target) as program:
            until(lambda: end_connections(target, "COPY%play_count%FROM STDIN%"))
            assert program.process.wait(60) == 1
        assert program.err.startswith("Error: The database postgresql:///")
        assert program.err.endswith("Everything copied so far is kept: run the same command again to continue.\n")
        assert program.err.count("\n") == 1

        assert run("db", "copy", store_url, target).returncode == 0
        assert run("db", "compare", store_url, target).returncode == 0


@pytest.mark.only_on("postgres")
def test_a_copy_goes_on_where_the_server_ends_idle_connections(
    prefilled: databases.Filled[None],  # noqa: ARG001 - `store_url` is a copy of it
    store_url: str,
    template: databases.Template,
    tmp_path: Path,
) -> None:
    (tmp_path / "made").mkdir()
    with databases.Maker(template, tmp_path / "made") as maker, copy.connect(store_url) as source:
        target = f"{maker.make(migrated=False)}&options={quote('-c idle_session_timeout=200')}"
        assert copy.copy(source, target).complete


def end_connections(url: str, statement: str) -> bool:
    """End the connections to a database that run a statement like this one. Return whether there was any."""
    import psycopg  # noqa: PLC0415 - not installed for runs on SQLite

    name = databases.name_of(url)
    with psycopg.connect(url.replace(name, "postgres", 1)) as connection:
        found = connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND query LIKE %s",
            (name, statement),
        )
        return bool(found.fetchall())


@pytest.mark.slow
def test_a_row_that_refers_to_a_missing_one_is_named_and_the_copy_stays_unfinished(
    prefilled: databases.Filled[None],  # noqa: ARG001 - `store_url` is a copy of it
    store_url: str,
    template: databases.Template,
    tmp_path: Path,
) -> None:
    source = tmp_path / "damaged.db"
    assert run("db", "copy", store_url, str(source)).returncode == 0
    damaged = apsw.Connection(str(source))
    damaged.execute("INSERT INTO track_genre (track_id, genre_id) VALUES (999, 1)")
    (tmp_path / "made").mkdir()
    with databases.Maker(template, tmp_path / "made") as maker:
        target = maker.make(migrated=False)
        done = run("db", "copy", str(source), target)
        assert done.returncode == 1
        assert re.search("track_genre.*elete it from the source", done.stderr), done.stderr
        assert "unfinished copy" in run("db", "compare", str(source), target).stderr
        damaged.execute("DELETE FROM track_genre WHERE track_id = 999")
        damaged.close()

        assert run("db", "copy", str(source), target).returncode == 0
        assert run("db", "compare", str(source), target).returncode == 0
