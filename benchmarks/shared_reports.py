"""Latency of the API beside strangers who open shared reports.

    python benchmarks/shared_reports.py [--seconds 6] [--connections 64] [--links 1] [--limits on|off]

Runs the real program with the fixtures. A token holder reads tracks, 20 times a second and never from the cache, alone
and beside another process that requests shared reports of 100 years over CONNECTIONS connections without a pause.
`--links`: how many reports these requests take turns with, of which the one drawn last may be kept. `--limits on`: with
the limits of strangers, which local requests have if `limits.local` is set. Exit 1 if the median becomes three times as
long.
"""

import argparse
import asyncio
import json
import multiprocessing
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from multiprocessing.connection import Connection

from load import LENGTH, cpu_seconds, cpu_since, raw
from network_server import Server, percentile, percentiles, running
from reads import limits

from musicsvc.clock import DAY, Clock
from musicsvc.server.shapes import share_links
from musicsvc.server.shapes.envelope import Site
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Artist, ReportLink
from musicsvc.store.plays.subjects import ARTIST

OK = 200
PER_SECOND = 20
CENTURY = 36_500  # days
MOST = 3  # times the idle median
FREE = {"token": "999999999/minute"}
SPAWN = multiprocessing.get_context("spawn")


def make_links(count: int) -> list[str]:
    """Create links to reports of 100 years, as earlier versions did, and return their paths."""
    now = Clock().now()
    artist = Artist.select().where(Artist.manager > 0).first()
    today = now // DAY
    rows = [
        ReportLink.create(
            user=artist.manager_id,
            kind=ARTIST,
            subject=artist.id,
            first_day=today - CENTURY + number,
            end_day=today + 1,
            created_at=now,
            expires_at=now + DAY,
        )
        for number in range(count)
    ]
    return [share_links.address(row.id, row.created_at, Site("")) for row in rows]


async def receive(reader: asyncio.StreamReader) -> int:
    """Read an answer to its end. Return its status."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = LENGTH.search(head)
    assert length is not None, head
    await reader.readexactly(int(length[1]))
    return int(head.split(b" ", 2)[1])


async def crowd(port: int, paths: list[str], connections: int, pipe: Connection) -> None:
    """Request reports until the pipe says so. Send the number of answers by status."""
    statuses: Counter[int] = Counter()
    requests = [raw(path, port, more=["Accept: text/html", "Accept-Encoding: gzip"]) for path in paths]

    async def one(number: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while True:
            writer.write(requests[number % len(requests)])
            statuses[await receive(reader)] += 1
            number += 1

    asking = [asyncio.create_task(one(number)) for number in range(connections)]
    await asyncio.to_thread(pipe.recv)
    for task in asking:
        task.cancel()
    failed = [each for each in await asyncio.gather(*asking, return_exceptions=True) if isinstance(each, Exception)]
    pipe.send((dict(statuses), [repr(each) for each in failed[:1]]))


def ask(port: int, paths: list[str], connections: int, pipe: Connection) -> None:
    """Run the crowd in this process."""
    asyncio.run(crowd(port, paths, connections, pipe))


async def reads(server: Server, seconds: float, name: str) -> list[float]:
    """Send reads at a fixed rate, each after the answer to the one before. Return the seconds of each."""
    times: list[float] = []
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        path = f"/api/v1/tracks?perPage=5&uncached={name}{len(times)}"
        began = time.perf_counter()
        writer.write(raw(path, server.port, token=server.token))
        assert await receive(reader) == OK
        times.append(time.perf_counter() - began)
        await asyncio.sleep(1 / PER_SECOND)
    writer.close()
    return times


def measure(server: Server, given: argparse.Namespace) -> bool:
    """Print the times alone and beside the crowd. Return whether the API stayed fast enough."""
    asyncio.run(reads(server, 1, "warm"))
    alone = asyncio.run(reads(server, given.seconds, "alone"))
    before = cpu_seconds(server.process.pid)
    ours, theirs = SPAWN.Pipe()
    process = SPAWN.Process(target=ask, args=(server.port, server.filled, given.connections, theirs))
    process.start()
    time.sleep(2)
    beside = asyncio.run(reads(server, given.seconds, "beside"))
    ours.send("end")
    answered, failed = ours.recv()
    process.join()
    print(f"alone:  {percentiles(alone)}")
    print(f"beside: {percentiles(beside)}")
    spent = cpu_since(before, server.process.pid) / sum(answered.values()) * 1000
    print(f"the crowd: {given.connections} connections, answers by status {json.dumps(answered)} {failed or ''}")
    print(f"CPU of the server for each answer to the crowd: {spent:.2f} ms")
    return percentile(beside, 50) < MOST * percentile(alone, 50)


def main() -> None:
    """Run the server and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--links", type=int, default=1)
    parser.add_argument("--limits", choices=("on", "off"), default="on")
    given = parser.parse_args()
    more = limits({"local": "true", **FREE} if given.limits == "on" else {"enabled": "false"})

    def fill(store: Store) -> list[str]:
        return store.write(lambda: make_links(given.links)).result()

    with (
        tempfile.TemporaryDirectory() as name,
        running(Path(name) / "server", {}, tls=False, fill=fill, more=more) as server,
    ):
        sys.exit(0 if measure(server, given) else 1)


if __name__ == "__main__":
    main()
