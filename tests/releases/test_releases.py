"""A database of each release is upgraded in one step to the schema of now, and the API answers as it did then."""

import json
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import apsw
import pytest

from musicsvc.clock import MovableClock
from musicsvc.store import models, opening
from musicsvc.store.backups import folder as backup_folder
from musicsvc.store.catalog import artists, changes
from musicsvc.store.engine.sql import fetch
from musicsvc.store.schema import history, schema
from tests.releases import kept, world
from tests.releases.kept import Release
from tests.support import postgres, upgrades
from tests.support.command import run_in_process
from tests.support.serving import running

RELEASES = kept.releases()
of_each = pytest.mark.parametrize("release", RELEASES, ids=[each.version for each in RELEASES])
OF_DELETED = ".plays: 615 is now 624"
ADDING = """
oldest_program = "0.1.0"

def up(migrator, db):
    db.execute_sql("ALTER TABLE album ADD COLUMN mood TEXT")
    db.execute_sql("UPDATE album SET mood = 'mood of ' || name")
    db.execute_sql("CREATE TABLE mood AS SELECT id AS track_id, name FROM track")
"""


@pytest.fixture
def place(new_database: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> Callable[[Release], str]:
    """Return a function that creates the database of a release, which commands of the test use; return its address."""

    def put(release: Release) -> str:
        url = new_database(migrated=False)
        if _store(url) == "sqlite":
            Path(url.removeprefix("sqlite:///")).write_bytes(kept.content(release, "sqlite.db.xz"))
        else:
            _execute(url, kept.content(release, "postgres.sql.xz").decode())
        monkeypatch.setenv("MUSICSVC_DATABASE_URL", url)
        return url

    return put


def _execute(url: str, statements: str) -> None:
    import psycopg  # noqa: PLC0415 - not installed for runs on SQLite

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statements.encode())


def _change(url: str, statement: str) -> None:
    if _store(url) == "sqlite":
        apsw.Connection(url.removeprefix("sqlite:///")).execute(statement)
    else:
        _execute(url, statement)


@pytest.mark.on_both
@pytest.mark.slow
@pytest.mark.parametrize("made", [{}, {"9001_moods": ADDING}], ids=["now", "next"])
@of_each
async def test_a_release_is_upgraded_in_one_step_and_answers_as_before(
    release: Release, made: dict[str, str], place: Callable[[Release], str], tmp_path: Path
) -> None:
    url = place(release)
    folder = upgrades.make_next(tmp_path / "next", made)
    missing = [name for name in history.available(folder) if name not in release.migrations]

    done = run_in_process(["db", "upgrade", "--json"], migrations=folder)

    assert done.returncode == 0, done
    upgraded = json.loads(done.stdout)
    assert upgraded["migrations"] == missing
    if _store(url) == "sqlite":
        backups = backup_folder.entries(Path(url.removeprefix("sqlite:///")).parent / "backups")
        assert [str(entry.file) for entry in backups] == ([upgraded["backup"]] if missing else [])
    with opening.connect(url, folder) as store:
        assert store.read(schema.problems).result() == []
        answers = json.loads(kept.content(release, f"{_store(url)}.json.xz"))
        async with running(store, MovableClock(world.NOW, speed=0)) as client:
            now = await kept.ask(client, world.TOKEN, [*answers["demo"]])
    assert sum(status == 200 for status, _ in answers["demo"].values()) > 100
    # Albums of an artist are ordered by the plays of its own tracks, and no more by those of all tracks on them. Plays
    # of an album have those of its deleted tracks.
    lost = [line for line in kept.lost(answers, now) if ".top_albums" not in line]
    assert [line for line in lost if not line.endswith(OF_DELETED)] == []


@of_each
def test_an_upgraded_database_numbers_changes_from_then_on(release: Release, place: Callable[[Release], str]) -> None:
    url = place(release)
    schema.upgrade(url)
    with opening.connect(url) as store:
        cursor = store.read(partial(changes.since, None)).result().cursor
        for number in (1, 2):
            store.write(partial(artists.verify, number, verified=True, now=world.NOW)).result()
            store.write(partial(artists.verify, number, verified=False, now=world.NOW)).result()
        rows = store.read(partial(changes.since, cursor)).result().rows
    assert [(row.noun, row.id, row.change) for row in rows] == [("artist", n, "updated") for n in (1, 2)]


@of_each
def test_an_upgrade_stores_external_ids_bare_unless_a_manager_has_two_rows_with_one(
    release: Release, place: Callable[[Release], str]
) -> None:
    url, mbid = place(release), "8f3471b5-7e6a-48da-86a9-c1c07a0f47ae"
    former = {  # kind and row: manager, id before, id after
        ("track", 1): (1, "spotify:track:one", "one"),
        ("track", 2): (1, "https://open.spotify.com/track/two?si=1", "https://open.spotify.com/track/two?si=1"),
        ("track", 3): (1, "two", "two"),
        ("track", 4): (2, "spotify:track:two", "two"),
        ("track", 5): (2, "https://open.spotify.com/intl-de/track/five", "five"),
        ("track", 6): (2, "spotify:track:five", "spotify:track:five"),
        ("track", 7): (1, f"https://musicbrainz.org/recording/{mbid.upper()}", mbid),
        ("track", 8): (1, "https://other.test/track/8", "https://other.test/track/8"),
        ("album", 1): (1, "https://open.spotify.com/album/one?si=1", "one"),
        ("album", 2): (1, f"urn:mbid:{mbid}", mbid),
        ("playlist", 1): (1, "spotify:user:ann:playlist:one", "one"),
        ("playlist", 2): (2, "spotify:playlist:one", "one"),
        ("merged", 1): (1, "spotify:track:merged", "merged"),
    }
    for (table, row), (manager, text, _) in former.items():
        scope = "owner_id" if table == "playlist" else "imported_for"
        _change(url, f"UPDATE {table} SET external_id = '{text}', {scope} = {manager} WHERE id = {row}")

    schema.upgrade(url)

    with opening.connect(url) as store:
        for (table, row), (_, _, after) in former.items():
            found = store.read(partial(fetch, f"SELECT external_id FROM {table} WHERE id = {row}")).result()
            assert (table, row, found) == (table, row, [(after,)])
        assert store.read(schema.problems).result() == []


@pytest.mark.only_on("sqlite")
@of_each
def test_a_kept_database_has_rows_in_every_table(release: Release, place: Callable[[Release], str]) -> None:
    connection = apsw.Connection(place(release).removeprefix("sqlite:///"))
    tables = {table._meta.table_name for table in models.tables()} & release.uses.keys()

    assert [table for table in tables if not connection.execute(f"SELECT 1 FROM {table} LIMIT 1").get] == []


@of_each
def test_released_migrations_make_the_schema_that_they_made_then(
    release: Release, place: Callable[[Release], str], new_database: Callable[..., str], tmp_path: Path
) -> None:
    released = upgrades.make_next(tmp_path / "released", {})
    for name in set(history.available()) - set(release.migrations):
        (released / f"{name}.py").unlink()
    url = new_database(migrated=False)
    schema.upgrade(url, folder=released)

    now, then = _definition(url), _definition(place(release))

    assert len(then) > 100
    assert now == then, f"{release.version} made another schema. See docs/development/releasing.md, Frozen migrations."


def _store(url: str) -> str:
    return "sqlite" if url.startswith("sqlite:///") else "postgres"


def _definition(url: str) -> list[str]:
    """Return the statements that make the tables, indexes and triggers of the database."""
    if _store(url) == "sqlite":
        connection = apsw.Connection(url.removeprefix("sqlite:///"))
        rows = connection.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name").fetchall()
        connection.close()
        return [" ".join(str(sql).split()) for (sql,) in rows]
    program = str(postgres.find_binaries() / "pg_dump")
    command = [program, "--schema-only", "--no-owner", "--no-privileges", url]
    dumped = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [line for line in dumped.splitlines() if not line.startswith("\\")]


def test_a_lost_or_changed_value_is_found_and_a_further_key_is_none() -> None:
    then = {"tracks": [{"id": 1, "name": "Air"}, {"id": 2, "name": "Gigue"}]}

    assert kept.lost(then, {"tracks": [{"id": 1, "name": "Air", "mood": "calm"}, {"id": 2, "name": "Gigue"}]}) == []
    assert kept.lost(then, {"tracks": [{"id": 1, "name": "Air"}, {"id": 2}]}) == [
        ".tracks[1].name: 'Gigue' is now Ellipsis"
    ]
    assert len(kept.lost(then, {"tracks": [{"id": 1, "name": "Air"}]})) == 1
