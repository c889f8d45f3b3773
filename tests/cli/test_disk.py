"""Errors of commands that cannot write or read a file: the file, the cause and the remedy."""

import ctypes
import json
import os
import pwd
import resource
import struct
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.support import program
from tests.support.command import run_in_process

pytestmark = pytest.mark.only_on("sqlite")

VERSION = 0x2008_0522  # of the structures below, in linux/capability.h
RIGHTS = 1 << 1 | 1 << 2  # CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH
CREATE = ("user", "create", "ada@example.test")
Refused = Callable[..., str]


def unprivileged(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a new thread without root's right to read and write every file, like the threads it starts."""
    with ThreadPoolExecutor(1, initializer=_give_up if os.geteuid() == 0 else None) as threads:
        return threads.submit(run_in_process, arguments).result()


def _give_up() -> None:
    """Take the rights from this thread, for good; Linux has them per thread."""
    libc = ctypes.CDLL(None, use_errno=True)
    header, data = struct.pack("=Ii", VERSION, 0), ctypes.create_string_buffer(struct.calcsize("=6I"))
    if libc.capget(header, data):
        raise OSError(ctypes.get_errno(), "capget")
    low = [value & ~RIGHTS for value in struct.unpack("=3I", data.raw[:12])]
    if libc.capset(header, struct.pack("=3I", *low) + data.raw[12:]):
        raise OSError(ctypes.get_errno(), "capset")


def error_of(done: subprocess.CompletedProcess[str]) -> str:
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1), done
    return done.stderr


@pytest.fixture
def folder(bare: Run, file: Path, monkeypatch: pytest.MonkeyPatch) -> Path:  # noqa: ARG001 - it sets the environment
    """Return the data folder of commands, with a database."""
    monkeypatch.setenv("MUSICSVC_DATA_DIR", str(file.parent))
    return file.parent


@pytest.fixture
def refused(folder: Path) -> Refused:  # noqa: ARG001 - the commands use it
    """Return a function that runs a command without root privileges and returns its error."""
    if os.geteuid() == 0 and not hasattr(ctypes.CDLL(None), "capset"):
        pytest.skip("root may write everywhere (needs Linux)")
    return lambda *arguments: error_of(unprivileged(*arguments))


def me() -> str:
    """Return the user and the id that messages name: commands run under those of the tests, without privileges."""
    return f"{pwd.getpwuid(os.geteuid()).pw_name} (uid {os.geteuid()})"


def owner(place: Path) -> str:
    return f"{place} belongs to {place.owner()} (mode {place.stat().st_mode & 0o777:03o})"


def test_a_file_that_may_not_be_written_is_named(refused: Refused, folder: Path) -> None:
    file = folder / "musicsvc.db"
    file.chmod(0o400)
    line = refused(*CREATE)
    assert line.startswith(f"Error: {file} cannot be written. The file {owner(file)}: ")
    assert line.endswith(f"may not write to it. Run: chmod u+rw {file}\n")


@pytest.mark.parametrize("suffix", ["-wal", "-shm"])
def test_a_file_beside_the_database_that_another_user_left_is_named(
    refused: Refused, folder: Path, suffix: str
) -> None:
    file = folder / f"musicsvc.db{suffix}"
    file.touch(mode=0)
    line = refused(*CREATE)
    assert line.startswith(f"Error: The database {folder / 'musicsvc.db'} cannot be opened: ")
    assert line.endswith(f"The file {owner(file)}: {me()} may not read it. Run: chmod u+rw {file}\n")


def test_a_file_that_may_not_be_read_is_named(refused: Refused, folder: Path) -> None:
    for name, says in (("musicsvc.db", "The database {} cannot be opened: Permission denied. "), ("config.toml", "")):
        file = folder / name
        file.touch()
        file.chmod(0)
        line = refused("user", "list")
        assert line.startswith(f"Error: {says.format(file)}The file {owner(file)}: ")
        assert line.endswith(f"may not read it. Run: chmod u+rw {file}\n")
        file.chmod(0o600)


def test_a_settings_file_is_only_read(refused: Refused, folder: Path) -> None:
    file = folder / "config.toml"
    file.touch(mode=0)
    file.parent.chmod(0o500)
    try:
        line = refused("user", "list")
    finally:
        file.parent.chmod(0o700)
    assert line.startswith(f"Error: The file {owner(file)}: ")


@pytest.mark.parametrize(("mode", "verb"), [(0o600, "enter"), (0o500, "write to")])
def test_a_folder_without_permission_is_named_with_its_owner_and_the_remedy(
    refused: Refused, folder: Path, mode: int, verb: str
) -> None:
    folder.chmod(mode)
    said = f"The folder {owner(folder)}: {me()} may not {verb} it. Run: chmod u+rwx {folder}\n"
    try:
        lines = [refused(*line) for line in (CREATE, ("init",))]
        doctor = unprivileged("doctor", "--json")
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
    refused: Refused, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = folder.owner()
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    os.chown(folder, 54_321, -1)
    fault = f"The folder {folder} belongs to uid 54321 (mode 700): {me()} may not enter it."
    others = f"Error: {fault} Run this as uid 54321, or"
    assert refused("user", "list") == f"{others}: sudo chown -R {name} {folder}\n"
    monkeypatch.setenv("MUSICSVC_DATA_DIR", str(folder / "below" / "data"))
    assert refused("init").startswith(f"{others} choose another folder")


def test_a_folder_that_cannot_be_created_is_named(
    refused: Refused, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    monkeypatch.setenv("MUSICSVC_DATA_DIR", str(closed / "data"))
    said = f"Error: {closed}/data: Permission denied. The folder {owner(closed)}: {me()} may not write to it. Run: "
    assert refused("init") == f"{said}chmod u+rwx {closed}\n"
    if os.geteuid():  # the program of a test that runs as root may write there
        assert program.run("serve", "--init", "--port", "0").stderr == f"{said}chmod u+rwx {closed}\n"


def test_refused_rows_that_cannot_be_written_are_reported_before_the_import(
    bare: Run, refused: Refused, tmp_path: Path
) -> None:
    closed, songs = tmp_path / "closed", tmp_path / "songs.csv"
    closed.mkdir(mode=0o500)
    songs.write_text("track,artist\nOne,Somebody\n,Nobody\n")
    for target in (closed / "refused.csv", tmp_path / "link.csv"):
        if target.parent == tmp_path:
            target.symlink_to(closed / "other.csv")
        fault = f"The folder {owner(closed)}: {me()} may not write to it."
        told = f"Error: {target} cannot be written. {fault} Run: chmod u+rwx {closed}\n"
        assert refused("import", "catalog", str(songs), "--refused", str(target)) == told
    assert bare("import", "list", "--json").stdout == "[]\n"


def test_a_path_that_leads_nowhere_is_named(
    bare: Run, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, songs = tmp_path / "loop.csv", tmp_path / "songs.csv"
    loop.symlink_to(loop.name)
    songs.write_text("track,artist\nOne,Somebody\n,Nobody\n")
    opened = f"Error: The database {loop} cannot be opened: Too many levels of symbolic links.\n"
    for line in (("db", "copy", str(loop), "new.db"), ("db", "copy", str(folder / "musicsvc.db"), str(loop))):
        assert bare(*line, expect=1).stderr == opened
    for parent in (loop, songs):
        told = f"Error: {parent} exists and is not a folder.\n"
        assert bare("db", "copy", str(folder / "musicsvc.db"), str(parent / "new.db"), expect=1).stderr == told
    told = f"Error: {loop} is a link to itself. Name another file to write.\n"
    assert bare("import", "catalog", str(songs), "--refused", str(loop), expect=1).stderr == told
    assert bare("import", "list", "--json").stdout == "[]\n"
    monkeypatch.setenv("MUSICSVC_DATABASE_URL", f"sqlite:///{loop}")
    assert bare("user", "list", expect=1).stderr == opened
    for place, fault in ((loop, "Too many levels of symbolic links"), (songs, "Not a directory")):
        monkeypatch.setenv("MUSICSVC_DATA_DIR", str(place))
        told = f"Error: The settings file {place}/config.toml cannot be read: {fault}.\n"
        assert bare("user", "list", expect=1).stderr == told
    (file := tmp_path / "config.toml").symlink_to("unmounted.toml")
    monkeypatch.setenv("MUSICSVC_DATA_DIR", str(tmp_path))
    told = f"Error: There is no settings file {file}. Create it, or correct the link.\n"
    assert bare("user", "list", expect=1).stderr == told


def test_a_path_that_is_too_long_for_a_database_is_named(
    bare: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path.joinpath(*("long" * 50 for _ in range(3)))
    monkeypatch.setenv("MUSICSVC_DATA_DIR", str(folder))
    told = f"Error: {folder}/musicsvc.db cannot be opened. "
    refused = bare("init", expect=1).stderr
    assert refused.startswith(told)
    assert "its path shorter than 480 bytes" in refused


def test_a_full_disk_is_reported_with_the_file(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "musicsvc", *CREATE],
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
        preexec_fn=partial(resource.setrlimit, resource.RLIMIT_FSIZE, (40 * 1024, 40 * 1024)),
    )
    line = error_of(done)
    assert line.startswith(f"Error: {folder / 'musicsvc.db'} cannot be read or written: ")
    assert "full or failing" in line
