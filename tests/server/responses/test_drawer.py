"""Drawing in processes of the limited program: they are reused, end when idle, and may fail."""

import asyncio
import io
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from PIL import Image

from musicsvc.errors import Overloaded
from musicsvc.limited.process import PROGRAM
from musicsvc.reports.art import avatars, covers
from musicsvc.server.responses.drawer import IDLE, Drawer
from tests.support.bounds import Bounds
from tests.support.monotonic_clock import StoppedClock
from tests.support.program import held, is_running, until

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks at processes in /proc")
ROOT = str(Path(__file__).parents[3])
COVER = ("cover", 2, "Night of a \U0001f43a", "Mara", 100)


@pytest.fixture
def stopped() -> StoppedClock:
    return StoppedClock()


@pytest.fixture
def drawer(stopped: StoppedClock) -> Iterator[Drawer]:
    drawer = Drawer(stopped)
    yield drawer
    drawer.close()
    assert pids(drawer) == []


def pids(drawer: Drawer) -> list[int]:
    """Return the ids of the processes that draw nothing."""
    return [process._process.pid for _, process in drawer._resting]


def is_gone(pid: int) -> bool:
    """Return whether the process has ended and is no zombie."""
    return not Path(f"/proc/{pid}").exists()


@pytest.fixture
def bad(drawer: Drawer, monkeypatch: pytest.MonkeyPatch) -> Drawer:
    """Have the processes draw what fails (`drawn_badly.py`)."""
    monkeypatch.setattr("musicsvc.server.responses.drawer.MODULE", "tests.support.drawn_badly")
    monkeypatch.setenv("PYTHONPATH", ROOT)
    return drawer


def test_a_drawing_is_that_of_this_process_and_the_next_has_the_same_process(drawer: Drawer) -> None:
    assert drawer.draw(*COVER) == covers.cover(*COVER[1:])
    [pid] = pids(drawer)
    assert os.getpgid(pid) != os.getpgid(0)  # Ctrl+C is not for it
    design = avatars.design("Ann Example", 7)
    assert drawer.draw("avatar", design) == avatars.draw(design)
    assert drawer.draw("thumbnail", 3) == covers.thumbnail(3)
    assert pids(drawer) == [pid]


async def test_a_process_ends_when_it_was_idle_for_30_seconds_and_another_begins_when_it_is_needed(
    drawer: Drawer, stopped: StoppedClock
) -> None:
    drawn = await asyncio.to_thread(drawer.draw, *COVER)
    [pid] = pids(drawer)
    stopped.seconds += IDLE - 1
    await drawer.end_idle()
    assert pids(drawer) == [pid]
    assert await asyncio.to_thread(drawer.draw, *COVER) == drawn
    stopped.seconds += IDLE - 1  # since the last one
    await drawer.end_idle()
    assert is_running(pid)
    stopped.seconds += 1
    await drawer.end_idle()
    assert await asyncio.to_thread(is_gone, pid)
    assert await asyncio.to_thread(drawer.draw, *COVER) == drawn
    assert pids(drawer) != [pid]


def test_two_drawings_at_once_have_a_process_each_and_a_third_later_has_one_of_them(drawer: Drawer) -> None:
    sizes = [100, 150, 200, 250]
    with ThreadPoolExecutor(2) as threads:
        drawn = list(threads.map(lambda size: drawer.draw("cover", 2, "Two", "At Once", size), sizes))
    assert [Image.open(io.BytesIO(png)).size for png in drawn] == [(size, size) for size in sizes]
    both = pids(drawer)
    assert 1 <= len(both) <= 2
    drawer.draw(*COVER)
    assert pids(drawer) == both


def test_a_process_is_woken_once_and_only_where_there_is_none(drawer: Drawer) -> None:
    drawer.wake()
    [pid] = pids(drawer)
    drawer.wake()
    assert pids(drawer) == [pid]
    drawer.draw(*COVER)
    assert pids(drawer) == [pid]


def test_a_process_that_was_killed_while_it_drew_nothing_is_replaced(drawer: Drawer) -> None:
    drawn = drawer.draw(*COVER)
    [pid] = pids(drawer)
    os.kill(pid, signal.SIGKILL)
    until(lambda: drawer._resting[0][1].ended)
    assert drawer.draw(*COVER) == drawn
    assert pids(drawer) != [pid]


def test_a_process_that_is_killed_while_it_draws_fails_that_drawing_only(
    drawer: Drawer, caplog: pytest.LogCaptureFixture
) -> None:
    drawn = drawer.draw(*COVER)
    [pid] = pids(drawer)
    with suppress(ProcessLookupError), held(pid):
        killing = threading.Timer(0.3, os.kill, (pid, signal.SIGKILL))
        killing.start()
        with pytest.raises(Overloaded, match=r"^This could not be drawn\. Try again in a second\.$") as found:
            drawer.draw(*COVER)
        killing.join()
        assert found.value.retry_after == 1
    assert caplog.messages == ["the process that draws a cover failed (memory)"]
    assert drawer.draw(*COVER) == drawn


@pytest.mark.parametrize(
    ("kind", "reason"), [("greedy", "memory"), ("crash", "memory"), ("exit", "program"), ("slow", "memory")]
)
def test_whatever_fails_is_told_and_leaves_no_process(
    bad: Drawer, bounds: Bounds, caplog: pytest.LogCaptureFixture, kind: str, reason: str
) -> None:
    assert bad.draw("plain", "x" * 300_000, 7) == f"('{'x' * 300_000}', 7)".encode()  # more than a pipe takes
    [pid] = pids(bad)
    bounds(limited_silence=0.5 if kind == "slow" else 60, limited_wait=0.05)
    began = time.monotonic()
    with pytest.raises(Overloaded):
        bad.draw(kind)
    assert time.monotonic() - began < 60
    assert caplog.messages == [f"the process that draws a {kind} failed ({reason})"]
    assert pids(bad) == []
    assert is_gone(pid)
    assert bad.draw("plain", 1) == b"(1,)"


def test_a_fault_of_the_program_is_told_with_its_reason(drawer: Drawer, caplog: pytest.LogCaptureFixture) -> None:
    for arguments in ((99, "a", "b"), (1, "a", "b", 1)):
        with pytest.raises(Overloaded):
            drawer.draw("cover", *arguments)
    assert "the process that draws a cover failed (damaged: KeyError(99))" in caplog.messages
    assert "a cover must have 16 to 3000 pixels per side, not 1" in caplog.text


def test_a_process_that_the_system_holds_up_at_the_end_of_a_drawing_draws_the_next(bad: Drawer) -> None:
    bad.draw("late")
    (pid,) = pids(bad)
    bad.draw("plain")
    assert pids(bad) == [pid]


BEGIN = """
from musicsvc.clock import Clock
from musicsvc.server.responses import drawer as module
module.MODULE = "tests.support.drawn_badly"
drawer = module.Drawer(Clock())
drawer.draw("plain")
print(drawer._resting[0][1]._process.pid, flush=True)
drawer.draw("slow")
"""


def test_a_process_begins_no_drawing_if_its_parent_has_ended_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", ROOT)
    line = [sys.executable, "-P", "-m", PROGRAM, "tests.support.drawn_badly"]
    with subprocess.Popen(line, stdin=subprocess.PIPE) as process:
        try:
            process.communicate(b'[null, "slow"]\n', timeout=10)
        finally:
            process.kill()


def test_a_process_ends_in_the_middle_of_a_drawing_when_its_parent_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", ROOT)
    with subprocess.Popen([sys.executable, "-c", BEGIN], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        time.sleep(1)  # so that it draws
        parent.kill()
    until(lambda: not is_running(pid), 30)
