"""Commands and servers of this version on the schema of a newer one that lets them."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest
from peewee import Database

from musicsvc.clock import MovableClock
from musicsvc.store import opening
from musicsvc.store.activity import log as activity_log
from musicsvc.store.engine.sql import fetch
from musicsvc.store.engine.sqlite.files import SqliteDatabase
from musicsvc.store.schema import history, schema
from tests.cli.conftest import Json, Run
from tests.support import program, upgrades
from tests.support.command import run_in_process
from tests.support.serving import running

sqlite = pytest.mark.only_on("sqlite")
COMPATIBLE = """
oldest_program = "0.1.0"

def up(migrator, db):
    db.execute_sql("CREATE TABLE mood (track_id BIGINT PRIMARY KEY, name TEXT NOT NULL)")
    db.execute_sql("ALTER TABLE token ADD COLUMN mood TEXT")
    db.execute_sql("ALTER TABLE track ADD COLUMN mood TEXT NOT NULL DEFAULT 'calm'")
    db.execute_sql("DROP INDEX track_artist_artist_id_track_id")
"""
COMPATIBLE_LOG = """
oldest_program = "0.1.0"

def up(migrator, db):
    db.execute_sql("ALTER TABLE activity ADD COLUMN seconds INTEGER")
    db.execute_sql("DROP INDEX activity_refused")
"""
NEWER = "0.10.0"


@contextmanager
def _log(url: str) -> Iterator[Database]:
    """Connect to the activity log for migrations."""
    if url.startswith("postgresql:"):
        with schema.migrating(url) as database:
            yield database
        return
    opened = SqliteDatabase(activity_log.default_file(Path(url.removeprefix("sqlite:///"))), {"journal_mode": "WAL"})
    yield opened
    opened.close_all()


@pytest.fixture
def newer(run: Run, store_url: str, tmp_path: Path) -> str:
    """Upgrade the database of the test to made next schemas that this version may use; return its address."""
    run("user", "create", "ann@label.test")
    run("access", "grant", "ann@label.test")
    run("db", "upgrade")
    log = upgrades.make_next(tmp_path / "log", {"9001_seconds": COMPATIBLE_LOG}, like=activity_log.MIGRATIONS)
    with _log(store_url) as database:
        assert activity_log.migrate(database, log) == ["9001_seconds"]
    folder = upgrades.make_next(tmp_path / "next", {"9001_moods": COMPATIBLE})
    assert schema.upgrade(store_url, folder=folder) == ["9001_moods"]
    return store_url


@pytest.mark.usefixtures("newer")
def test_every_command_works_and_a_token_can_be_revoked(ask: Json, run: Run) -> None:
    made = ask("token", "create", "ann@label.test", "--name", "laptop")
    assert ask("token", "revoke", str(made["id"]))["revoked_reason"] == "revoked by an operator"
    assert [each["state"] for each in ask("token", "list", "--user", "ann@label.test")] == ["revoked"]
    assert ask("db", "check") == {"ok": True, "problems": []}
    assert (ask("db", "upgrade"), ask("init")["migrations"]) == ({"migrations": [], "backup": None}, [])
    found = {
        each["check"]: (each["level"], each["finding"])
        for each in json.loads(run_in_process(["doctor", "--json"]).stdout)["findings"]
    }
    assert found["schema"] == ("ok", "The schema is of a newer version (9001_moods), and this one may use it.")
    assert found["activity log"][0] == "ok"
    run("activity")


async def test_a_server_is_ready_and_reads_and_writes(newer: str, clock: MovableClock, run: Run) -> None:
    token = json.loads(run("token", "create", "ann@label.test", "--name", "laptop", "--json").stdout)["token"]
    with opening.connect(newer) as store:
        async with running(store, clock) as anonymous:
            client = anonymous.holding(token)
            assert (await client.get("/readyz")).status == 200
            artist = (await client.post("artists", {"name": "Trio"})).json["artist"]["id"]
            track = await client.post("tracks", {"name": "Air", "duration": 1000, "artists": [artist]})
            assert (track.status, (await client.get("tracks")).json["pagination"]["total"]) == (201, 1)
            moods = store.read(lambda: fetch("SELECT mood FROM track")).result()
    assert moods == [("calm",)]


def test_the_log_of_calls_is_used_and_not_replaced(newer: str) -> None:
    with activity_log.build(newer) as log:
        log.prepare()
        assert log.read(activity_log.exists).result()
    if newer.startswith("sqlite:///"):
        folder = Path(newer.removeprefix("sqlite:///")).parent
        assert list(folder.glob("*.aside*")) == []


@sqlite
def test_a_backup_is_made_and_restored(newer: str, ask: Json, run: Run, tmp_path: Path) -> None:
    place = tmp_path / "saved.db"
    assert ask("db", "backup", str(place))["schema"] == "9001_moods"
    restored = run("db", "restore", str(place), "--yes", "--json")
    assert json.loads(restored.stdout) | {"schema": "9001_moods", "current": True} == json.loads(restored.stdout)
    assert "Run: musicsvc db upgrade" not in restored.stderr
    with opening.connect(newer) as store:
        assert store.read(lambda: history.unknown(schema.applied())).result() == ["9001_moods"]


@sqlite
def test_only_the_newest_program_that_unknown_migrations_name_counts(newer: str, run: Run) -> None:
    connection = apsw.Connection(newer.removeprefix("sqlite:///"))
    for name, version in (("9002_a", "0.9.0"), ("9003_b", NEWER), ("9004_c", "0.2.0")):
        connection.execute("INSERT INTO schema_migration (name, oldest_program) VALUES (?, ?)", (name, version))
    connection.close()
    refusals = [run(*command.split(), expect=1) for command in ("db upgrade", "db check", "user list", "init")]
    for done in (*refusals, program.run("serve", "--port", "0")):
        assert f" needs musicsvc {NEWER} or newer, and this is " in done.stderr
    run("db", "backup", str(Path(newer.removeprefix("sqlite:///")).with_name("saved.db")))
    saved = str(Path(newer.removeprefix("sqlite:///")).with_name("saved.db"))
    said = run("db", "restore", saved, "--yes", expect=1).stderr
    assert said.startswith(f"Error: {saved} needs musicsvc {NEWER} or newer")


def test_a_development_version_counts_as_its_release() -> None:
    assert history.release("0.2.0.dev0") == history.release("0.2.0") == (0, 2, 0)
    assert history.release("0.10.0") > history.release("0.9.3")
