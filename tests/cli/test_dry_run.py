"""`musicsvc db upgrade --dry-run` says what an upgrade would do, and changes nothing."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from musicsvc.store import opening
from musicsvc.store.backups import folder as backup_folder
from musicsvc.store.engine.sql import fetch
from musicsvc.store.schema import history, schema
from tests.cli.conftest import Run
from tests.conftest import Sample
from tests.support import old_databases, upgrades
from tests.support.command import run_in_process

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
    assert len(json.loads(run("track", "list", "--json").stdout)) == sample.made.tracks


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
