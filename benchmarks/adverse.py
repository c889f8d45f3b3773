"""Effect of small requests and files that were costly once: /healthz, memory, the pages of another account, the stop.

    python benchmarks/adverse.py [--only 'quotes|parquet'] [--seconds 5] [--tracks 40000] [--late 0.1]

For each attack a server starts, and another process sends nothing else: bodies without an account, heads of forms and
headers, and files that an account uploads, each as soon as the one before is answered. /healthz is requested meanwhile,
50 ms after its last response. *figures*: an account with TRACKS tracks requests its duplicates and its figures over 24
connections while another one opens 23 pages. Exit 1 if a guarantee is broken: the p99 of /healthz is at most 100 ms,
memory grows by at most 300 MiB, at least 20 pages are there, SIGTERM ends the server within its time to shut down and
five seconds. `--against` measures that checkout.
"""

import asyncio
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import harness
from clients import Crowd, Stage, percentile, percentiles, raw, receive
from harness import MEBIBYTE, Server, Watch
from uploads import BOUNDARY, Browser

MOST_MEMORY = 300  # MiB
PATIENCE = 30.0  # seconds; a response that takes longer counts as this
STOPPING = 15.0  # seconds: server.shutdown_timeout and 5
PAUSE_SECONDS = 0.05
PAGES, SHOWN = 23, 20
GREEDY = 24  # connections
LOGIN, REGISTER, IMPORT = "/api/v1/auth/login", "/api/v1/auth/register", "/import"


def quotes(count: int) -> bytes:
    """Return a body with an opening quote that has no end, and escaped quotes and commas behind it."""
    return b'{"email":' + b'\\"' * count + b"," * (count + 1)


def form(port: int, browser: Browser, boundary: str = "", part: str = 'name="p"') -> bytes:
    """Return an upload of 20 parts with these parameters."""
    parts = f"--{BOUNDARY}\r\nContent-Disposition: form-data; {part}\r\n\r\nx\r\n" * 20
    kind = f"multipart/form-data; boundary={boundary or BOUNDARY}"
    request = raw(IMPORT, port, method="POST", body=f"{parts}--{BOUNDARY}--\r\n".encode(), more=browser.lines())
    return request.replace(b"application/json", kind.encode(), 1)


REQUESTS: dict[str, Callable[[int, Browser], bytes]] = {
    "quotes of 60 kB, to sign in": lambda port, _: raw(LOGIN, port, method="POST", body=quotes(20_000)),
    "quotes of 60 kB, to register": lambda port, _: raw(REGISTER, port, method="POST", body=quotes(20_000)),
    "quotes of 1 MiB": lambda port, _: raw(LOGIN, port, method="POST", body=quotes(349_000)),
    "spaces in heads of parts": lambda port, browser: form(port, browser, part='name="p";' + " " * 7_900),
    "spaces in a boundary": lambda port, browser: form(port, browser, boundary="a" + " " * 7_900 + '"x'),
}


def parquet(file: Path) -> None:
    """Write a thousand equal cells of 2 MiB, which are few bytes."""
    select = "SELECT repeat('x', 2 * 1024 * 1024) AS track, 'Ann' AS artist FROM range(1000)"
    duckdb.sql(f"COPY ({select}) TO '{file}' (FORMAT parquet, COMPRESSION zstd)")


def zeros(file: Path) -> None:
    """Write an archive that tells its kind in 1.5 GB of zeros."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("mimetype", "w") as member:
        for _ in range(1_500):
            member.write(bytes(MEBIBYTE))


def members(file: Path) -> None:
    """Write an archive with 300,000 members."""
    with zipfile.ZipFile(file, "w") as archive:
        for number in range(300_000):
            archive.writestr(f"{number}.json", b"")


def text(content: str) -> Callable[[Path], None]:
    """Return a function that writes this."""

    def write(file: Path) -> None:
        file.write_text(content, "utf-8")

    return write


FILES: dict[str, Callable[[Path], None]] = {
    "brackets in a heading.csv": text("(" * 40_000 + ",track,artist\n1,A,B\n"),
    "accents in a heading.csv": text("a" + "\u0301\u0316" * 12_000 + ",track,artist\n1,A,B\n"),
    "many headings.csv": text(",".join(f"c{number}" for number in range(150_000)) + "\n1\n"),
    "equal cells.parquet": parquet,
    "zeros.ods": zeros,
    "members.zip": members,
}


async def send(stage: Stage, port: int, request: bytes) -> dict[str, int]:
    """Send the request over two connections until the end. Return how often there was which status."""
    statuses: Counter[str] = Counter()

    async def one() -> None:
        while True:
            with suppress(OSError, EOFError):  # it may be closed once the response is sent
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(request)
                statuses[(await reader.readline()).split(b" ")[1].decode()] += 1
                writer.close()

    stage.ready()
    await stage.run(one(), one())
    return dict(statuses)


async def upload(stage: Stage, port: int, session: str, name: str, content: bytes) -> dict[str, int]:
    """Upload the file until the end, each time as soon as it is read. Return how often."""
    browser, uploaded = Browser(port, session), Counter[str]()

    def one() -> None:
        path = browser.put(name, content)
        while "hx-get" in browser.send("GET", path)[0]:
            time.sleep(PAUSE_SECONDS)
        browser.act(f"{path}/discard")

    async def again() -> None:
        while True:
            await asyncio.to_thread(one)
            uploaded["read"] += 1

    stage.ready()
    failed = await stage.run(again())
    return dict(uploaded) | dict.fromkeys((each[:80] for each in failed), 1)


async def open_figures(stage: Stage, port: int, session: str) -> dict[int, int]:
    """Request duplicates and figures until the end. Return how often there was which status."""
    statuses: Counter[int] = Counter()
    paths = ("/insights/duplicates?kind=track", "/insights?period=1-year", "/insights?period=all", "/insights")

    async def one(number: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while True:
            writer.write(raw(paths[number % len(paths)], port, more=Browser(port, session).lines()))
            statuses[await receive(reader)] += 1
            number += 1

    stage.ready()
    await stage.run(*map(one, range(GREEDY)))
    return dict(statuses)


async def health(server: Server, seconds: float) -> list[float]:
    """Return the seconds of responses of /healthz, each over a connection of its own."""
    ends, times = time.perf_counter() + seconds, list[float]()
    while not times or time.perf_counter() < ends:
        began = time.perf_counter()
        with suppress(TimeoutError, OSError, EOFError):
            async with asyncio.timeout(PATIENCE):
                reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
                writer.write(raw("/healthz", server.port, more=["Connection: close"]))
                await receive(reader)
                writer.close()
        times.append(time.perf_counter() - began)
        await asyncio.sleep(PAUSE_SECONDS)
    return times


async def visit(server: Server, session: str) -> int:
    """Open pages of figures one after the other. Return how many are shown."""
    statuses = []
    for _ in range(PAGES):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        lines = [*Browser(server.port, session).lines(), "Connection: close"]
        writer.write(raw("/insights?period=90-days", server.port, more=lines))
        statuses.append(await receive(reader))
        writer.close()
    return statuses.count(200)


def stop(server: Server) -> float:
    """Send SIGTERM. Return the seconds until the server has ended, after which it is killed."""
    began = time.perf_counter()
    server.process.send_signal(signal.SIGTERM)
    try:
        server.process.wait(STOPPING + PATIENCE)
    except subprocess.TimeoutExpired:
        server.process.kill()
    return time.perf_counter() - began


def measure(name: str, server: Server, crowd: tuple[Any, ...], seconds: float, late: float) -> list[str]:
    """Print the effect of an attack. Return the broken guarantees."""
    honest = server.filled["small"]
    with Watch(server) as watch, Crowd(*crowd) as attackers:
        times = asyncio.run(health(server, seconds))
        shown = asyncio.run(visit(server, honest)) if name == "figures" else PAGES
        stopped = stop(server)
        done = attackers.result()
    print(f"{name}: /healthz {percentiles(times)}; {watch.more:.0f} MiB more; stopped in {stopped:.1f} s; {done}")
    if name == "figures":
        print(f"  pages of the other account: {shown} of {PAGES}", flush=True)
    found = {
        "/healthz": percentile(times, 99) > late,
        "memory": watch.more > MOST_MEMORY,
        "pages": shown < SHOWN,
        "stop": stopped > STOPPING,
    }
    return [f"{what} beside {name}" for what, broken in found.items() if broken]


def main() -> int:
    """Measure each attack. Return the exit code."""
    given = harness.parser(__doc__, seconds=5.0, tracks=40_000, late=0.1).parse_args()
    broken = []
    with harness.place(given) as folder:
        checkout = harness.checkouts(given)[-1]
        base = harness.database(checkout, folder, "rivals", given.tracks)
        for name in (each for each in (*REQUESTS, *FILES, "figures") if re.search(given.only, each)):
            with (
                tempfile.TemporaryDirectory(dir=folder) as fresh,
                harness.running(checkout, replace(base, url=f"sqlite:///{shutil.copy(base.file, fresh)}")) as server,
            ):
                session = base.filled["large"]
                crowd: tuple[Any, ...] = (open_figures, server.port, session)
                if name in REQUESTS:
                    crowd = (send, server.port, REQUESTS[name](server.port, Browser(server.port, session)))
                if name in FILES:
                    FILES[name](file := folder / name)
                    crowd = (upload, server.port, session, name, file.read_bytes())
                broken += measure(name, server, crowd, given.seconds, given.late)
    return harness.say(broken)


if __name__ == "__main__":
    sys.exit(main())
