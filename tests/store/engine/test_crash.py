"""kill -9 with concurrent writers: no acknowledged write is lost, none is partial."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from random import Random

import pytest

from musicsvc.store import opening
from tests.faults import workload
from tests.faults.workload import Ledger

WRITER = Path(__file__).with_name("crash_writer.py")
ROOT = Path(__file__).resolve().parents[3]
KILLS = 8  # of one process or two, for each database
EARLY = 3  # the processes of this kill may have acknowledged nothing


class Writer:
    """Starter of writing processes."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def live(self, url: str, run: str, lives: Iterable[float], *, early: bool) -> list[str]:
        """Let processes write at the same time, and kill each after some seconds. Return the acknowledged names.

        Their time begins with the first acknowledgement, or with `early` when they start.
        """
        assert self._process.stdin
        assert self._process.stdout
        left = list(lives)
        self._process.stdin.write(f"{url} {run} {len(left)}\n")
        self._process.stdin.flush()
        names: list[str] = []
        pids: list[int] = []
        for line in map(str.strip, self._process.stdout):
            if line.startswith("pid "):
                pids.append(int(line[4:]))
            elif line == "ended":
                break
            else:
                names.append(line)
            while pids and (names or early):
                threading.Timer(left.pop(), os.kill, [pids.pop(), signal.SIGKILL]).start()
        return names


@pytest.fixture(scope="module")
def writer() -> Iterator[Writer]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}  # noqa: TID251 - the environment of the child
    with subprocess.Popen(
        [sys.executable, str(WRITER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        yield Writer(process)
        assert process.stdin
        process.stdin.close()
        assert process.wait(30) == 0


@pytest.mark.rounds(1, 100)
@pytest.mark.slow
def test_a_killed_writer_has_lost_nothing_that_it_acknowledged(
    store_url: str, writer: Writer, seed: int, number: int, record_property: Callable[[str, object], None]
) -> None:
    chance = Random(f"{seed}/{number}")
    ledger = Ledger()
    with opening.connect(store_url) as store:
        store.write(workload.prepare).result()
    for kill in range(KILLS):
        processes = 1 + kill % 2
        lives = [chance.uniform(0, 0.3) for _ in range(processes)]
        names = writer.live(store_url, str(kill), lives, early=kill == EARLY)
        ledger.asked.update(names, map(workload.next_name, names))
        ledger.acknowledged.update(names)

        with opening.connect(store_url) as store:
            assert workload.faults(store, ledger) == [], f"--seed {seed}"

    assert ledger.acknowledged
    record_property("acknowledged", len(ledger.acknowledged))
