"""CPU time of the server for each answer about figures, with a million plays and with ten.

    python benchmarks/insights_requests.py [--plays 1000000 10000000] [--folder FOLDER]

The databases are those of insights.py, whose times are without HTTP. Here whole requests are measured, in turn: all
threads of the server, from the request to the last byte, without its cache of answers and without rate limits.
"""

import argparse
import statistics
import sys
import tempfile
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path

import plays_world
from insights import PERIODS, ROUNDS
from spread import spread

sys.path.insert(0, str(Path(__file__).parents[1]))
from collections.abc import Iterator

from musicsvc.clock import MovableClock
from musicsvc.config import Limits, Server, Settings
from musicsvc.server.routes.paths import INSIGHTS
from musicsvc.store.plays.periods import TIMEFRAMES
from tests.support.threaded_server import Connection, threaded_server

REPEATS = 15
SETTINGS = Settings(limits=Limits(enabled=False), server=Server(answer_cache=0))


def main() -> None:
    """Create the databases, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plays", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    times: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    with ExitStack() as stack:
        folder = options.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        asking = {plays: _Asking(stack, folder / str(plays), plays) for plays in sorted(options.plays)}
        for _ in range(ROUNDS):
            for path in _paths():
                for plays, each in asking.items():
                    times[path][plays].append(each.median(path))
    print(f"milliseconds of CPU, medians of {ROUNDS} rounds (least … most)")
    for path, found in times.items():
        first, *_, last = (statistics.median(some) for some in found.values())
        told = "; ".join(f"{plays:,} plays: {spread(some, 2)}" for plays, some in found.items())
        print(f"{path:45} {told}; growth {last / first:.2f}")


def _paths() -> Iterator[str]:
    for noun in ("tracks/1", "artists/1"):
        for period in PERIODS:
            timeframe = next(short for short, name in TIMEFRAMES.items() if name == period)
            yield f"{noun}?period={period}"
            yield f"{noun}/charts?timeframe={timeframe}"
            yield f"{noun}/listening?period={period}"
            yield f"{noun}/hours?period={period}"
        yield f"{noun}/milestones"
    yield "albums/1/release?against=2"


class _Asking:
    """A server over one of the databases, and a connection to it."""

    def __init__(self, stack: ExitStack, folder: Path, plays: int) -> None:
        store = stack.enter_context(plays_world.kept(folder, plays))
        self._token = plays_world.token(store)
        server = stack.enter_context(threaded_server(store, MovableClock(plays_world.NOW, speed=0), SETTINGS))
        self._connection = Connection(server.port, server.thread)
        stack.callback(self._connection.close)
        self._host = f"127.0.0.1:{server.port}"

    def median(self, path: str) -> float:
        """Return the median milliseconds of some requests."""
        head = f"GET {INSIGHTS}/{path} HTTP/1.1\r\nHost: {self._host}\r\n"
        request = f"{head}Authorization: Bearer {self._token}\r\n\r\n".encode()
        costs = [self._connection.cost(request) for _ in range(REPEATS)]
        assert {cost.status for cost in costs} == {200}, path
        return 1e3 * statistics.median(cost.server for cost in costs)


if __name__ == "__main__":
    main()
