"""Cost of metrics: requests/s and CPU time per request with metrics on and off, in turn, in one run.

    python benchmarks/metrics.py

Three servers with a database each: without metrics, with metrics, and with metrics and a log line per request
(`log.requests`, to the null device). They get requests in turn, in rounds, so other work on the machine affects all
of them; the output has the median of the speeds and the minimum of the costs. Then the cost of one call alone, and of
one scrape.
"""

import asyncio
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from musicsvc.clock import Clock
from musicsvc.config import Log, Settings
from musicsvc.server import serving
from musicsvc.server.app import App
from musicsvc.server.call import Call
from musicsvc.server.logs import access_log
from musicsvc.server.logs import setup as log_setup
from musicsvc.server.metrics.multiprocess import SharedMetrics
from musicsvc.server.metrics.registry import Metrics
from musicsvc.server.routes.table import ROUTES
from musicsvc.store import opening
from musicsvc.store.engine.sqlite import files
from musicsvc.store.schema import schema

VARIANTS = ("off", "on", "on, and lines")
PATHS = {"an unknown path": "/nothing", "GET /api/v1/genres": "/api/v1/genres"}
ROUNDS, REQUESTS, TOGETHER = 15, 4_000, 4
CALLS = 200_000
LINES = Log(requests=True, format="json")
TICKS = os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        servers = {name: _started(Path(folder), name) for name in VARIANTS}
        try:
            for about, path in PATHS.items():
                _compare(about, path, servers)
        finally:
            for process, _ in servers.values():
                process.send_signal(signal.SIGTERM)
                process.wait()
    _by_itself()


def _started(folder: Path, variant: str) -> tuple[subprocess.Popen[bytes], int]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    file = folder / f"{VARIANTS.index(variant)}" / "musicsvc.db"
    file.parent.mkdir()
    files.create(file)
    schema.upgrade(f"sqlite:///{file}")
    command = [sys.executable, __file__, variant, str(port), f"sqlite:///{file}"]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)  # noqa: S603 - this program
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.1)
        else:
            return process, port
    raise SystemExit("The server does not answer.")


def _compare(about: str, path: str, servers: dict[str, tuple[subprocess.Popen[bytes], int]]) -> None:
    speeds: dict[str, list[float]] = {name: [] for name in servers}
    costs: dict[str, list[float]] = {name: [] for name in servers}
    for _ in range(ROUNDS):
        for name, (process, port) in servers.items():
            before, began = _processor_seconds(process.pid), time.perf_counter()
            _ask(port, path)
            speeds[name].append(REQUESTS / (time.perf_counter() - began))
            costs[name].append((_processor_seconds(process.pid) - before) / REQUESTS * 1e6)
    print(about)
    plain = statistics.median(speeds["off"])
    for name in servers:
        speed, cost = statistics.median(speeds[name]), min(costs[name])
        print(f"  {name:14} {speed:7,.0f} requests/s ({speed / plain - 1:+.1%}), {cost:.0f} µs of CPU time each")


def _ask(port: int, path: str) -> None:
    """Send requests over one connection, a few of them at a time."""
    raw = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    with socket.create_connection(("127.0.0.1", port)) as client:
        for _ in range(REQUESTS // TOGETHER):
            client.sendall(raw * TOGETHER)
            got = 0
            while got < TOGETHER:
                got += client.recv(65_536).count(b"HTTP/1.1 ")


def _processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def _by_itself() -> None:
    call = Call(1, 1.0, "x" * 24, "GET", "127.0.0.1", ROUTES[5], 7, 9, status=200, size=1234, milliseconds=2.5)
    print("one call, by itself")
    alone = Metrics()
    print(f"  counted by one process           {_microseconds(lambda: alone(call)):5.2f} µs")
    with SharedMetrics.create(4) as shared:
        assert shared is not None
        together = Metrics(shared.join(0))
        print(f"  counted by one of several        {_microseconds(lambda: together(call)):5.2f} µs")
        print(f"  logged in a line                 {_line(call):5.2f} µs, and as much again on the writing thread")
        print("one scrape, every endpoint called")
        for metrics, name in ((alone, "one process"), (together, "one of several")):
            for route in ROUTES:
                metrics(Call(1, 1.0, "x", route.method, "", route, status=200))
            print(f"  {name:31} {_microseconds(metrics.text, 50) / 1000:6.1f} ms")


def _line(call: Call) -> float:
    """Return the cost of a line where the request is answered, in batches that the writing thread keeps up with."""
    before = sys.stderr
    best = float("inf")
    with Path(os.devnull).open("w", encoding="utf-8") as sys.stderr, log_setup.started(LINES, Clock(), threaded=True):
        for _ in range(30):
            time.sleep(0.02)
            best = min(best, _microseconds(lambda: access_log.write(call), 20, 1))
    sys.stderr = before
    return best


def _microseconds(work: Callable[[], object], times: int = CALLS, tries: int = 5) -> float:
    """Return the fastest of several tries, because other work only makes it slower."""
    best = float("inf")
    for _ in range(tries):
        began = time.perf_counter()
        for _ in range(times):
            work()
        best = min(best, (time.perf_counter() - began) / times)
    return best * 1e6


async def _serve(variant: str, port: int, url: str) -> None:
    settings = Settings(database_url=url, log=Log(requests=variant == VARIANTS[2]))
    with opening.connect(url) as store, log_setup.started(settings.log, Clock(), threaded=True):
        app = App(settings, store, Clock(), f"http://127.0.0.1:{port}")
        if variant == "off":
            dispatcher = app._dispatcher  # noqa: SLF001 - the one thing that is measured
            dispatcher._observers = [each for each in dispatcher._observers if not isinstance(each, Metrics)]  # noqa: SLF001 - the one part that is measured
        await app.start(serving.listen("127.0.0.1", port))
        stopped = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
        await stopped.wait()
        await app.stop()


if __name__ == "__main__":
    if sys.argv[1:]:
        import uvloop

        variant, port, url = sys.argv[1:]
        uvloop.run(_serve(variant, int(port), url))
    else:
        main()
