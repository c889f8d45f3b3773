"""Changes of a demo that many clients request at once, as suites with parallel workers do: one after the other."""

import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.demo import Demo, running_demo
from tests.support.program import until

# A demo has its own database, whatever store the run uses.
pytestmark = [pytest.mark.only_on("sqlite"), pytest.mark.slow]
CLIENTS, SUITES = 20, 8  # six resets at once used to lock up the demo
CHANGES = ("/demo/reset", "/demo/snapshots/kept", "/demo/snapshots/base/restore", "/demo/clock")


@pytest.fixture
def busy(tmp_path: Path) -> Iterator[Demo]:
    """Run a demo of its own, with a snapshot."""
    with running_demo(tmp_path, MUSICSVC_SERVER__SHUTDOWN_TIMEOUT="100") as demo:  # for a busy machine
        assert demo.post("/demo/snapshots/base").status == 201
        yield demo


def change(demo: Demo, path: str) -> int:
    return demo.post(path, {"advance": "1m"} if path == "/demo/clock" else None, token=None).status


def together(ask: Callable[[int], int], clients: int = CLIENTS) -> list[int]:
    """Let all clients send their requests at the same moment; return the statuses."""
    begin = threading.Barrier(clients)

    def client(number: int) -> int:
        begin.wait()
        return ask(number)

    with ThreadPoolExecutor(clients) as pool:
        return list(pool.map(client, range(clients)))


def test_resets_snapshots_restores_and_moves_of_the_clock_all_answer(busy: Demo) -> None:
    statuses = together(lambda number: change(busy, CHANGES[number % len(CHANGES)]))
    assert statuses == [200, 201, 200, 200] * (CLIENTS // len(CHANGES))
    assert together(lambda _: change(busy, "/demo/reset")) == [200] * CLIENTS
    assert busy.post("artists", {"name": "Barbara Strozzi"}).status == 201


def test_suites_of_parallel_workers_go_on_while_others_reset(busy: Demo) -> None:
    """The requests of a test: they all are answered, whatever the others do to the data meanwhile."""

    def suite(number: int) -> int:
        own = f"/demo/snapshots/of-{number}"
        for _ in range(2):
            asked = [
                change(busy, own),
                busy.get("albums").status,
                busy.post("playlists", {"name": "Mine"}).status,
                busy.get("/demo/clock", token=None).status,
                busy.get("/demo/snapshots", token=None).status,
                busy.post("/demo/faults", {"match": {"token": "msvc_none"}, "fault": "500"}, token=None).status,
                change(busy, f"{own}/restore"),
                busy.ask("DELETE", "/demo/requests", token=None).status,
                change(busy, "/demo/clock"),
                change(busy, "/demo/reset"),
            ]
            if asked != [201, 200, 200, 200, 200, 201, 200, 200, 200, 200]:
                return max(asked)
        return 200

    assert together(suite, SUITES) == [200] * SUITES


def test_requests_are_answered_while_changes_wait(busy: Demo) -> None:
    answered: list[int] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            answered.extend(busy.get(path).status for path in ("albums", "/demo/clock", "/demo/snapshots", "/healthz"))

    reader = threading.Thread(target=read)
    reader.start()
    resets = together(lambda _: change(busy, "/demo/reset"))
    done.set()
    reader.join()
    assert ({*resets}, {*answered}) == ({200}, {200})


def test_a_demo_stops_while_changes_wait(busy: Demo) -> None:
    def reset(_: int) -> int:
        try:
            return change(busy, "/demo/reset")
        except OSError:  # the demo has ended
            return 0

    with ThreadPoolExecutor(1) as stopping:
        changes = stopping.submit(together, reset)
        until(lambda: busy.get("/demo/requests").status == 200)
        assert busy.program.end(signal.SIGTERM) == 0
        assert {*changes.result()} <= {0, 200}
