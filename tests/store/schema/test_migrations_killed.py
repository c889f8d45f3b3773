"""An old database survives an upgrade to a made next version that is killed before any step."""

import subprocess
import sys
from pathlib import Path

import pytest

from musicsvc.store.engine.sqlite import files
from musicsvc.store.schema import history, schema

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


def test_an_empty_database_needs_no_backup(tmp_path: Path) -> None:
    file = tmp_path / "data" / "musicsvc.db"
    files.create(file)
    saved: list[str] = []
    assert schema.upgrade(f"sqlite:///{file}", saved.append) == history.available()
    assert saved == []
