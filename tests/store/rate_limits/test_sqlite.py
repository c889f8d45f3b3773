"""Rate limit counts in a SQLite file: shared by all processes, private, replaced if damaged."""

import resource
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

from musicsvc.clock import Clock
from musicsvc.errors import Unavailable
from musicsvc.store.rate_limits import sqlite
from musicsvc.store.rate_limits.sqlite import SqliteHitCounter
from musicsvc.store.rate_limits.window import Hit, Limit
from tests.support.bounds import Bounds
from tests.support.program import until

pytestmark = pytest.mark.only_on("sqlite")
LIMIT = Limit("token", 1000, 60_000)
HIT = Hit(LIMIT, "1")
COUNT = """
import sys, time
from pathlib import Path
from musicsvc.store.rate_limits.window import Hit, Limit
from musicsvc.store.rate_limits.sqlite import SqliteHitCounter
counter = SqliteHitCounter(Path(sys.argv[1]), lambda: int(time.monotonic() * 1000))
counter.check()
limit = Limit("token", 1000, 3_600_000)
print("ready", flush=True)
sys.stdin.readline()
print(sum(counter.count([Hit(limit, "1")])[0].allowed for _ in range(int(sys.argv[2]))), flush=True)
"""


def milliseconds() -> int:
    return int(Clock().monotonic() * 1000)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "limits.db"


@contextmanager
def opened(path: Path) -> Iterator[SqliteHitCounter]:
    counter = SqliteHitCounter(path, milliseconds)
    counter.check()
    yield counter
    counter.close()


def left(counter: SqliteHitCounter) -> int:
    """Return the number of remaining requests after one more."""
    (status,) = counter.count([HIT])
    return status.remaining


def process(path: Path, requests: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", COUNT, str(path), str(requests)]
    started = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert started.stdout is not None
    assert started.stdout.readline() == "ready\n"
    return started


def counted(path: Path) -> bool:
    """Return whether any request was counted."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return bool(connection.execute("SELECT count(*) FROM quota").get)
    finally:
        connection.close()


@pytest.mark.slow
def test_concurrent_processes_allow_exactly_the_amount(path: Path) -> None:
    processes = [process(path, 600) for _ in range(3)]
    for each in processes:
        assert each.stdin is not None
        each.stdin.write("\n")
        each.stdin.flush()
    assert sum(int(each.communicate()[0]) for each in processes) == 1000
    assert {each.returncode for each in processes} == {0}


def test_counts_outlive_a_killed_process(path: Path) -> None:
    killed = process(path, 1_000_000)
    assert killed.stdin is not None
    killed.stdin.write("\n")
    killed.stdin.flush()
    until(lambda: counted(path))
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    with opened(path) as counter:
        assert left(counter) < 999
    assert not path.with_name("limits.db.damaged").exists()


def test_only_the_owner_can_read_the_file(path: Path) -> None:
    with opened(path) as counter:
        left(counter)
        modes = {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert modes == {0o600}


@pytest.mark.parametrize("damage", [b"no database", b"SQLite format 3\x00" + bytes(5000), None])
def test_a_damaged_file_is_renamed_and_replaced(path: Path, damage: bytes | None) -> None:
    if damage is None:
        with opened(path) as counter:
            for number in range(200):
                counter.count([Hit(LIMIT, str(number))])
        whole = path.read_bytes()
        damage = whole[:1024] + b"\xff" * (len(whole) - 1024)
    path.write_bytes(damage)
    with opened(path) as counter, opened(path) as other:
        assert left(counter) == 999
        assert left(other) == 998
    assert path.with_name("limits.db.damaged").read_bytes() == damage


def test_a_file_of_another_version_is_replaced_and_one_of_another_program_kept(path: Path) -> None:
    for version, program, refused in ((99, sqlite.APPLICATION_ID, False), (1, 7, True)):
        path.unlink(missing_ok=True)
        connection = apsw.Connection(str(path))
        connection.pragma("user_version", version)
        connection.pragma("application_id", program)
        connection.close()
        if refused:
            with pytest.raises(Unavailable, match="belongs to another program"), opened(path):
                pass
        else:
            with opened(path) as counter:
                assert left(counter) == 999


def test_an_error_names_the_file_that_cannot_be_opened(path: Path) -> None:
    path.mkdir()
    for place in (path, path / "missing" / "limits.db"):
        with pytest.raises(Unavailable, match=f"{place} cannot be used"), opened(place):
            pass


def test_damage_of_an_open_file_is_unavailable(path: Path) -> None:
    with opened(path) as counter:
        counter.count([HIT])
        other = apsw.Connection(str(path))
        assert other.pragma("user_version") == 2
        other.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        path.write_bytes(path.read_bytes()[:1024] + b"\xff" * 1024)
        other.pragma("user_version", 2)  # invalidates the page cache
        with pytest.raises(Unavailable, match="is damaged"):
            counter.count([HIT])
        other.close()


def test_a_full_disk_is_unavailable_until_it_has_free_space(path: Path) -> None:
    with opened(path) as counter:
        assert left(counter) == 999
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1, hard))
        try:
            for hits in ([HIT], [HIT, Hit(LIMIT, "2")]):
                with pytest.raises(Unavailable, match=r"limits.db cannot be used|disk is full"):
                    counter.count(hits)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert left(counter) == 998


@pytest.mark.slow
def test_a_lock_is_waited_for_until_the_timeout(path: Path) -> None:
    other = apsw.Connection(str(path))
    with opened(path) as counter:
        assert left(counter) == 999
        other.execute("BEGIN IMMEDIATE")
        for hits in ([HIT], [HIT, Hit(LIMIT, "2")]):
            began = time.monotonic()
            with pytest.raises(Unavailable, match="locked by another program"):
                counter.count(hits)
            assert sqlite.LOCK_SECONDS * 0.9 < time.monotonic() - began < 4 * sqlite.LOCK_SECONDS
        other.execute("COMMIT")
        assert left(counter) == 998
    other.close()


def test_a_moved_file_is_detected(path: Path) -> None:
    with opened(path) as counter:
        assert left(counter) == 999
        counter.check()
        assert left(counter) == 998
        path.unlink()
        with opened(path) as other:
            assert left(other) == 999
            counter.check()
            assert left(counter) == 998


def test_many_addresses_use_a_bounded_file(path: Path, bounds: Bounds) -> None:
    bounds(sqlite_counts=150)
    with opened(path) as counter:
        for number in range(500):
            counter.count([Hit(LIMIT, str(number))])
        counter.purge()
        reader = apsw.Connection(str(path))
        assert reader.execute("SELECT count(*) FROM quota").get == 150
        reader.close()
        assert left(counter) == 999  # the oldest row was dropped


def test_the_file_is_beside_its_database(tmp_path: Path) -> None:
    assert sqlite.file_of(tmp_path / "musicsvc.db") == tmp_path / "limits.db"
    assert sqlite.file_of(tmp_path / "other.db") == tmp_path / "other-limits.db"


def test_counts_are_deleted_in_the_moment_they_cannot_matter(path: Path) -> None:
    now = 1_000_000
    counter = SqliteHitCounter(path, lambda: now)
    reader = apsw.Connection(str(path))

    def keys() -> list[str]:
        counter.purge()
        return [key for (key,) in reader.execute("SELECT key FROM quota ORDER BY key")]

    for number in range(3):
        counter.count([Hit(Limit("token", 9, 1000 * (number + 1)), str(number))])
    now += 2_000 - 1
    assert keys() == ["token:0", "token:1", "token:2"]
    now += 1
    assert keys() == ["token:1", "token:2"]
    now = 1_000_000 - 60_000
    assert keys() == ["token:1", "token:2"]
    now -= 1  # the clock was set back by more than a minute
    assert keys() == []
    reader.close()
    counter.close()


def test_every_operation_on_a_closed_or_faulty_file_is_unavailable(path: Path) -> None:
    with opened(path) as counter:
        assert left(counter) == 999
        other = apsw.Connection(str(path))
        calls: list[Callable[[], object]] = [
            lambda: counter.count([HIT]),
            lambda: counter.count([HIT, HIT]),
            lambda: counter.uncount([HIT]),
            counter.purge,
        ]
        for call in calls:
            other.execute("DROP TABLE IF EXISTS quota")
            with pytest.raises(Unavailable, match=f"^{path} cannot be used$"):
                call()
            assert left(counter) == 999  # it was opened again
        other.close()
