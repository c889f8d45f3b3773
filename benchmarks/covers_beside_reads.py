"""Effect of 20 cover-art previews at once on `GET /albums`: p99 beside drawing, compared with p99 alone.

Run: python benchmarks/covers_beside_reads.py
"""

import asyncio
import re
import statistics
import subprocess
import sys
import time

import aiohttp

ROUNDS = 5
REQUESTS = 400
COVERS = 20


async def reads(session: aiohttp.ClientSession, root: str) -> list[float]:
    """The milliseconds of each read."""
    times = []
    for _ in range(REQUESTS):
        began = time.perf_counter()
        async with session.get(f"{root}/api/v1/albums") as answer:
            await answer.read()
        times.append((time.perf_counter() - began) * 1000)
    return times


async def covers(session: aiohttp.ClientSession, root: str, number: int) -> None:
    """Draw new previews until cancelled."""

    async def one(each: int) -> None:
        body = {"template_id": each % 8 + 1, "title": f"Round {number} {each}", "artist": "Anna Bon 夜"}
        async with session.post(f"{root}/api/v1/cover-art/preview", json=body) as answer:
            url = (await answer.json())["preview_url"]
        async with session.get(url) as picture:
            picture.raise_for_status()
            await picture.read()

    while True:
        await asyncio.gather(*(one(each) for each in range(COVERS)))
        number += 1000


def p99(times: list[float]) -> float:
    """The 99th percentile."""
    return statistics.quantiles(times, n=100)[98]


async def measure(root: str, token: str) -> None:
    """Measure alone and beside drawing, in turn."""
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"}) as session:
        await reads(session, root)
        ratios = []
        for number in range(ROUNDS):
            alone = p99(await reads(session, root))
            drawing = asyncio.create_task(covers(session, root, number))
            beside = p99(await reads(session, root))
            drawing.cancel()
            ratios.append(beside / alone)
            print(f"p99 alone {alone:.1f} ms, beside {COVERS} covers {beside:.1f} ms, ratio {beside / alone:.2f}")
            await asyncio.sleep(3)
        print(f"median ratio {statistics.median(ratios):.2f}")


def main() -> None:
    """Start the demo, measure, stop it."""
    line = [sys.executable, "-m", "musicsvc", "serve", "--demo", "--port", "0"]
    with subprocess.Popen(  # noqa: S603 - our own program
        line, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        assert server.stdout is not None
        curl = server.stdout.readline()
        token, root = re.findall(r'Bearer (\S+)" (\S+)/api/v1', curl)[0]
        try:
            asyncio.run(measure(root, token))
        finally:
            server.terminate()


if __name__ == "__main__":
    main()
