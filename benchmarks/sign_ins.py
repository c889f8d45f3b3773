"""Effect of strangers and of plain accounts on signing in: unknown links, and sessions without number.

    python benchmarks/sign_ins.py [--only links|sessions] [--connections 64] [--seconds 10] [--sessions 100000]

Runs the real program with limits for this machine. `links`: another process sends new passwords to unknown links over
CONNECTIONS connections from one address, while 24 people sign in from addresses of their own. `sessions`: one account
signs in for SECONDS from one address, over 8 connections; then 8 of its requests for `/settings` arrive at
once while it has SESSIONS sessions. Exit 1 if fewer than 23 of 24 people are signed in.
"""

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import AsyncExitStack
from itertools import chain
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from network_server import MEBIBYTE, Server, Watch, running

sys.path.insert(0, str(Path(__file__).parents[1]))
from collections.abc import Awaitable, Callable

from musicsvc.clock import Clock
from musicsvc.store import opening
from musicsvc.store.accounts import users
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Session
from musicsvc.store.security import sessions
from tests.support.page_client import PageClient, page_client, password_hash

PEOPLE = 24
GOAL = 23
LIMITED = {"MUSICSVC_LIMITS__LOCAL": "true"}
UNKNOWN = "/password/" + "x" * 43
SEE_OTHER = 303
SIGNING_IN = 8  # connections; fewer than ten, which an account has for wrong passwords
READERS = 8
AT_ONCE = 5_000  # rows of one statement


def main() -> None:
    """Measure; with a port and a number of connections, send unknown links."""
    if len(sys.argv) > 1 and sys.argv[1].isdigit():
        asyncio.run(send_links(f"http://127.0.0.1:{sys.argv[1]}", int(sys.argv[2])))
        return
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", choices=["links", "sessions"])
    options.add_argument("--connections", type=int, default=64)
    options.add_argument("--seconds", type=float, default=10.0)
    options.add_argument("--sessions", type=int, default=100_000)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        world = Path(folder) / "world"
        with running(world, {}, tls=False, fill=fill, more=LIMITED) as server:
            signed_in = asyncio.run(beside_links(server, given.connections)) if given.only != "sessions" else PEOPLE
            if given.only != "links":
                asyncio.run(many_sign_ins(server, given.seconds))
                asyncio.run(many_sessions(server, f"sqlite:///{world / 'musicsvc.db'}", given.sessions))
    sys.exit(signed_in < GOAL)


def fill(store: Store) -> None:
    """Create the accounts of the people."""
    for number in range(PEOPLE):
        unit = lambda name=f"person{number}@crowd.test": users.create(name, password_hash=password_hash(), now=1)  # noqa: E731 - short
        store.write(unit).result()


async def beside_links(server: Server, connections: int) -> int:
    """Print and return how many people are signed in while another process sends unknown links."""
    root = f"http://127.0.0.1:{server.port}"
    line = [sys.executable, __file__, str(server.port), str(connections)]
    pipe = subprocess.PIPE
    attacking = subprocess.Popen(line, stdin=pipe, stdout=pipe, text=True)  # noqa: ASYNC220, S603 - ours, and nothing else runs
    try:
        await asyncio.sleep(2)  # until it has its connections
        statuses, began = [], time.perf_counter()
        for number in range(PEOPLE):
            async with page_client(root) as person:
                person.move(100 + number)
                statuses.append((await person.sign_in(f"person{number}@crowd.test")).status)
        seconds = time.perf_counter() - began
    finally:
        sent = attacking.communicate("")[0].strip()
    signed_in = statuses.count(SEE_OTHER)
    print(f"unknown links over {connections} connections: {signed_in} of {PEOPLE} people are signed in (goal {GOAL})")
    print(f"  one after the other in {seconds:.1f} s: {dict(Counter(statuses))}; the links: {sent}")
    return signed_in


async def send_links(root: str, connections: int) -> None:
    """Send new passwords to unknown links until standard input ends; print how often there was which status."""
    ended = asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    async with page_client(root) as stranger:
        stranger.move(2)
        fields = {"new_password": "four romances", "form_token": await stranger.form_token()}
        found = await repeat(lambda _: stranger.post(UNKNOWN, fields), connections, ended.done)
    print(dict(found))


async def repeat(
    send: Callable[[int], Awaitable[object]], connections: int, is_over: Callable[[], bool]
) -> Counter[int]:
    """Send requests over some connections, each without a pause; return how often there was which status."""

    async def one(number: int) -> list[int]:
        statuses = []
        while not is_over():
            statuses.append((await send(number)).status)  # type: ignore[attr-defined]  # an answer
        return statuses

    return Counter(chain.from_iterable(await asyncio.gather(*map(one, range(connections)))))


async def many_sign_ins(server: Server, seconds: float) -> None:
    """Print how often one account is signed in from one address."""
    end = time.perf_counter() + seconds
    async with AsyncExitStack() as stack:
        browsers = [
            await stack.enter_async_context(page_client(f"http://127.0.0.1:{server.port}")) for _ in range(SIGNING_IN)
        ]
        for browser in browsers:
            browser.move(3)
        sign_in = lambda number: _sign_in_anew(browsers[number])  # noqa: E731 - short
        found = await repeat(sign_in, SIGNING_IN, lambda: time.perf_counter() > end)
    print(f"sign-ins of one account in {seconds:.0f} s: {found[SEE_OTHER]} of {sum(found.values())} ({dict(found)})")


async def _sign_in_anew(browser: PageClient) -> object:
    browser.cookies.clear()
    return await browser.sign_in("person0@crowd.test")


async def many_sessions(server: Server, url: str, count: int) -> None:
    """Print how the server's memory grows with 8 requests for the settings of an account with many sessions."""
    now = Clock().now()

    def add() -> str:
        user = users.by_email("person1@crowd.test")
        for first in range(0, count, AT_ONCE):
            Session.insert_many(
                (user.id, sessions.digest(f"other {number}"), now - number, now - number, "127.0.0.1", "Mozilla/5.0")
                for number in range(first, min(first + AT_ONCE, count))
            ).execute()
        value = "a" * 43
        Session.insert(
            user=user.id, digest=sessions.digest(value), created_at=now, last_used_at=now, address="", agent=""
        ).execute()
        return value

    with opening.connect(url) as store:
        value = store.write(add).result()
    before, began = server.memory, time.perf_counter()
    async with page_client(f"http://127.0.0.1:{server.port}") as browser:
        browser.cookies = {"musicsvc": value}
        with Watch(server) as watch:
            answers = await asyncio.gather(*(browser.get("/settings") for _ in range(READERS)))
    sizes = {len(answer.body) // 1000 for answer in answers}
    statuses = dict(Counter(answer.status for answer in answers))
    print(f"{READERS} requests for /settings with {count:,} sessions: {statuses}, {max(sizes)} kB each,", end=" ")
    print(f"{time.perf_counter() - began:.1f} s, memory {before // MEBIBYTE} -> {watch.most // MEBIBYTE} MiB")


if __name__ == "__main__":
    main()
