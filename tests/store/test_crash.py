"""kill -9 under concurrent writers: no acknowledged write is lost, none is half done."""

import signal
import subprocess
import sys
import threading
from itertools import cycle
from pathlib import Path

from musicsvc.store import database, schema
from musicsvc.store.database import Store
from musicsvc.store.models import Genre, Tag

WRITER = Path(__file__).with_name("crash_writer.py")
PARTS = 3  # tags that make one unit with their genre


def _crash(url: str, seconds: float) -> list[str]:
    """Have a process write, kill it after so many seconds of that; the names that it acknowledged."""
    with subprocess.Popen([sys.executable, str(WRITER), url], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        lines = [process.stdout.readline()]
        timer = threading.Timer(seconds, process.send_signal, [signal.SIGKILL])
        timer.start()
        lines += process.stdout.readlines()
        timer.join()
    assert process.returncode == -signal.SIGKILL
    return [line.strip() for line in lines if line.endswith("\n")]


def _check(store: Store, acknowledged: set[str]) -> None:
    genres, tags = store.read(
        lambda: ({genre.name for genre in Genre.select()}, {tag.name for tag in Tag.select()})
    ).result()
    assert acknowledged - genres == set(), "acknowledged, and lost"
    assert tags == {f"{name}.{part}" for name in genres for part in range(PARTS)}, "half done"
    assert store.read(schema.problems).result() == []


def test_a_killed_writer_has_lost_nothing_that_it_acknowledged(store_url: str, *, slow: bool) -> None:
    acknowledged: set[str] = set()
    moments = cycle((0.05, 0.21, 0.33, 0.12, 0.4))
    for _ in range(50 if slow else 3):
        names = _crash(store_url, next(moments))
        assert names
        acknowledged.update(names)

        with database.connect(store_url) as store:
            _check(store, acknowledged)
