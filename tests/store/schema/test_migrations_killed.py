"""An old database survives an upgrade that is killed before any step."""

import subprocess
import sys
from pathlib import Path

import pytest

from musicsvc.errors import Failure
from musicsvc.store.engine.sqlite import files
from musicsvc.store.schema import schema
from tests.support import old_databases

pytestmark = [pytest.mark.slow, pytest.mark.only_on("sqlite")]
ROOT = Path(__file__).resolve().parents[3]
FEW = {1: 23, 2: 101}  # by number of applied migrations: test every n-th step


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Test upgrades from all earlier versions with --long, else from the first two."""
    if "migrations" in metafunc.fixturenames:
        long = metafunc.config.getoption("--long")
        metafunc.parametrize("migrations", range(1, len(schema.available())) if long else FEW)


def test_an_upgrade_killed_before_any_step_is_finished_by_the_next_and_no_row_changes(
    tmp_path: Path, migrations: int, *, long: bool
) -> None:
    every = 1 if long else FEW[migrations]
    command = [sys.executable, "-m", "tests.store.schema.killed_migrating", str(tmp_path), str(migrations), str(every)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 2


def test_without_a_backup_nothing_is_changed(tmp_path: Path) -> None:
    file = tmp_path / "data" / "musicsvc.db"
    old_databases.make(file, 1)
    before = old_databases.rows(file, old_databases.columns(file))

    def save(first: str) -> None:
        raise Failure(f"no room before {first}")

    with pytest.raises(Failure, match=f"no room before {schema.available()[1]}"):
        schema.upgrade(f"sqlite:///{file}", save)
    assert set(old_databases.columns(file)) == set(before)
    assert old_databases.rows(file, old_databases.columns(file)) == before


def test_an_empty_database_needs_no_backup(tmp_path: Path) -> None:
    file = tmp_path / "data" / "musicsvc.db"
    files.create(file)
    saved: list[str] = []
    assert schema.upgrade(f"sqlite:///{file}", saved.append) == schema.available()
    assert saved == []
