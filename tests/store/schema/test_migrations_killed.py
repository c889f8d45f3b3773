"""An old database survives an upgrade to a made next version that is killed before any step."""

import subprocess
import sys
from pathlib import Path

import pytest

from musicsvc.errors import Failure
from musicsvc.store.engine.sqlite import files
from musicsvc.store.schema import schema
from tests.support import old_databases, upgrades

pytestmark = [pytest.mark.slow, pytest.mark.only_on("sqlite")]
ROOT = Path(__file__).resolve().parents[3]
FEW = 17  # test every n-th step


def test_an_upgrade_killed_before_any_step_is_finished_by_the_next_and_no_row_changes(
    tmp_path: Path, *, long: bool
) -> None:
    every = 1 if long else FEW
    command = [sys.executable, "-m", "tests.store.schema.killed_migrating", str(tmp_path), str(every)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 2


def test_without_a_backup_nothing_is_changed(tmp_path: Path) -> None:
    file = tmp_path / "data" / "musicsvc.db"
    old_databases.make(file)
    folder = upgrades.make_next(tmp_path / "next")
    before = old_databases.rows(file, old_databases.columns(file))

    def save(first: str) -> None:
        raise Failure(f"no room before {first}")

    with pytest.raises(Failure, match="no room before 9001_moods"):
        schema.upgrade(f"sqlite:///{file}", save, folder=folder)
    assert set(old_databases.columns(file)) == set(before)
    assert old_databases.rows(file, old_databases.columns(file)) == before


def test_an_empty_database_needs_no_backup(tmp_path: Path) -> None:
    file = tmp_path / "data" / "musicsvc.db"
    files.create(file)
    saved: list[str] = []
    assert schema.upgrade(f"sqlite:///{file}", saved.append) == schema.available()
    assert saved == []
