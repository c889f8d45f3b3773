"""Requests with a key, killed before each of their steps: `python -m tests.server.request.killed_keys URL TOKEN EVERY`.

Prints how many servers were to be killed, after how many of them the request had been executed, and after how many not.
"""

import asyncio
import sys
from collections.abc import Callable
from functools import partial

import apsw

from musicsvc.clock import Clock
from musicsvc.store import opening
from tests.faults import killing
from tests.support.serving import running

NEVER = 1 << 40  # the number of a step
APART = 16  # steps; to find the last one
LAST = 48  # steps, of which the first are before the request


async def ask(url: str, token: str, name: str, done: Callable[[], None], *, replayed: bool | None = None) -> None:
    """Start a server and let it create a playlist, with the name as key."""
    with opening.connect(url) as store:
        async with running(store, Clock()) as client:
            sent = {"Idempotency-Key": name}
            answer = await client.holding(token).post("playlists", {"name": name}, headers=sent)
            assert answer.status == 200, answer
            assert answer.json["playlist"]["name"] == name
            assert replayed is None or ("Idempotency-Replayed" in answer.headers) is replayed, name
            done()


def count(path: str, name: str) -> tuple[int, int]:
    """Return the number of playlists with this name, and of kept answers."""
    connection = apsw.Connection(path)
    try:
        playlists = connection.execute("SELECT count(*) FROM playlist WHERE name = ?", (name,)).get
        kept = connection.execute("SELECT count(*) FROM kept_answer WHERE key = ?", (name,)).get
        assert connection.execute("PRAGMA integrity_check").get == "ok"
    finally:
        connection.close()
    return int(playlists), int(kept)


def was_executed(url: str, token: str, step: int) -> bool | None:
    """Kill a request before this step, and send it again. Return whether it was executed, or None if it was done."""
    path, name = url.removeprefix("sqlite:///"), f"step-{step}"
    if not killing.killed_before(step, lambda done: asyncio.run(ask(url, token, name, done))):
        return None
    found = count(path, name)
    assert found in {(0, 0), (1, 1)}, (name, found)
    again = partial(ask, url, token, name, replayed=found[0] > 0)
    assert not killing.killed_before(NEVER, lambda done: asyncio.run(again(done)))
    assert count(path, name) == (1, 1), name
    return found[0] > 0


def main(url: str, token: str, every: str) -> None:
    """Kill requests at some steps until one is answered, then at all or some of the last steps before that."""
    far = next(step for step in killing.rounds(APART) if was_executed(url, token, step) is None)
    steps = range(max(2, far - LAST), far, int(every))
    found = [was_executed(url, token, step) for step in steps if step % APART != 1]
    print(len(found), found.count(True), found.count(False))  # noqa: T201 - the result of the script


if __name__ == "__main__":
    main(*sys.argv[1:])
