"""kill -9 with concurrent writers: no acknowledged write is lost, none is partial."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from musicsvc.store import opening
from tests.faults import workload
from tests.faults.workload import Ledger

WRITER = Path(__file__).with_name("crash_writer.py")
ROOT = Path(__file__).resolve().parents[3]
KILLS = 8  # of each database


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make each database a separate test, so that a failing one can be rerun."""
    if "number" in metafunc.fixturenames:
        metafunc.parametrize("number", range(100 if metafunc.config.getoption("--slow") else 1))


class Writer:
    """Starter of writing processes."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def live(self, url: str, run: str, seconds: float) -> list[str]:
        """Let a process write and kill it after some seconds; return the names that it acknowledged."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{url} {run}\n")
        self._process.stdin.flush()
        names: list[str] = []
        for line in map(str.strip, self._process.stdout):
            if line.startswith("pid "):
                threading.Timer(seconds, os.kill, [int(line[4:]), signal.SIGKILL]).start()
            elif line == "ended":
                break
            else:
                names.append(line)
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


def test_a_killed_writer_has_lost_nothing_that_it_acknowledged(
    store_url: str, writer: Writer, seed: int, number: int, record_property: Callable[[str, object], None]
) -> None:
    chance = Random(f"{seed}/{number}")
    ledger = Ledger()
    with opening.connect(store_url) as store:
        store.write(workload.prepare).result()
    for kill in range(KILLS):
        names = writer.live(store_url, str(kill), chance.uniform(0, 0.3))
        ledger.asked.update(names, map(workload.next_name, names))
        ledger.acknowledged.update(names)

        with opening.connect(store_url) as store:
            assert workload.faults(store, ledger) == [], f"--seed {seed}"

    assert ledger.acknowledged
    record_property("acknowledged", len(ledger.acknowledged))
