"""CPU time of the server for the page of figures of an artist with 50 popular tracks.

    python benchmarks/dashboard.py [--plays 10000000] [--folder FOLDER]

Creates a database (plays_world.py; ten million plays take some minutes and 2 GB), or uses the one in `--folder` again.
Requests the page of artist 1 from a server on another thread, signed in, and prints the CPU time of all threads but the
client's, from the request to the last byte, and the size of the page with gzip.
"""

import argparse
import statistics
import sys
import tempfile
from functools import partial
from pathlib import Path

import plays_world
from spread import spread

sys.path.insert(0, str(Path(__file__).parents[1]))
from musicsvc.clock import MovableClock
from musicsvc.store.accounts import users
from musicsvc.store.engine.store import Store
from musicsvc.store.security import sessions
from tests.support.threaded_server import Connection, threaded_server

ROUNDS, REPEATS = 9, 15
PERIODS = ("7-days", "30-days", "90-days", "1-year")
GOAL = 50  # milliseconds


def main() -> None:
    """Create the database, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plays", type=int, default=10_000_000)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        with plays_world.kept(folder / str(options.plays), options.plays) as store:
            _measure(store)


def _measure(store: Store) -> None:
    clock = MovableClock(plays_world.NOW, speed=0)
    with threaded_server(store, clock) as server:
        session = store.write(partial(_sign_in, clock.now())).result()
        connection = Connection(server.port, server.thread)
        print(f"milliseconds of CPU, medians of {ROUNDS} rounds (least … most); goal {GOAL}")
        for period in PERIODS:
            head = f"GET /insights/artist/1?period={period} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
            request = f"{head}Accept-Encoding: gzip\r\nCookie: musicsvc={session}\r\n\r\n".encode()
            rounds = [[connection.cost(request) for _ in range(REPEATS)] for _ in range(ROUNDS)]
            assert {cost.status for some in rounds for cost in some} == {200}
            times = [1e3 * statistics.median(cost.server for cost in some) for some in rounds]
            print(f"{period:8} {spread(times, 1)}; {rounds[0][0].size / 1000:.1f} kB")
        connection.close()


def _sign_in(now: int) -> str:
    return sessions.create(users.by_email(plays_world.MANAGER), address="127.0.0.1", agent="benchmark", now=now)


if __name__ == "__main__":
    main()
