"""CPU time of the server per request of a mixed load, beside bare aiohttp that answers with the same sizes.

    python benchmarks/mixed.py [--albums 4000] [--rounds 5] [--requests 4000] [--warm-up 20000]

Fifty callers, each with a token and a connection, ask for albums, tracks, artists, playlists, comments and insights
with a Zipf distribution, and write with 2 % of their requests (mixed_world.py). Four of five behave like a browser:
they accept gzip and revalidate with the tag of the answer before. Limits (too high to refuse anybody), activity log and
metrics are on. In each round the yardstick gets the same requests and answers each with the status and the size that
the server's answer had. The ratio compares the CPU times of one round.
"""

import argparse
import asyncio
import http.client
import re
import statistics
import sys
import tempfile
from collections import Counter
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import uvloop

sys.path.insert(0, str(Path(__file__).parents[1]))
from collections.abc import Awaitable, Iterable

import mixed_world
from browsers import Browser, Lenient, converse
from load import cpu_seconds, cpu_since
from network_server import Server, percentile, running
from reads import LIMITS, bare, limits
from spread import spread

SIMPLE = 5  # every fifth caller is no browser
GOAL = 0.40


class Load:
    """The callers, the server and the yardstick, and what was measured so far."""

    def __init__(self, server: Server, yardstick: tuple[int, int]) -> None:
        self._server = server
        self._yardstick = yardstick
        self._accounts: list[mixed_world.Account] = server.filled.accounts
        self._browsers = [Browser(each.token, simple=at % SIMPLE == 0) for at, each in enumerate(self._accounts)]
        self.costs: dict[str, list[float]] = {"musicsvc": [], "bare": []}  # µs
        self.times: dict[str, list[float]] = {"musicsvc": [], "bare": []}  # seconds
        self.statuses: Counter[int] = Counter()
        self.size = 0

    async def round(self, number: int, requests: int) -> None:
        """Send the requests of one round to the server, then to the yardstick."""
        server, (pid, port) = self._server, self._yardstick
        wanted = [
            mixed_world.requests(server.filled, account, f"{number}.{at}", requests // len(self._accounts))
            for at, account in enumerate(self._accounts)
        ]
        asking = [
            browser.ask(server.port, some, self.times["musicsvc"])
            for browser, some in zip(self._browsers, wanted, strict=True)
        ]
        exchanged = requests // len(self._accounts) * len(self._accounts)
        self.costs["musicsvc"].append(await cost(server.process.pid, asking) / exchanged)
        replaying = [converse(port, Lenient(each.replay(port), self.times["bare"])) for each in self._browsers]
        self.costs["bare"].append(await cost(pid, replaying) / exchanged)
        for browser in self._browsers:
            self.statuses.update(each.status for each in browser.exchanges)
            self.size += sum(each.size for each in browser.exchanges)

    def forget(self) -> None:
        """Forget the measurements of the warm-up; the callers keep their tags."""
        for lists in (self.costs, self.times):
            for values in lists.values():
                values.clear()
        self.statuses.clear()
        self.size = 0


async def cost(pid: int, work: Iterable[Awaitable[None]]) -> float:
    """Run the work. Return the CPU time of the server during it, in µs."""
    before = cpu_seconds(pid)
    await asyncio.gather(*work)
    return cpu_since(before, pid) * 1e6


def read_metrics(port: int) -> dict[str, float]:
    """Return the values of the metrics without labels."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    return {name: float(value) for name, value in re.findall(r"^(\w+) ([\d.e+]+)$", text, re.MULTILINE)}


def anonymous_memory(pid: int) -> int:
    """Return the anonymous resident memory of a process in bytes (Linux)."""
    text = Path(f"/proc/{pid}/status").read_text("utf-8")
    return int(re.findall(r"RssAnon:\s+(\d+)", text)[0]) * 1024


async def measure(load: Load, server: Server, given: argparse.Namespace) -> float:
    """Warm up and run the rounds. Return the share of reads that the cache of answers had."""
    for number in range(-given.warm_up // given.requests + 1, 1):
        await load.round(number, given.requests)
    load.forget()
    before = read_metrics(server.port)
    for number in range(1, given.rounds + 1):
        await load.round(number, given.requests)
    after = read_metrics(server.port)
    hits, misses = (
        after[name] - before[name]
        for name in ("musicsvc_answer_cache_hits_total", "musicsvc_answer_cache_misses_total")
    )
    return hits / max(1, hits + misses)


def report(load: Load, cached: float, memory: int) -> None:
    """Print the table."""
    ratio = statistics.median(base / own for base, own in zip(load.costs["bare"], load.costs["musicsvc"], strict=True))
    print("| server | CPU per request, µs | p50, ms | p99, ms |\n|---|---|---|---|")
    for name, values in load.costs.items():
        middle, late = (percentile(load.times[name], each) * 1000 for each in (50, 99))
        print(f"| {name} | {spread(values)} | {middle:.1f} | {late:.1f} |")
    total = load.statuses.total()
    shares = ", ".join(f"{status}: {count / total:.0%}" for status, count in sorted(load.statuses.items()))
    print(f"ratio: {ratio:.3f} of bare (goal {GOAL})")
    print(f"{total} requests; {shares}; {load.size / total / 1000:.1f} kB of body on average")
    print(f"answers from the cache: {cached:.0%} of the reads; anonymous memory: {memory / 1e6:.0f} MB")


def main() -> None:
    """Run the servers, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--albums", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=4000, help="in a round")
    parser.add_argument("--warm-up", type=int, default=20_000, help="requests before the first round")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, ExitStack() as open_:
        folder = Path(name)
        fill = partial(mixed_world.fill, albums=given.albums)
        server = open_.enter_context(running(folder / "mixed", {}, tls=False, fill=fill, more=limits(LIMITS)))
        load = Load(server, open_.enter_context(bare([], folder)))
        cached = uvloop.run(measure(load, server, given))
        report(load, cached, anonymous_memory(server.process.pid))


if __name__ == "__main__":
    main()
