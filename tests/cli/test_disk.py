"""Errors of commands that cannot write or read a file: the file, the cause and the remedy."""

import json
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


def as_mortal(*arguments: str, largest: int = -1) -> subprocess.CompletedProcess[str]:
    """Run a command without root privileges and with a limit on the size of files."""
    line = [*(MORTAL if os.geteuid() == 0 else []), sys.executable, "-m", "musicsvc", *arguments]
    limit = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (largest, largest))
    return subprocess.run(
        line,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
        preexec_fn=limit if largest >= 0 else None,
    )


@pytest.fixture
def refused(bare: Run) -> Refused:
    """Return a function that runs a command without root privileges and returns its error."""
    bare("init")
    if os.geteuid() == 0 and shutil.which(MORTAL[0]) is None:
        pytest.skip("root may write everywhere (needs setpriv)")

    def refused(*arguments: str, largest: int = -1) -> str:
        done = as_mortal(*arguments, largest=largest)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1), done
        return done.stderr

    return refused


def owner(place: Path) -> str:
    return f"{place} belongs to {place.owner()} (mode {place.stat().st_mode & 0o777:03o})"


def test_a_file_that_may_not_be_written_is_named(refused: Refused, tmp_path: Path) -> None:
    file = tmp_path / "folder" / "musicsvc.db"
    file.chmod(0o400)
    line = refused(*CREATE)
    assert line.startswith(f"Error: {file} cannot be written. The file {owner(file)}: ")
    assert line.endswith(f"may not write to it. Run: chmod u+rw {file}\n")


def test_a_file_that_may_not_be_read_is_named(refused: Refused, tmp_path: Path) -> None:
    for name, says in (("musicsvc.db", "The database {} cannot be opened: Permission denied. "), ("config.toml", "")):
        file = tmp_path / "folder" / name
        file.touch()
        file.chmod(0)
        line = refused("user", "list")
        assert line.startswith(f"Error: {says.format(file)}The file {owner(file)}: ")
        assert line.endswith(f"may not read it. Run: chmod u+rw {file}\n")
        file.chmod(0o600)


def test_a_settings_file_is_only_read(refused: Refused, tmp_path: Path) -> None:
    file = tmp_path / "folder" / "config.toml"
    file.touch(mode=0)
    file.parent.chmod(0o500)
    try:
        line = refused("user", "list")
    finally:
        file.parent.chmod(0o700)
    assert line.startswith(f"Error: The file {owner(file)}: ")


@pytest.mark.parametrize(("mode", "verb"), [(0o600, "enter"), (0o500, "write to")])
def test_a_folder_without_permission_is_named_with_its_owner_and_the_remedy(
    refused: Refused, tmp_path: Path, mode: int, verb: str
) -> None:
    folder = tmp_path / "folder"
    folder.chmod(mode)
    said = f"The folder {owner(folder)}: {folder.owner()} may not {verb} it. Run: chmod u+rwx {folder}\n"
    try:
        lines = [refused(*line) for line in (CREATE, ("init",))]
        doctor = as_mortal("doctor", "--json")
    finally:
        folder.chmod(0o700)
    for line in lines:
        assert line.startswith("Error: ")
        assert line.endswith(said), line
        assert "config.toml" not in line
    found = [each for each in json.loads(doctor.stdout)["findings"] if each["level"] == "problem"]
    assert doctor.returncode == 1
    assert any(f"{each['finding']} {each['way_out']}\n".endswith(said) for each in found), found


def test_a_folder_of_another_user_is_named_with_two_remedies(
    refused: Refused, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "folder"
    me = folder.owner()
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    os.chown(folder, 54_321, -1)
    others = (
        f"Error: The folder {folder} belongs to uid 54321 (mode 700): {me} may not enter it. Run this as uid 54321, or"
    )
    assert refused("user", "list") == f"{others}: sudo chown -R {me} {folder}\n"
    monkeypatch.setenv("MUSICSVC_DATA_DIR", str(folder / "below" / "data"))
    assert refused("init").startswith(f"{others} choose another folder")


def test_a_folder_that_cannot_be_created_is_named(
    refused: Refused, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    monkeypatch.setenv("MUSICSVC_DATA_DIR", str(closed / "data"))
    line = refused("init")
    assert line.startswith(f"Error: {closed}/data: Permission denied. The folder {owner(closed)}: ")
    assert line.endswith(f"may not write to it. Run: chmod u+rwx {closed}\n")


def test_a_full_disk_is_reported_with_the_file(refused: Refused, tmp_path: Path) -> None:
    line = refused(*CREATE, largest=40 * 1024)
    assert line.startswith(f"Error: {tmp_path / 'folder' / 'musicsvc.db'} cannot be read or written: ")
    assert "full or failing" in line
