"""CPU time of figures for the most played track and for an artist of 50 popular tracks, over 30 and 365 days.

    python benchmarks/insights.py [--plays 1000000 10000000] [--rounds 9] [--repeats 15] [--only 'figures|report']

*figures* are plays, listeners, likes and reposts with the window before, read in the store, in CPU time of its thread.
The others are whole requests, in CPU time of the server: API, exports of the artist's tracks, the report, and the page
of the artist. *overview* is the page of everything that an account of 10,000 artists and 100,000 tracks manages, and
its tables; the others are of 2,000 artists. The cache of responses and rate limits are off. Ten million plays take some
minutes to create and 2 GB; `--folder` keeps them.
"""

import json
import re
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import harness
from clients import cost, raw, send
from harness import Inside, Server, answer_inside
from worlds import NOW

from musicsvc.store.engine.store import Store
from musicsvc.store.insights import figures
from musicsvc.store.plays.periods import window
from musicsvc.store.plays.subjects import ARTIST, TRACK, Subject

API = "/api/v1/producer-intelligence/insights"
PERIODS = {"30-days": "30d", "1-year": "1y"}  # with the name of the timeframe of charts
SUBJECTS = {"track": Subject(TRACK, 1), "artist": Subject(ARTIST, 1)}
TRACKS_AN_ARTIST = 10  # of an account with 10,000 artists
SETTINGS = {**harness.OFF, "server.answer_cache": 0}


def read_figures(store: Store, noun: str, period: str, repeats: int, _turn: int) -> float:
    """Return the median milliseconds of figures, on a store thread."""
    days = window(period, NOW)

    def timed() -> float:
        times = []
        for _ in range(repeats):
            began = time.thread_time()
            figures.figures(SUBJECTS[noun], days)
            times.append(1e3 * (time.thread_time() - began))
        return statistics.median(times)

    return store.read(timed).result()


Case = tuple[str, str, dict[str, Any]]


def cases() -> Iterator[Case]:
    """Yield the requests to measure: name, path, body (empty for a GET)."""
    for noun in SUBJECTS:
        for period, timeframe in PERIODS.items():
            at = f"{API}/{noun}s/1"
            yield f"{noun} {period} answer", f"{at}?period={period}", {}
            yield f"{noun} {period} chart", f"{at}/charts?timeframe={timeframe}", {}
            yield f"{noun} {period} listening", f"{at}/listening?period={period}", {}
            yield f"{noun} {period} hours", f"{at}/hours?period={period}", {}
        yield f"{noun} milestones", f"{API}/{noun}s/1/milestones", {}
    yield "album release", f"{API}/albums/1/release?against=2", {}
    for period in PERIODS:
        scope = {"period": period, "artist_id": 1}
        yield f"artist {period} report", f"{API}/export/report", scope
        yield f"artist {period} PDF", f"{API}/export/pdf", scope
        yield f"artist {period} CSV", f"{API}/export/csv", {**scope, "type": "tracks"}
        yield f"artist {period} page", f"/insights/artist/1?period={period}", {}


def overview_cases() -> Iterator[Case]:
    """Yield the requests to measure for an account with many artists."""
    for period in ("7-days", *PERIODS):
        yield f"overview {period}", f"/insights?period={period}", {}
        for kind in ("artists", "tracks"):
            yield f"overview {period} table of {kind}", f"/insights/{kind}?period={period}", {}


def request(server: Server, case: Case, repeats: int, _: int) -> float:
    """Return the milliseconds of CPU that the server takes for a request."""
    path, wanted = case[1:]
    page = not path.startswith("/api/")
    cookie = [f"Cookie: musicsvc={server.filled}"] if page else []
    body = json.dumps(wanted).encode() if wanted else b""
    method = "POST" if body else "GET"
    one = raw(path, server.port, token="" if page else server.token, method=method, body=body, more=cookie)
    return cost(server, lambda: send(server.port, [one] * repeats, 1)) / repeats * 1e3


def main() -> None:
    """Create the databases, measure and print."""
    parser = harness.parser(__doc__, rounds=9, repeats=15)
    parser.add_argument("--plays", type=int, nargs="+", default=[1_000_000, 10_000_000])
    given = parser.parse_args()
    wanted = [case for case in cases() if re.search(given.only, case[0])]
    of_label = [case for case in overview_cases() if re.search(given.only, case[0])]
    pairs = [(noun, period) for noun in SUBJECTS for period in PERIODS]
    read = [(noun, period) for noun, period in pairs if re.search(given.only, f"{noun} {period} figures")]
    with harness.place(given) as folder, ExitStack() as opened:
        stores, servers, labels, all_names, growths = {}, {}, {}, [], []
        for checkout in harness.checkouts(given):
            names = [checkout.label(f"{plays:,} plays") for plays in sorted(given.plays)]
            all_names += names
            for name, plays in zip(names, sorted(given.plays), strict=True):
                if wanted or read:
                    base = harness.database(checkout, folder, "figures", plays)
                    stores[name] = opened.enter_context(Inside(checkout, "insights.py", base.url))
                    servers[name] = opened.enter_context(harness.running(checkout, base, SETTINGS))
                if of_label:
                    label = harness.database(checkout, folder, "figures", plays, 0, TRACKS_AN_ARTIST)
                    labels[name] = opened.enter_context(harness.running(checkout, label, SETTINGS))
            growths += [(f"growth {checkout.name}".strip(), names[-1], names[0])] * (len(names) > 1)
        table = harness.Table("request", all_names, growths, "ms", 2)
        for noun, period in read:
            work = {each: partial(one.ask, "figures", noun, period, given.repeats) for each, one in stores.items()}
            table.row(f"{noun} {period} figures", harness.in_turn(given.rounds, work))
        for some, asked in ((servers, wanted), (labels, of_label)):
            for case in asked:
                work = {each: partial(request, server, case, given.repeats) for each, server in some.items()}
                table.row(case[0], harness.in_turn(given.rounds, work))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        answer_inside({"figures": read_figures})
    else:
        main()
