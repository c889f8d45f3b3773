"""Effect of strangers and of fresh accounts on people: pictures, shared reports, invented plays, links and sessions.

    python benchmarks/strangers.py [--only pictures|reports|plays|links|sessions] [--connections 64] [--seconds 8]
        [--links 1] [--without-limits] [--people 24] [--sessions 100000]

*pictures*: strangers request thumbnails, avatars and signed previews, a token holder a PDF, a new cover and an avatar.
*reports*: strangers open shared reports of 100 years, `--links` in turn, a token holder reads tracks 20 times a second;
*plays*: fresh accounts report plays of one track, one within ten seconds, the other one in each half minute, which are
then withdrawn. *links*: strangers send passwords to unknown links, PEOPLE sign in from addresses of their own.
*sessions*: an account with SESSIONS sessions opens its settings 8 times at once; another signs in for some seconds. The
strangers of another process use CONNECTIONS connections without a pause. Exit 1 if a guarantee is broken.
"""

import argparse
import asyncio
import re
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import harness
from clients import Crowd, Stage, percentile, percentiles, raw, receive
from harness import Checkout, Server, Watch

from musicsvc.clock import DAY, SECOND, Clock
from tests.support.page_client import page_client

EXPORT = "/api/v1/producer-intelligence/insights/export/pdf"
PREVIEW = "/api/v1/cover-art/preview"
OK, SEE_OTHER = 200, 303
SIGNED = 12  # previews whose URLs the strangers know
PER_SECOND = 20
MOST = 3  # times the idle median
BATCH = 1_000  # plays
ALLOWED = 2  # plays within ten seconds: they may fall into two half minutes
DAILY = 600  # own plays by day played
UNKNOWN = "/password/" + "x" * 43
SIGNING_IN = 8  # connections; fewer than ten, which an account has for wrong passwords
READERS = 8
PATIENCE = aiohttp.ClientTimeout(total=60)


def main() -> int:
    """Measure each kind. Return the exit code."""
    parser = harness.parser(__doc__, connections=64, seconds=8.0, links=1, sessions=100_000, plays=10_000, people=24)
    parser.add_argument("--without-limits", action="store_true")
    given = parser.parse_args()
    broken = []
    with harness.place(given) as folder:
        checkout = harness.checkouts(given)[-1]
        for name, measure in KINDS.items():
            if any(re.search(given.only, each) for each in name.split("|")):
                broken += measure(checkout, folder, given)
    return harness.say(broken)


async def get_all(stage: Stage, port: int, paths: list[str], connections: int) -> tuple[dict[int, int], list[str]]:
    """Request the paths in turn over all connections until the end. Return how often there was which status."""
    statuses: Counter[int] = Counter()
    requests = [raw(path, port, more=["Accept: text/html,*/*", "Accept-Encoding: gzip"]) for path in paths]

    async def one(number: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while True:
            writer.write(requests[number % len(requests)])
            statuses[await receive(reader)] += 1
            number += 1

    stage.ready()
    failed = await stage.run(*(one(number) for number in range(connections)))
    return dict(statuses), failed[:1]


def pictures(checkout: Checkout, folder: Path, given: argparse.Namespace) -> list[str]:
    """Print the token holder's responses, alone and beside the strangers. Return the broken guarantees."""
    with harness.running(checkout, harness.database(checkout, folder, "small")) as server:
        paths = [f"/cover-art/templates/{number}.png" for number in range(1, 9)]
        paths += [f"/avatars/{number}" for number in range(1, 13)]
        paths += [preview(server, f"Signed {number}") for number in range(SIGNED)]
        draw(server, min(2.0, given.seconds), "warm")
        alone, _ = draw(server, given.seconds, "alone")
        with Watch(server) as watch, Crowd(get_all, server.port, paths, given.connections) as crowd:
            beside, refused = draw(server, given.seconds, "beside")
            answered, failed = crowd.result()
    print(f"pictures: {given.connections} connections, {answered} {failed or ''}; memory: {watch.more:.0f} MiB more")
    for kind, times in beside.items():
        print(f"  {kind}: alone {percentiles(alone[kind])}; beside {percentiles(times)}, {len(refused)} refused")
    return [f"the token holder was refused: {refused[0]}"] if refused else []


def draw(server: Server, seconds: float, title: str) -> tuple[dict[str, list[float]], list[str]]:
    """Request a PDF, a new cover and an avatar in turn. Return the seconds of each, and what was refused."""
    times: dict[str, list[float]] = {"PDF": [], "cover": [], "avatar": []}
    refused: list[str] = []
    ends, number = time.monotonic() + seconds, 0
    while time.monotonic() < ends or not number:
        number += 1
        for kind, found in times.items():
            began = time.perf_counter()
            try:
                if kind == "PDF":
                    server.body("POST", EXPORT, {})
                else:
                    server.body("GET", preview(server, f"{title} {number}") if kind == "cover" else "/avatars/1")
            except AssertionError as error:
                refused.append(str(error))
            found.append(time.perf_counter() - began)
    return times, refused


def preview(server: Server, title: str) -> str:
    """Return the path of a new cover."""
    url = server.ask("POST", PREVIEW, {"template_id": 2, "title": title, "artist": "Anna Bon"})["preview_url"]
    return str(url[url.index("/cover-art") :])


def reports(checkout: Checkout, folder: Path, given: argparse.Namespace) -> list[str]:
    """Print the times of API reads, alone and beside the strangers. Return the broken guarantees."""
    on = {"limits.local": "true", "limits.token": "999999999/minute"}
    base = harness.database(checkout, folder, "links", given.links)
    with harness.running(checkout, base, harness.OFF if given.without_limits else on) as server:
        asyncio.run(reads(server, 1, "warm"))
        alone = asyncio.run(reads(server, given.seconds, "alone"))
        before = server.cpu()
        with Crowd(get_all, server.port, server.filled, given.connections) as crowd:
            time.sleep(min(2.0, given.seconds))
            beside = asyncio.run(reads(server, given.seconds, "beside"))
            answered, failed = crowd.result()
        spent = (server.cpu() - before) / max(1, sum(answered.values())) * 1000
    print(f"reports: {given.connections} connections, {answered} {failed or ''}, {spent:.2f} ms of CPU for each")
    print(f"  API alone {percentiles(alone)}; beside {percentiles(beside)}")
    return ["API median"] if percentile(beside, 50) > MOST * percentile(alone, 50) else []


async def reads(server: Server, seconds: float, name: str) -> list[float]:
    """Send reads at a fixed rate, each after the response to the one before. Return the seconds of each."""
    times: list[float] = []
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        began = time.perf_counter()
        path = f"/api/v1/tracks?perPage=5&uncached={name}{len(times)}"
        writer.write(raw(path, server.port, token=server.token))
        assert await receive(reader) == OK
        times.append(time.perf_counter() - began)
        await asyncio.sleep(1 / PER_SECOND)
    writer.close()
    return times


def invented(checkout: Checkout, folder: Path, given: argparse.Namespace) -> list[str]:
    """Let fresh accounts invent plays, and withdraw those of the second one. Return the broken guarantees."""
    base = harness.database(checkout, folder, "cheats")
    now, accepted, count = Clock().now() // SECOND - 1, [], int(given.plays)
    with harness.running(checkout, base) as server:
        artist, track, values = server.filled
        plays = [period(server, artist)]
        ways = {"within 10 seconds": 10 / count, "one in each half minute": 30.0}
        for (way, apart), token in zip(ways.items(), values, strict=True):
            began = time.perf_counter()
            accepted.append(report(server, token, track, [now - at * apart for at in range(count)]))
            took = time.perf_counter() - began
            plays.append(period(server, artist))
            print(f"plays {way}: {accepted[-1]:,} of {count:,} accepted in {took:.1f} s;", end=" ")
            print(f"those of the artist in 30 days: {plays[-2]:,} → {plays[-1]:,}")
        variables = {"MUSICSVC_DATA_DIR": str(folder), "MUSICSVC_DATABASE_URL": base.url}
        began = time.perf_counter()
        checkout.run("plays", "withdraw", "spread@mix.test", "--yes", variables=variables)
        plays.append(period(server, artist))
        print(f"  withdrawn in {time.perf_counter() - began:.1f} s; those of the artist in 30 days: {plays[-1]:,}")
    broken = ["too many plays within 10 seconds"] if accepted[0] > ALLOWED else []
    if accepted[1] > DAILY * (count * 30 * SECOND // DAY + 2):
        broken.append("too many plays of a day")
    return broken + ["withdrawn plays still count"] * (plays[-1] != plays[1])


def report(server: Server, token: str, track: int, times: list[float]) -> int:
    """Report plays at these times. Return the number of accepted ones."""
    accepted = 0
    for start in range(0, len(times), BATCH):
        plays = [
            {"track_id": track, "played_at": at, "client_id": f"{start}.{index}"}
            for index, at in enumerate(times[start : start + BATCH])
        ]
        accepted += server.ask("POST", "/api/v1/plays", {"plays": plays}, token)["accepted"]
    return accepted


def period(server: Server, artist: int) -> int:
    """Return the plays of the artist in 30 days."""
    found = server.ask("GET", f"/api/v1/producer-intelligence/insights/artists/{artist}")
    return int(found["data"]["plays"]["period"])


def sign_ins(checkout: Checkout, folder: Path, given: argparse.Namespace) -> list[str]:
    """Measure unknown links and many sessions. Return the broken guarantees."""
    base = harness.database(checkout, folder, "people", given.people, given.sessions)
    broken = []
    with harness.running(checkout, base, {"limits.local": "true"}) as server:
        if re.search(given.only, "links"):
            broken += asyncio.run(beside_links(server, given.connections, min(2.0, given.seconds), given.people))
        if re.search(given.only, "sessions"):
            asyncio.run(open_settings(server, given.sessions))
            asyncio.run(many_sign_ins(server, given.seconds))
    return broken


async def send_links(stage: Stage, port: int, connections: int) -> dict[int, int]:
    """Send passwords to unknown links until the end. Return how often there was which status."""
    async with page_client(f"http://127.0.0.1:{port}") as stranger:
        stranger.move(2)
        fields = {"new_password": "four romances", "form_token": await stranger.form_token()}
        found: Counter[int] = Counter()
        stage.ready()
        await stage.run(*(repeat(lambda: stranger.post(UNKNOWN, fields), found) for _ in range(connections)))
    return dict(found)


async def repeat(send: Callable[[], Awaitable[Any]], found: Counter[int]) -> None:
    """Send requests without a pause, and count their statuses."""
    while True:
        found[(await send()).status] += 1


async def beside_links(server: Server, connections: int, wait: float, people: int) -> list[str]:
    """Print how many people are signed in while strangers send unknown links. Return the broken guarantees."""
    statuses: list[int] = []
    with Crowd(send_links, server.port, connections) as crowd:
        await asyncio.sleep(wait)
        began = time.perf_counter()
        for number in range(people):
            async with page_client(f"http://127.0.0.1:{server.port}") as person:
                person.move(100 + number)
                statuses.append((await person.sign_in(f"person{number}@crowd.test")).status)
        seconds = time.perf_counter() - began
        sent = crowd.result()
    signed_in = statuses.count(SEE_OTHER)
    print(f"links: {signed_in} of {people} people are signed in, in {seconds:.1f} s: {dict(Counter(statuses))}")
    print(f"  the links over {connections} connections: {sent}")
    return [] if signed_in >= people - 1 else ["people could not sign in"]


async def many_sign_ins(server: Server, seconds: float) -> None:
    """Print how often one account is signed in from one address."""
    ends, statuses = time.perf_counter() + seconds, Counter[int]()

    async def one() -> None:
        async with page_client(f"http://127.0.0.1:{server.port}") as person:
            person.move(3)
            while time.perf_counter() < ends:
                person.cookies.clear()
                statuses[(await person.sign_in("person0@crowd.test")).status] += 1

    await asyncio.gather(*(one() for _ in range(SIGNING_IN)))
    print(f"sign-ins of one account in {seconds:.0f} s: {statuses[SEE_OTHER]} of {statuses.total()} ({dict(statuses)})")


async def open_settings(server: Server, count: int) -> None:
    """Print how the server's memory grows with 8 requests for the settings of an account with many sessions."""
    began = time.perf_counter()
    headers = {"Cookie": f"musicsvc={server.filled}"}
    async with aiohttp.ClientSession(f"http://127.0.0.1:{server.port}", headers=headers, timeout=PATIENCE) as http:
        with Watch(server) as watch:
            answers = await asyncio.gather(*(http.get("/settings") for _ in range(READERS)))
            sizes = [len(await answer.read()) // 1000 for answer in answers]
    print(f"{READERS} requests for /settings with {count:,} sessions: {max(sizes)} kB each,", end=" ")
    statuses = dict(Counter(answer.status for answer in answers))
    print(f"{time.perf_counter() - began:.1f} s, {statuses}; memory: {watch.more:.0f} MiB more")


KINDS = {"pictures": pictures, "reports": reports, "plays": invented, "links|sessions": sign_ins}

if __name__ == "__main__":
    sys.exit(main())
