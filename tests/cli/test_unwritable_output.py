"""Every command and format with a full disk or a closed pipe as output."""

import io
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import pytest

from musicsvc.cli import stdio
from musicsvc.store.engine.store import Store
from tests.cli.conftest import Run
from tests.support import databases, preloaded
from tests.support.command import run_in_process

pytestmark = pytest.mark.slow


FULL = Path("/dev/full")
NO_SPACE = "Error: The output: No space left on device.\n"
UNREAD = 141
EXPORTS = tuple(
    f"export {kind} --period 90-days --format {form}".split()
    for kind, form in (("tracks", "csv"), ("plays", "csv"), ("plays", "json"), ("albums", "parquet"), ("albums", "pdf"))
)
WITH_JSON = ("user list", "token list", "insights show artist 1", "doctor", "activity", "import catalog songs.csv")
OTHERS = ("insights explain track 1", "abuse explain 1", "config show", "token regenerate 1", "openapi", "--version")
LINES = [
    *EXPORTS,
    *(line.split() + more for line in WITH_JSON for more in ([], ["--json"])),
    *(line.split() for line in (*OTHERS, "user --help")),
]


@databases.prefilling
def prefilled(store: Store) -> None:
    """Create a store whose exports are larger than all output buffers."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("MUSICSVC_DATABASE_URL", store.url)
        for line in (["seed", "--accounts"], ["seed", "--scale", "0.03"]):
            assert run_in_process(line).returncode == 0


@pytest.fixture
def filled(
    bare: Run,
    prefilled: databases.Filled[None],  # noqa: ARG001 - `store_url` is a copy of it
    store_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Run commands on a copy of that store."""
    monkeypatch.chdir(tmp_path)
    Path("songs.csv").write_text("track,artist\nOne,Somebody\n")
    monkeypatch.setenv("MUSICSVC_DATABASE_URL", store_url)
    bare("db", "upgrade")  # makes the log of calls


@contextmanager
def full() -> Iterator[io.TextIOWrapper]:
    with FULL.open("w", encoding="utf-8") as stream:
        yield stream
        stdio.discard(stream)


@contextmanager
def unread() -> Iterator[io.TextIOWrapper]:
    ours, theirs = os.pipe()
    os.close(ours)
    with open(theirs, "w", encoding="utf-8") as stream:  # noqa: PTH123 - a descriptor has no path
        yield stream
        stdio.discard(stream)


@pytest.mark.usefixtures("filled")
@pytest.mark.skipif(not FULL.exists(), reason="no device that is full")
def test_every_command_that_prints_ends_with_one_line_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ignored: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", ignored.append)
    for line in LINES:
        with (tmp_path / "usual").open("w", encoding="utf-8") as stream:
            usual = run_in_process(line, output=stream)
            printed = os.fstat(stream.fileno()).st_size
        assert "Error" not in usual.stderr, usual
        with full() as stream:
            failed = run_in_process(line, output=stream)
        with unread() as stream:
            quiet = run_in_process(line, output=stream)
        if printed:
            assert (failed.returncode, quiet.returncode) == (1, UNREAD), line
            assert failed.stderr.endswith(NO_SPACE), line
        assert failed.stderr.count("\n") <= usual.stderr.count("\n") + 1, line
        assert quiet.stderr.count("\n") <= usual.stderr.count("\n"), line
        assert not ignored, line


@pytest.mark.unbuffered
@pytest.mark.usefixtures("filled")
def test_an_export_into_a_closed_pipe_is_quiet() -> None:
    for line in EXPORTS[:3]:
        ours, theirs = os.pipe()
        with ThreadPoolExecutor(1) as threads, open(theirs, "w", encoding="utf-8") as stream:  # noqa: PTH123 - a descriptor
            reading = threads.submit(read_one_and_close, ours)
            done = run_in_process(line, output=stream)
            assert reading.result()
            stdio.discard(stream)
        assert done.stderr == "", line
        assert done.returncode in {0, UNREAD}, line
    with TemporaryFile() as errors:
        ours, theirs = os.pipe()
        program = preloaded.start(EXPORTS[0], theirs, errors.fileno())
        os.close(theirs)
        assert read_one_and_close(ours)
        assert program.wait(60) in {0, UNREAD}
        errors.seek(0)
        assert errors.read() == b""


def read_one_and_close(pipe: int) -> bytes:
    read = os.read(pipe, 1)
    os.close(pipe)
    return read
