"""Anonymous memory of each process of a server: at rest, under the mixed load, with a full cache of answers, reloaded.

    python benchmarks/memory.py [--albums 4000] [--requests 8000] [--workers 1]

Pages of mapped files do not count, and are shown separately. The load is that of mixed.py. To fill the cache of answers
(`server.answer_cache`, 64 MiB), callers read different pages of 100 albums until it holds no more.
"""

import argparse
import asyncio
import re
import signal
import sys
import tempfile
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import uvloop

sys.path.insert(0, str(Path(__file__).parents[1]))
import mixed_world
from load import processes, raw, send
from mixed import Load, read_metrics
from network_server import Server, running
from reads import LIMITS, bare, limits

REST, LOADED = 120, 256  # goals, MB
FULL = 60 << 20  # bytes in the cache of each worker
FILLERS = 4  # pages read at once
SETTLING_SECONDS = 2.0
RELOADS = 2
OLD_SECONDS = 22.0  # idle connections of the old server end


def show(when: str, server: Server, goal: int) -> None:
    """Print the memory of the processes of the server."""
    kinds: dict[str, list[str]] = {"RssAnon": [], "RssFile": []}
    for pid in processes(server.process.pid):
        text = Path(f"/proc/{pid}/status").read_text("utf-8")
        kilobytes = dict(re.findall(r"^(\w+):\s+(\d+) kB", text, re.MULTILINE))
        for kind, found in kinds.items():
            found.append(f"{int(kilobytes[kind]) / 1024:.0f}")
    cached = read_metrics(server.port)["musicsvc_answer_cache_bytes"] / (1 << 20)
    print(
        f"| {when} | {', '.join(kinds['RssAnon'])} | {goal} | {', '.join(kinds['RssFile'])} | {cached:.0f} |",
        flush=True,
    )


async def fill_cache(server: Server, workers: int, albums: int) -> None:
    """Read pages of albums, each several times, until the caches of all workers are full."""
    for turn in range(40):
        pages = [f"/api/v1/albums?perPage=100&page={page}&turn={turn}" for page in range(1, albums // 100 + 1)]
        requests = [raw(path, server.port, token=server.token) for path in pages for _ in range(3)]
        await send(server.port, requests, FILLERS)
        await asyncio.sleep(1.1)  # metrics are read every second
        if read_metrics(server.port)["musicsvc_answer_cache_bytes"] >= workers * FULL:
            return


def main() -> None:
    """Run the server, load it, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--albums", type=int, default=4000)
    parser.add_argument("--requests", type=int, default=8000)
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, ExitStack() as open_:
        folder = Path(name)
        fill = partial(mixed_world.fill, albums=given.albums)
        settings = {"workers": given.workers}
        server = open_.enter_context(running(folder / "memory", settings, tls=False, fill=fill, more=limits(LIMITS)))
        time.sleep(SETTLING_SECONDS)
        print("| | anonymous, MiB a process | goal | mapped files, MiB | cached answers, MiB |\n|---|---|---|---|---|")
        show("after one request of each kind", server, REST)
        load = Load(server, open_.enter_context(bare([], folder)))
        uvloop.run(load.round(1, given.requests))
        show(f"after {given.requests} requests of the mixed load", server, LOADED)
        uvloop.run(fill_cache(server, given.workers, given.albums))
        show("with a full cache of answers", server, LOADED)
        uvloop.run(load.round(2, given.requests))
        show("after the mixed load again", server, LOADED)
        for count in range(1, RELOADS + 1):
            server.process.send_signal(signal.SIGHUP)
            time.sleep(OLD_SECONDS)
            show(f"after {count} SIGHUP", server, LOADED)
            uvloop.run(fill_cache(server, given.workers, given.albums))
            show("with a full cache of answers", server, LOADED)


if __name__ == "__main__":
    main()
