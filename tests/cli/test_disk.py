"""What commands say of a disk that does not take what is written: which file, why, and the way out."""

import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.cli.conftest import Run

pytestmark = pytest.mark.only_on("sqlite")

CREATE = ("user", "create", "ada@example.test")
# Root may write whatever the permissions say, so it gives that right up.
MORTAL = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
Refused = Callable[..., str]


@pytest.fixture
def refused(bare: Run) -> Refused:
    """The line that a command fails with, as a user without special rights."""
    bare("init")
    root = os.geteuid() == 0
    if root and shutil.which(MORTAL[0]) is None:
        pytest.skip("root is told no by nothing here (needs setpriv)")

    def refused(*arguments: str, largest: int = -1) -> str:
        line = [*(MORTAL if root else []), sys.executable, "-m", "musicsvc", *arguments]
        limit = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (largest, largest))
        done = subprocess.run(
            line,
            capture_output=True,
            encoding="utf-8",
            timeout=60,
            check=False,
            preexec_fn=limit if largest >= 0 else None,
        )
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1), done
        return done.stderr

    return refused


def test_a_file_that_may_not_be_written_is_named(refused: Refused, tmp_path: Path) -> None:
    file = tmp_path / "folder" / "musicsvc.db"
    file.chmod(0o400)
    line = refused(*CREATE)
    assert line.startswith(f"Error: {file} cannot be written. Look at the permissions")


def test_a_folder_that_may_not_be_written_is_told_with_the_way_out(refused: Refused, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.chmod(0o500)
    try:
        lines = [refused(*CREATE), refused("init")]
    finally:
        folder.chmod(0o700)
    for line in lines:
        assert str(folder) in line
        assert "Look at the permissions of the file and of its folder" in line


def test_a_file_that_may_not_be_read_is_told_with_the_way_out(refused: Refused, tmp_path: Path) -> None:
    file = tmp_path / "folder" / "musicsvc.db"
    file.chmod(0)
    line = refused("user", "list")
    assert line.startswith(f"Error: The database {file} cannot be opened: Permission denied. Look at")


def test_a_disk_that_takes_no_more_is_named(refused: Refused, tmp_path: Path) -> None:
    line = refused(*CREATE, largest=40 * 1024)
    assert line.startswith(f"Error: {tmp_path / 'folder' / 'musicsvc.db'} cannot be read or written: ")
    assert "full or failing" in line
