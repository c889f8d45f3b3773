"""Temporary files of exports: in the data folder, also where no folder of the system can be written."""

import csv
import io
import logging
import os
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import openpyxl
import pytest

from musicsvc import scratch
from musicsvc.clock import MovableClock
from musicsvc.config import Settings
from musicsvc.server.routes.route import INSIGHTS
from musicsvc.server.shapes import spooled
from musicsvc.store.engine import bulk
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Artist, Track, TrackArtist
from tests.support.serving import person, running

TRACKS = 1_500  # rows of some hundred bytes: more than a response has in memory


@pytest.fixture
def no_system_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Make the folder for temporary files a missing one, as where none can be written."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))


@pytest.fixture
def token(store: Store, clock: MovableClock) -> str:
    """The token of an account that manages 1,500 tracks."""
    account, token = person(store, clock, "many@label.test")

    def fill() -> None:
        artist = Artist.create(name="Prolific", manager=account, created_at=0).id
        ids = bulk.ids(Track, TRACKS)
        bulk.insert(Track, ("id", "name", "duration", "created_at"), [(each, "n" * 200, 1, 0) for each in ids])
        bulk.insert(TrackArtist, ("track", "artist", "position"), [(each, artist, 0) for each in ids])

    store.write(fill).result()
    return token


def folder_of(store: Store, settings: Settings) -> Path:
    return settings.model_copy(update={"database_url": store.url}).temporary_folder


@pytest.mark.slow
@pytest.mark.usefixtures("no_system_folder")
async def test_large_exports_need_no_folder_of_the_system(
    store: Store, clock: MovableClock, token: str, tmp_path: Path
) -> None:
    settings = Settings(data_dir=tmp_path)
    async with running(store, clock, settings) as anonymous:
        client = anonymous.holding(token)
        text = await client.post(f"{INSIGHTS}/export/csv", {})
        assert len(text.body) > spooled.IN_MEMORY
        assert len(list(csv.reader(io.StringIO(text.body.decode(), newline="")))) == 1 + TRACKS
        book = await client.post(f"{INSIGHTS}/export/xlsx", {})
        assert openpyxl.load_workbook(io.BytesIO(book.body))["tracks"].max_row == 1 + TRACKS
        folder = folder_of(store, settings)
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert list(folder.iterdir()) == []


@pytest.mark.usefixtures("no_system_folder")
async def test_an_export_is_unavailable_where_the_data_folder_cannot_be_written_either(
    store: Store, clock: MovableClock, token: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = Settings(data_dir=tmp_path)
    async with running(store, clock, settings) as anonymous:
        client = anonymous.holding(token)
        folder = folder_of(store, settings)
        folder.write_text("a file in its place, which also root cannot write into")
        for form in ("csv", "xlsx"):
            with caplog.at_level(logging.WARNING):
                answer = await client.post(f"{INSIGHTS}/export/{form}", {})
            assert (answer.status, answer.json["error"]) == (503, "unavailable")
            assert str(folder) not in answer.body.decode()
        assert f"cannot be written in {folder}: " in caplog.text
        assert (await client.post(f"{INSIGHTS}/export/csv", {"type": "artists"})).status == 200  # in memory


WRITER = """
import pathlib, sys, time
from musicsvc import scratch
with scratch.folder(pathlib.Path(sys.argv[1]) if sys.argv[1:] else None) as made:
    (made / "rows.xlsx").write_bytes(b"PK")
    print(made, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def writer(store: Store, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that writes temporary files into the folder of the servers."""
    folder = folder_of(store, Settings(data_dir=tmp_path))
    line = [sys.executable, "-c", WRITER, str(folder)]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


async def test_a_server_removes_the_files_of_processes_that_were_killed(
    store: Store, clock: MovableClock, tmp_path: Path, writer: subprocess.Popen[str]
) -> None:
    settings = Settings(data_dir=tmp_path)
    parent = folder_of(store, settings)
    assert writer.stdout is not None
    made = writer.stdout.readline().strip()
    with scratch.folder(parent) as own:
        async with running(store, clock, settings):
            assert {str(each) for each in parent.iterdir()} == {made, str(own)}  # in use
        writer.kill()
        writer.wait()
        async with running(store, clock, settings):
            assert list(parent.iterdir()) == [own]
    assert list(parent.iterdir()) == []


def test_a_command_removes_the_files_of_commands_that_were_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    (tmp_path / "musicsvc-plays").mkdir()  # somebody's own
    line = [sys.executable, "-c", WRITER]
    with ExitStack() as stack:
        killed, alive = (stack.enter_context(subprocess.Popen(line, stdout=subprocess.PIPE, text=True)) for _ in "ab")
        stack.callback(alive.kill)
        places = [Path(each.stdout.readline().strip()) for each in (killed, alive) if each.stdout]
        killed.terminate()
        killed.wait()
        trap = tmp_path / f"{scratch.SHARED_PREFIX}pipe"  # of another user, in a folder for all
        os.mkfifo(trap)
        with scratch.folder(None) as own:
            assert {*tmp_path.iterdir()} == {places[1], own, trap, tmp_path / "musicsvc-plays"}


def test_a_folder_that_is_just_being_made_is_not_taken_for_one_of_a_killed_process(tmp_path: Path) -> None:
    ended = threading.Event()

    def remove() -> None:
        while not ended.is_set():
            scratch.remove_leftovers(tmp_path)

    with ThreadPoolExecutor(2) as others:
        removing = [others.submit(remove) for _ in range(2)]
        try:
            for _ in range(1000):
                with scratch.folder(tmp_path) as own:
                    (own / "rows.xlsx").write_bytes(b"PK")
        finally:
            ended.set()
        for each in removing:
            each.result()
    assert list(tmp_path.iterdir()) == []
