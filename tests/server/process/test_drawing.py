"""The processes that draw: what happens to requests, the server and them when one of them ends."""

import json
import os
import signal
import time
from collections.abc import Callable
from contextlib import closing, suppress
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.program import Program, held, is_running, until

pytestmark = [
    pytest.mark.only_on("sqlite"),
    pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks at processes in /proc"),
]
PNG = b"\x89PNG"


def picture(root: str, number: int) -> bytes:
    connection = HTTPConnection(urlsplit(root).netloc)
    with closing(connection):
        connection.request("GET", f"/cover-art/templates/{number}.png")
        return connection.getresponse().read()


def drawers(worker: int) -> list[int]:
    """Return the ids of the processes that a worker has begun."""
    files = Path(f"/proc/{worker}/task").glob("*/children")
    return [pid for file in files for pid in map(int, file.read_text("ascii").split()) if is_running(pid)]


def test_the_end_of_a_server_ends_the_process_that_draws(serve: Callable[..., Program]) -> None:
    program = serve()
    assert picture(program.root, 2).startswith(PNG)
    [drawer] = drawers(program.worker)
    assert "musicsvc.reports.drawing" in Path(f"/proc/{drawer}/cmdline").read_text("utf-8")
    assert program.end(signal.SIGTERM) == 0
    assert not is_running(drawer)


def test_a_worker_that_is_killed_leaves_no_process_that_draws(serve: Callable[..., Program]) -> None:
    program = serve()
    root, worker = program.root, program.worker
    assert picture(root, 2).startswith(PNG)
    [drawer] = drawers(worker)
    os.kill(worker, signal.SIGKILL)
    until(lambda: not is_running(drawer))
    until(lambda: program.workers not in ([], [worker]))
    assert picture(root, 3).startswith(PNG)


def test_a_drawing_whose_process_is_killed_is_503_and_the_next_one_is_drawn(serve: Callable[..., Program]) -> None:
    program = serve()
    root, worker = program.root, program.worker
    assert picture(root, 2).startswith(PNG)
    [drawer] = drawers(worker)
    connection = HTTPConnection(urlsplit(root).netloc)
    with suppress(ProcessLookupError), held(drawer):
        connection.request("GET", "/cover-art/templates/3.png")
        time.sleep(0.5)  # it draws by then, or finds the process gone and begins another
        os.kill(drawer, signal.SIGKILL)
        response = connection.getresponse()
    told = json.loads(response.read())
    assert (response.status, response.headers["Retry-After"]) == (503, "1")
    assert told["message"] == "This could not be drawn. Try again in a second."
    connection.close()
    assert picture(root, 3).startswith(PNG)
    assert drawers(worker) != [drawer]
    assert "the process that draws a thumbnail failed (memory)" in program.err
