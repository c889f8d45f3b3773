"""Effect of clients without a token that request pictures on a token holder's PDFs, covers and avatars.

    python benchmarks/anonymous_pictures.py [--seconds 8] [--connections 80]

Runs the real program with the fixtures. Another process requests template thumbnails, avatars and signed previews over
CONNECTIONS connections, without a token and without a pause. A token holder requests a PDF, a new cover and an avatar
in turn, alone and beside them. Exit 1 if the token holder is refused anything.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import aiohttp

sys.path.insert(0, str(Path(__file__).parent))
from network_server import MEBIBYTE, Server, Watch, percentile, running

EXPORT = "/api/v1/producer-intelligence/insights/export/pdf"
PREVIEW = "/api/v1/cover-art/preview"
BUNDLE = "/docs/swagger-ui-bundle.js"
OK = 200
SIGNED = 12  # previews whose URLs the crowd knows
PATIENCE = aiohttp.ClientTimeout(total=30)
Times = dict[str, list[float]]


def main() -> None:
    """Measure; with a port and a number of connections, act as the crowd."""
    if len(sys.argv) > 1 and sys.argv[1].isdigit():
        asyncio.run(crowd(int(sys.argv[1]), int(sys.argv[2])))
        return
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seconds", type=float, default=8.0)
    options.add_argument("--connections", type=int, default=80)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder, running(Path(folder) / "world", {}, tls=False) as server:
        sys.exit(asyncio.run(measure(server, given.seconds, given.connections)))


async def measure(server: Server, seconds: float, connections: int) -> int:
    """Print the token holder's answers, alone and beside the crowd; return whether it was refused anything there."""
    headers = {"Authorization": f"Bearer {server.token}"}
    root = f"http://127.0.0.1:{server.port}"
    async with aiohttp.ClientSession(root, headers=headers, timeout=PATIENCE) as session:
        addresses = [await preview(session, f"Signed {number}") for number in range(SIGNED)]
        await ask(session, 2.0, "warm")
        alone, _ = await ask(session, seconds, "alone")
        line = [sys.executable, __file__, str(server.port), str(connections)]
        crowding = subprocess.Popen(  # noqa: ASYNC220, S603 - ours, and nothing else runs here yet
            line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert crowding.stdin is not None
        crowding.stdin.write(json.dumps(addresses) + "\n")
        crowding.stdin.flush()
        await asyncio.sleep(1)
        before = server.memory
        with Watch(server) as watch:
            beside, refused = await ask(session, seconds, "beside")
        answered = json.loads(crowding.communicate("")[0])
        print(f"the crowd: {connections} connections, {answered}")
        print(f"memory: {(watch.most - before) / MEBIBYTE:.0f} MiB more")
        for kind, times in beside.items():
            print(f"{kind}: alone {text(alone[kind])}; beside {text(times)}, {dict(refused[kind]) or 'none'} refused")
        print(f"{BUNDLE} in gzip, alone: {await bundle(session):.1f} ms of the server's CPU a request")
    return 1 if any(refused.values()) else 0


async def ask(session: aiohttp.ClientSession, seconds: float, title: str) -> tuple[Times, dict[str, Counter[int]]]:
    """Return the times of the answers with 200, and the other statuses, by kind."""
    times: Times = {"PDF": [], "cover": [], "avatar": []}
    refused: dict[str, Counter[int]] = {kind: Counter() for kind in times}
    ends, number = time.monotonic() + seconds, 0
    while time.monotonic() < ends:
        number += 1
        for kind, found in times.items():
            began = time.perf_counter()
            status = await request(session, kind, f"{title} {number}")
            if status == OK:
                found.append(time.perf_counter() - began)
            else:
                refused[kind][status] += 1
    return times, refused


async def request(session: aiohttp.ClientSession, kind: str, title: str) -> int:
    """Return the status of a PDF, of a new cover, or of an avatar."""
    if kind == "PDF":
        async with session.post(EXPORT, json={}) as answer:
            await answer.read()
            return answer.status
    path = "/avatars/1" if kind == "avatar" else await preview(session, title)
    async with session.get(path) as answer:
        await answer.read()
        return answer.status


async def preview(session: aiohttp.ClientSession, title: str) -> str:
    """The path of a new cover."""
    async with session.post(PREVIEW, json={"template_id": 2, "title": title, "artist": "Anna Bon"}) as answer:
        url: str = (await answer.json())["preview_url"]
    return url[url.index("/cover-art") :]


async def bundle(session: aiohttp.ClientSession, requests: int = 30) -> float:
    """Return the milliseconds of CPU that the server takes for the largest file of /docs."""
    began = await cpu(session)
    for _ in range(requests):
        async with session.get(BUNDLE, headers={"Accept-Encoding": "gzip"}) as answer:
            await answer.read()
    return (await cpu(session) - began) / requests * 1000


async def cpu(session: aiohttp.ClientSession) -> float:
    """Return the CPU seconds of the server so far."""
    async with session.get("/metrics") as answer:
        lines = (await answer.text()).splitlines()
    return next(float(line.split()[-1]) for line in lines if line.startswith("process_cpu_seconds_total"))


async def crowd(port: int, connections: int) -> None:
    """Send requests over `connections` connections until standard input ends; print the number of answers by status."""
    previews = json.loads(sys.stdin.readline())
    paths = [f"/cover-art/templates/{number}.png" for number in range(1, 9)]
    paths += [f"/avatars/{number}" for number in range(1, 13)] + previews
    statuses: Counter[int] = Counter()
    ended = asyncio.get_running_loop().run_in_executor(None, os.read, 0, 1)
    connector = aiohttp.TCPConnector(limit=connections)
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}", connector=connector, timeout=PATIENCE) as session:

        async def one(number: int) -> None:
            while True:
                async with session.get(paths[number % len(paths)]) as answer:
                    await answer.read()
                statuses[answer.status] += 1
                number += 1

        asking = [asyncio.create_task(one(number)) for number in range(connections)]
        await ended
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
    print(json.dumps(dict(statuses)))


def text(times: list[float]) -> str:
    """Return the times as text."""
    if not times:
        return "no answer"
    return f"p50 {percentile(times, 50) * 1000:.0f} ms, p99 {percentile(times, 99) * 1000:.0f} ms ({len(times)})"


if __name__ == "__main__":
    main()
