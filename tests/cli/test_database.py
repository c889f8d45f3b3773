"""`musicsvc init`, `db` and `config`."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from musicsvc.store import opening
from musicsvc.store.backups import folder as backup_folder
from musicsvc.store.engine.sql import fetch
from musicsvc.store.schema import history, schema
from tests.cli.conftest import Run
from tests.conftest import Sample
from tests.support import old_databases, upgrades
from tests.support.command import run_in_process


@pytest.mark.only_on("sqlite")
def test_init_creates_the_database_and_is_safe_to_repeat(bare: Run, tmp_path: Path) -> None:
    assert "Run: musicsvc init" in bare("user", "list", expect=1).stderr
    first = json.loads(bare("init", "--json").stdout)
    assert (first["created"], first["migrations"][0]) == (True, "0001_baseline")
    bare("user", "create", "ada@example.test")
    again = bare("init", "--json")
    assert json.loads(again.stdout) == {**first, "created": False, "migrations": []}
    assert "exists already" in again.stderr
    assert len(json.loads(bare("user", "list", "--json").stdout)) == 1
    folder = tmp_path / "folder"
    assert (folder.stat().st_mode & 0o777, (folder / "musicsvc.db").stat().st_mode & 0o777) == (0o700, 0o600)


@pytest.mark.only_on("sqlite")
@pytest.mark.parametrize("content", [b"", b"no database at all, but long enough to be looked at"])
def test_a_file_that_is_not_a_database_is_refused_and_not_changed(bare: Run, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "folder" / "musicsvc.db"
    file.parent.mkdir()
    file.write_bytes(content)
    for line in (("init",), ("db", "check")):
        assert str(file) in bare(*line, expect=1).stderr
    assert file.read_bytes() == content


def test_an_empty_database_is_created_or_upgraded(
    bare: Run, new_database: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUSICSVC_DATABASE_URL", new_database(migrated=False))
    done = bare("init", "--json")
    assert (json.loads(done.stdout)["created"], done.stderr.startswith("Created the database ")) == (True, True)
    monkeypatch.setenv("MUSICSVC_DATABASE_URL", new_database(migrated=False))
    assert "musicsvc init" in bare("user", "list", expect=1).stderr
    assert json.loads(bare("db", "upgrade", "--json").stdout)["migrations"][0] == "0001_baseline"
    again = bare("db", "upgrade")
    assert (again.stdout, again.stderr) == ("", "The schema is up to date.\n")
    assert json.loads(bare("init", "--json").stdout)["migrations"] == []


@pytest.mark.only_on("sqlite")
def test_an_activity_log_of_before_the_first_version_is_kept_under_another_name(
    bare: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bare("init")
    log = tmp_path / "folder" / "activity.db"
    connection = apsw.Connection(str(log))
    connection.execute("DELETE FROM activity_migration WHERE name > '0002'")
    connection.execute("UPDATE activity_migration SET name = '0001_activity'")
    connection.close()
    before = log.read_bytes()
    assert "another version of musicsvc. Run: musicsvc db upgrade" in bare("activity", expect=1).stderr
    bare("db", "upgrade")
    assert log.with_name("activity.db.aside-1").read_bytes() == before
    assert f"{log} was created by another version of musicsvc; renamed it to {log}.aside-1" in caplog.text
    bare("activity")


def test_an_unsupported_database_url_is_one_line(bare: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUSICSVC_DATABASE_URL", "mysql://root@localhost/x")
    assert "must start with sqlite:/// or postgresql://" in bare("user", "list", expect=1).stderr


def test_an_unreachable_server_is_one_line_without_the_password(bare: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUSICSVC_DATABASE_URL", "postgresql://ada:s3cret@127.0.0.1:1/music")
    for line in (("user", "list"), ("init",), ("db", "check")):
        assert "s3cret" not in bare(*line, expect=1).stderr


@pytest.mark.parametrize("address", ["sqlite:///", "sqlite:////", "sqlite:///:memory:", "sqlite://", "sqlite:music.db"])
def test_a_sqlite_url_without_a_file_is_refused(bare: Run, monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("MUSICSVC_DATABASE_URL", address)
    fault = f"Setting database_url (MUSICSVC_DATABASE_URL): {address!r} does not name a file; write sqlite:////path/to/file.db."
    for line in (("init",), ("db", "backup")):
        assert bare(*line, expect=1).stderr == f"Error: {fault}\n"
    doctor = run_in_process(["doctor", "--json"])
    assert doctor.returncode == 1
    assert [(each["check"], each["finding"]) for each in json.loads(doctor.stdout)["findings"]] == [("settings", fault)]


def test_config_show_names_origins_and_masks_passwords(
    bare: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "config.toml").write_text("[server]\nport = 9000\nworkers = 3\n")
    monkeypatch.setenv("MUSICSVC_DATABASE_URL", "postgresql://ada:s3cret@127.0.0.1/music?sslpassword=s3cret")
    monkeypatch.setenv("MUSICSVC_SERVER__WORKERS", "2")
    monkeypatch.setenv("MUSICSVC_SERVER", '{"workers": 1, "init": true}')
    done = bare("config", "show", "--json")
    found = {row["name"]: (row["value"], row["from"]) for row in json.loads(done.stdout)}
    assert found["server.host"] == ("127.0.0.1", "default")
    assert found["server.port"] == (9000, str(folder / "config.toml"))
    assert found["server.workers"] == (2, "MUSICSVC_SERVER__WORKERS")
    assert found["server.init"] == (True, "MUSICSVC_SERVER")
    assert found["database_url"][0] == "postgresql://ada:***@127.0.0.1/music?sslpassword=***"
    assert "s3cret" not in done.stdout + bare("config", "show").stdout


def test_config_show_prints_values_as_variables_take_them(bare: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUSICSVC_METRICS__ALLOW", '["10.0.0.0/8","fd00::/8"]')
    monkeypatch.setenv("MUSICSVC_SERVER__LOCAL_HTTP", "yes")
    before = {row["name"]: row["value"] for row in json.loads(bare("config", "show", "--json").stdout)}
    lines = [re.split(r" {2,}", line.rstrip()) for line in bare("config", "show").stdout.splitlines()[1:]]
    shown = {line[0]: line[1] if len(line) > 2 else "" for line in lines}
    assert (shown["metrics.allow"], shown["server.local_http"]) == ('["10.0.0.0/8", "fd00::/8"]', "true")
    assert (shown["server.trusted_proxies"], shown["registration.grants_access"]) == (
        '["127.0.0.0/8", "::1/128"]',
        "false",
    )
    assert shown["server.public_url"] == ""
    for name, value in shown.items():
        monkeypatch.setenv(f"MUSICSVC_{name.replace('.', '__').upper()}", value)
    again = json.loads(bare("config", "show", "--json").stdout)
    assert {row["name"]: row["value"] for row in again} == before
    assert [row["name"] for row in again if row["from"] == "default"] == [
        name
        for name, value in before.items()
        if value is None or value == ""  # an empty variable is not set
    ]


# `musicsvc db upgrade --dry-run` says what an upgrade would do, and changes nothing.

sqlite = pytest.mark.only_on("sqlite")
postgres = pytest.mark.only_on("postgres")
DryRun = Callable[..., tuple[Any, list[str]]]
FAILING = """
oldest_program = "0.1.0"

def up(migrator, db):
    db.execute_sql("UPDATE track SET name = 'lost'")
    db.execute_sql("INSERT INTO nowhere VALUES (1)")
"""


@pytest.fixture
def dry_run(sample: Sample, run: Run, tmp_path: Path) -> DryRun:  # noqa: ARG001 - they fill and name the database
    """Return a function that makes a dry run of a made next version; it returns the JSON value and the messages."""
    folder = upgrades.make_next(tmp_path / "next")

    def dry_run(*options: str) -> tuple[Any, list[str]]:
        done = run_in_process(["db", "upgrade", "--dry-run", "--json", *options], migrations=folder)
        assert done.returncode == 0, done
        return json.loads(done.stdout), done.stderr.splitlines()

    return dry_run


@sqlite
def test_it_measures_the_upgrade_on_a_copy_while_the_database_is_in_use(dry_run: DryRun, store_url: str) -> None:
    file = Path(store_url.removeprefix("sqlite:///"))
    columns = old_databases.columns(file)
    before = old_databases.rows(file, columns)
    with opening.connect(store_url):
        found, lines = dry_run()
    assert (old_databases.columns(file), old_databases.rows(file, columns)) == (columns, before)
    backups = file.parent / "backups"
    assert [*backups.iterdir()] == []
    size, seconds = found.pop("bytes"), found.pop("seconds")
    assert found == {
        "schema": history.available()[-1],
        "migrations": [*upgrades.NEXT],
        "oldest_program": "9.2.0",
        "backup": str(backups),
        "tables": [],
        "measured": True,
    }
    assert size >= file.stat().st_size
    assert seconds > 0
    assert lines == [
        "Would apply: 9001_moods, 9002_moods_of_albums.",
        f"Before that, it would back up the database ({size / 1e6:,.1f} MB) to {backups}.",
        "Programs of version 9.2.0 and later work on its schema; older ones refuse it.",
        f"It takes about {seconds:.1f} s, as on a copy of the database, which was deleted again.",
        "Nothing was changed.",
    ]


@sqlite
def test_without_a_backup_its_time_does_not_count(dry_run: DryRun) -> None:
    found, lines = dry_run("--no-backup")
    assert found["backup"] is None
    assert not any("back up" in line for line in lines)


@sqlite
def test_a_migration_that_would_fail_is_reported_and_nothing_is_left(
    sample: Sample, run: Run, store_url: str, tmp_path: Path
) -> None:
    folder = upgrades.make_next(tmp_path / "next", {"9001_failing": FAILING})
    done = run_in_process(["db", "upgrade", "--dry-run"], migrations=folder)
    assert done.returncode == 1
    assert done.stderr == "Error: The database cannot be upgraded: no such table: nowhere. Nothing was changed.\n"
    file = Path(store_url.removeprefix("sqlite:///"))
    assert [*(file.parent / "backups").iterdir()] == []
    assert len(json.loads(run("track", "list", "--json").stdout)) == sample.made["tracks"]


@sqlite
def test_its_copy_has_the_name_of_an_unfinished_backup_which_the_next_one_deletes() -> None:
    draft = f".{backup_folder.new_name(Path('/nowhere'), 0, 'dry-run').name}{backup_folder.PARTIAL}"
    assert backup_folder.LEFTOVER.fullmatch(draft)


@postgres
def test_on_postgres_it_estimates_by_the_tables_that_the_migrations_name(dry_run: DryRun, store_url: str) -> None:
    found, lines = dry_run()
    size = found.pop("bytes")
    assert found == {
        "schema": history.available()[-1],
        "migrations": [*upgrades.NEXT],
        "oldest_program": "9.2.0",
        "backup": None,
        "tables": ["album", "track"],
        "seconds": round(size / 5e6, 3),
        "measured": False,
    }
    assert lines[1] == "It would make no backup: back up a PostgreSQL database with pg_dump before."
    tables = f"album, track, {size / 1e6:,.1f} MB"
    assert lines[3].endswith(f" all rows of the tables that it names ({tables}); this was not measured.")
    with opening.connect(store_url) as store:
        ((expected,),) = store.read(
            lambda: fetch("SELECT pg_total_relation_size('album') + pg_total_relation_size('track')")
        ).result()
        assert [*store.read(schema.applied).result()] == history.available()
    assert size == expected


def test_a_current_schema_needs_nothing_and_a_too_new_one_is_refused(run: Run, store_url: str, tmp_path: Path) -> None:
    current = run("db", "upgrade", "--dry-run", "--json")
    found = json.loads(current.stdout)
    assert (found["migrations"], found["seconds"], found["bytes"]) == ([], 0, 0)
    assert current.stderr == f"The schema is up to date ({history.available()[-1]}): nothing would be done.\n"
    schema.upgrade(store_url, folder=upgrades.make_next(tmp_path / "next"))
    assert " needs musicsvc 9.2.0 or newer" in run("db", "upgrade", "--dry-run", expect=1).stderr
