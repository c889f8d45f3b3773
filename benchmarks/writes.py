"""CPU time and latency of small durable writes, beside bare aiohttp that answers a no-op POST with the same bytes.

    python benchmarks/writes.py [--workers 1 2] [--rounds 7] [--requests 2000] [--albums 4000] [--only PATTERN]

64 clients over persistent connections; token check, rate limits, activity log and metrics are on.
"""

import json
import random
import re
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from itertools import count
from typing import Any

import harness
from clients import cost, percentile, raw, send
from harness import Server
from worlds import NOW

from musicsvc.clock import DAY

CLIENTS = 64
PLAYLISTS = 100  # to which tracks are added
API = "/api/v1"
Made = tuple[str, dict[str, Any] | None]


def cases(tracks: int, playlists: list[int]) -> dict[str, Callable[[], Made]]:
    """Return what makes the path and the body of the next request of each kind."""
    chance, numbers = random.Random(1), count()
    track = partial(chance.randint, 1, tracks)

    def play() -> dict[str, Any]:
        return {"track_id": track(), "played_at": (NOW - 300 * DAY) // 1_000_000 + next(numbers) * 30, "listener": "w"}

    return {
        "POST playlists": lambda: (f"{API}/playlists", {"name": f"List {next(numbers)}", "public": True}),
        "POST tracks/{id}/like": lambda: (f"{API}/tracks/{track()}/like", None),
        "POST playlists/{id}/tracks/add": lambda: (
            f"{API}/playlists/{chance.choice(playlists)}/tracks/add",
            {"ids": [track()]},
        ),
        "POST plays, of one play": lambda: (f"{API}/plays", {"plays": [play()]}),
    }


def main() -> None:
    """Run the servers, measure and print."""
    parser = harness.parser(__doc__, rounds=7, requests=2000, albums=4000)
    parser.add_argument("--workers", type=int, nargs="+", default=[1], help="one server for each number of workers")
    given = parser.parse_args()
    with harness.place(given) as folder, ExitStack() as opened:
        servers, lists = {}, list[int]()
        for checkout in harness.checkouts(given):
            for workers in given.workers:
                base = harness.database(checkout, folder / f"{workers}", "catalog", given.albums)
                settings = {**harness.ON, "server.workers": workers}
                server = opened.enter_context(harness.running(checkout, base, settings))
                made = (server.ask("POST", f"{API}/playlists", {"name": f"Filled {at}"}) for at in range(PLAYLISTS))
                lists = [each["playlist"]["id"] for each in made]
                servers[checkout.label(f"{workers} workers" if workers > 1 else "")] = server
        chosen = {name: make for name, make in cases(given.albums * 5, lists).items() if re.search(given.only, name)}
        first = next(iter(servers.values()))
        bodies = [first.body("POST", *make()) for make in chosen.values()]
        bare = opened.enter_context(harness.bare(bodies))
        ratios = [(f"{name}, of the no-op", "no-op", name) for name in servers]
        table = harness.Table("write", [*servers, "no-op"], ratios)
        for at, (name, make) in enumerate(chosen.items()):
            measure(table, name, make, servers, (bare, f"/{at}"), given.rounds, given.requests)


def measure(
    table: harness.Table,
    name: str,
    make: Callable[[], Made],
    servers: dict[str, Server],
    bare: tuple[Server, str],
    rounds: int,
    requests: int,
) -> None:
    """Measure one kind of write and print its row."""
    times: dict[str, list[float]] = {each: [] for each in (*servers, "no-op")}
    made: list[Made] = []

    def turn_of(label: str, server: Server, path: str, turn: int) -> float:
        if label == next(iter(servers)):  # the same requests for all servers of a round
            made[:] = [make() for _ in range(requests)]
        post = partial(raw, port=server.port, token=server.token, method="POST")
        some = [post(path or own, body=json.dumps(body).encode() if body else b"") for own, body in made]

        async def ask() -> None:
            found = await send(server.port, some, CLIENTS)
            times[label] += found if turn else []

        return cost(server, ask) / requests * 1e6

    work = {label: partial(turn_of, label, server, "") for label, server in servers.items()}
    work["no-op"] = partial(turn_of, "no-op", *bare)
    values = harness.in_turn(rounds, work)
    late = ", ".join(
        f"{percentile(each, 50) * 1000:.1f} / {percentile(each, 99) * 1000:.1f}" for each in times.values()
    )
    table.row(name, values, f"p50 / p99 {late} ms")


if __name__ == "__main__":
    main()
