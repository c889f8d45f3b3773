"""Dumps that are killed, interrupted, or find no space, and dumps of a database that is written to."""

import errno
import random
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from musicsvc.clock import DAY
from musicsvc.errors import Failure
from musicsvc.reports.dumps import COLUMNS
from musicsvc.reports.parquet import Writer
from musicsvc.store.engine.store import Store
from musicsvc.store.models.plays import PlayRow
from musicsvc.store.plays.ingest import WITHOUT_ID
from musicsvc.store.plays.periods import SLOT
from tests.cli.conftest import Run
from tests.cli.test_dump_changes import empty_a_day, replace, twins
from tests.conftest import NOW
from tests.faults import small_disk
from tests.support import dumps

FULL = Path("/dev/full")
ROOT = Path(__file__).resolve().parents[2]
FEW = 5  # kill before every n-th step; files are replaced in about as many


@pytest.fixture
def played(store: Store) -> None:
    store.write(lambda: dumps.fill(random.Random(4), 100)).result()


def change(store: Store) -> None:
    twins(store, 1)
    empty_a_day(store, 0)
    replace(store, 1)


@pytest.mark.slow
@pytest.mark.only_on("sqlite")
@pytest.mark.usefixtures("played")
def test_a_dump_killed_before_any_step_leaves_no_wrong_manifest_and_the_next_one_ends_it(
    run: Run, store: Store, tmp_path: Path, *, long: bool
) -> None:
    run("plays", "dump", "--output", str(tmp_path / "before"))
    change(store)
    run("plays", "dump", "--output", str(tmp_path / "after"))
    line = [sys.executable, "-m", "tests.cli.killed_dumps", str(tmp_path), str(1 if long else FEW)]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False, timeout=3600)
    assert done.returncode == 0, done.stderr
    killed, replacing = map(int, done.stdout.split())
    assert killed > 3
    assert replacing > 0


@pytest.mark.usefixtures("played")
def test_a_full_disk_leaves_the_former_dump_and_is_told_in_one_line(run: Run, store: Store, tmp_path: Path) -> None:
    with small_disk.mounted(tmp_path / "small") as disk:
        folder = disk.folder / "dump"
        run("plays", "dump", "--output", str(folder))
        before = dumps.files(folder)
        change(store)
        disk.fill()
        refused = run("plays", "dump", "--output", str(folder), expect=1)
        assert refused.stderr == f"Error: {folder}: No space left on device.\n"
        dumps.require_valid(folder)
        assert dumps.files(folder) == before
        disk.empty()
        run("plays", "dump", "--output", str(folder))
        dumps.require_valid(folder)
        assert dumps.plays(folder) == dumps.stored(store)


@pytest.mark.only_on("sqlite")
def test_an_error_of_the_system_under_duckdb_is_one_of_the_system(tmp_path: Path) -> None:
    lines = tmp_path / "rows.json"
    lines.write_bytes(b'{"artist_id":1,"name":"Ann"}\n')
    with pytest.raises(OSError, match="No space left on device") as full:
        Writer(tmp_path).write(lines, FULL, COLUMNS["artists"])
    assert (full.value.errno, full.value.filename) == (errno.ENOSPC, str(FULL))
    lines.write_bytes(b"[]")
    with pytest.raises(Failure, match=r"artists\.parquet cannot be written: "):
        Writer(tmp_path).write(lines, tmp_path / "artists.parquet", COLUMNS["artists"])


@pytest.mark.on_both
@pytest.mark.slow
@pytest.mark.usefixtures("played")
def test_a_dump_beside_a_writer_has_all_or_no_plays_of_a_transaction(run: Run, store: Store, tmp_path: Path) -> None:
    """Each transaction adds a play to each of seven days."""
    before, ended = len(dumps.stored(store)), threading.Event()

    def write() -> None:
        number = 0
        while not ended.is_set():
            number += 1
            at = NOW - DAY // 2 - number * SLOT
            rows = [PlayRow((at - back * DAY) // SLOT, 1, 70, WITHOUT_ID, at - back * DAY, 1, 0) for back in range(7)]
            store.write(lambda rows=rows: dumps.record(rows)).result()  # type: ignore[misc]

    writer = threading.Thread(target=write)
    writer.start()
    try:
        counts = []
        for _ in range(4):
            run("plays", "dump", "--output", str(tmp_path / "dump"))
            counts.append(len(dumps.plays(tmp_path / "dump")) - before)
            dumps.require_valid(tmp_path / "dump")
    finally:
        ended.set()
        writer.join()
    assert [count % 7 for count in counts] == [0, 0, 0, 0]
    assert counts == sorted(set(counts))


def test_a_dump_of_no_database_makes_no_folder(bare: Run, tmp_path: Path) -> None:
    assert "There is no database" in bare("plays", "dump", "--output", str(tmp_path / "dump"), expect=1).stderr
    assert not (tmp_path / "dump").exists()
