"""The sums of the activity log: what they cost with each call, and how long a page waits for them.

    python benchmarks/activity.py [--calls 10000000] [--days 90] [--rounds 5] [--written 40000]

A log of WRITTEN calls is written in the batches of a busy server, without sums and with them in turn. Then the sums of
CALLS calls over DAYS days are made without the calls, which no page reads: by 60 tokens from 3,000 addresses in all,
to 60 routes. Who called most is read for windows of an hour to all days, as the page does. Exit 1 above 200 ms.
"""

import statistics
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import harness

from musicsvc.clock import HOUR, SECOND
from musicsvc.config import Settings
from musicsvc.store.activity import calls, sums, top
from musicsvc.store.activity import log as activity_log
from musicsvc.store.activity.calls import Entry
from musicsvc.store.activity.log import Log
from musicsvc.store.activity.top import DIMENSIONS, Window

MOST_MILLISECONDS = 200
BATCH = 2_000
FLAGS = True, False  # limits apply; the object is public
HELD = 0.8  # of the calls have a token
TOKENS, ADDRESSES, ROUTES, OBJECTS = 60, 3_000, 60, 5_000
ANSWERS, WEIGHTS = (200, 404, 429), (96, 3, 1)
draw = Random(1)
NOW = 1_772_323_200 * SECOND


def main() -> int:
    """Measure both. Return the exit code."""
    given = harness.parser(__doc__, calls=10_000_000, days=90, written=40_000).parse_args()
    with harness.place(given) as folder:
        values = harness.in_turn(
            given.rounds,
            {name: partial(written, folder, given.written, name) for name in ("without sums", "with sums")},
        )
        for name, costs in values.items():
            print(f"{name}: {harness.spread([cost * 1e6 for cost in costs], 1)} µs of CPU a call")
        pairs = zip(values["with sums"], values["without sums"], strict=True)
        print(f"ratio: {statistics.median(one / other for one, other in pairs):.2f}")
        return harness.say([*read(folder, given)])


def written(folder: Path, number: int, name: str, round_: int) -> float:
    """Return the seconds of CPU of a call."""
    with activity_log.build(f"sqlite:///{folder}/{name.replace(' ', '-')}-{round_}.db") as log:
        log.prepare()
        batches = [[entry(place + n) for n in range(BATCH)] for place in range(0, number, BATCH)]
        began = time.process_time()
        for batch in batches:
            log.write(partial(calls.add, batch)).result()
        while name == "with sums" and log.write(sums.advance).result():
            pass
        return (time.process_time() - began) / (len(batches) * BATCH)


def entry(number: int) -> Entry:
    """Return a call of one of 64 clients, each of which uses a few routes."""
    client = draw.randrange(64)
    route, resource = f"/api/v1/r{(client * 7 + number % 3) % ROUTES}/{{id}}", f"tracks/{draw.randrange(OBJECTS)}"
    status = draw.choices(ANSWERS, WEIGHTS)[0]
    who = 1 + client, 1 + client, f"203.0.113.{client}"
    return Entry(NOW + number * 1_000, f"{number:024x}", *who, "GET", route, resource, status, None, 1.2, 800, *FLAGS)


def read(folder: Path, given: Any) -> Iterator[str]:
    """Make the sums and read them. Yield what takes too long."""
    hours = given.days * 24
    with activity_log.build(f"sqlite:///{folder}/large.db") as log:
        log.prepare()
        for hour in range(hours):
            log.write(partial(sums.add, list(groups(NOW // HOUR - hours + hour, given.calls // hours)))).result()
        print(f"{given.calls:,} calls in {given.days} days: sums of {log.path.stat().st_size / 1e6:,.0f} MB")  # type: ignore[attr-defined]
        end = NOW // HOUR
        for length in (1, 12, 24 * 7 + 5, hours):
            for by in DIMENSIONS:
                window = Window(end - min(length, hours), end)
                milliseconds = [timed(log, by, window) for _ in range(given.rounds)]
                print(f"{length:,} hours by {by}: {harness.spread(milliseconds)} ms")
                if min(milliseconds) > MOST_MILLISECONDS:
                    yield f"{length:,} hours by {by} take {min(milliseconds):.0f} ms, above {MOST_MILLISECONDS}"


def timed(log: Log, by: str, window: Window) -> float:
    began = time.perf_counter()
    top.find(log, by, window, Settings(), limit=20)
    return (time.perf_counter() - began) * 1e3


def groups(hour: int, number: int) -> Iterator[tuple[Any, ...]]:
    """Yield groups of together `number` calls of an hour, of a few calls each, as `sums.alike` does."""
    while number > 0:
        token = draw.randrange(TOKENS) if draw.random() < HELD else None
        size = min(number, 1 + int(draw.expovariate(0.1)))
        network = int(ADDRESSES * draw.random() ** 3)
        resources = [f"tracks/{draw.randrange(OBJECTS)}" for _ in range(size)]
        status = draw.choices(ANSWERS, WEIGHTS)[0]
        key = token, f"10.0.{network // 256}.{network % 256}", f"/api/v1/r{draw.randrange(ROUTES)}", status
        yield (hour, *key, True, False, size, hour * HOUR, hour * HOUR + HOUR - 1, resources)
        number -= size


if __name__ == "__main__":
    sys.exit(main())
