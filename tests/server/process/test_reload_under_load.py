"""SIGHUP under load: every request is answered."""

import asyncio
import json
import signal

import pytest

from musicsvc.store import opening
from musicsvc.store.models.catalog import Artist
from tests.server.conftest import Start
from tests.support.malformed_requests import ALBUMS, ARTISTS, JSON
from tests.support.program import Program
from tests.support.raw_connection import connected, request
from tests.support.reloads import RELOADED, SettingsFile, messages, reload

pytestmark = [pytest.mark.only_on("sqlite"), pytest.mark.slow]


WORKERS = pytest.mark.parametrize("workers", ["1", "2"])


async def hammer(root: str, token: str, ends: asyncio.Event, name: str) -> tuple[int, int]:
    """Send reads and creations over connections that stay open. Return how many, and how many artists were created."""
    sent = created = 0
    while not ends.is_set():
        async with connected(root) as wire:
            closing = False
            while not closing and not ends.is_set():
                creates = sent % 5 == 0
                body = json.dumps({"name": f"{name} {sent}"}).encode() if creates else b""
                method, target = ("POST", ARTISTS) if creates else ("GET", ALBUMS)
                await wire.send(request(method, target, f"Authorization: Bearer {token}", JSON, body=body))
                answer = await wire.answer()
                assert answer.status == (201 if creates else 200), answer
                sent, created = sent + 1, created + creates
                closing = answer.headers.get("Connection") == "close"
    return sent, created


async def reload_under_load(program: Program, settings: SettingsFile, token: str, reloads: int, store_url: str) -> int:
    """Reload again and again beside 8 clients. Check that each request was answered. Return the number of requests."""
    ends = asyncio.Event()
    clients = [asyncio.create_task(hammer(program.root, token, ends, f"client {at}")) for at in range(8)]
    for at in range(reloads):
        await asyncio.sleep(0.3)
        settings.write(f"{90000 + at}/minute")
        await asyncio.to_thread(reload, program)
    ends.set()
    found = await asyncio.gather(*clients)
    assert messages(program) == [RELOADED] * reloads
    with opening.connect(store_url) as store:
        count = store.read(lambda: Artist.select().count()).result()
    assert count == sum(created for _, created in found)
    return sum(sent for sent, _ in found)


@WORKERS
@pytest.mark.parametrize(("reloads", "requests"), [(4, 8), pytest.param(100, 2000, marks=pytest.mark.long)])
async def test_no_request_is_lost_under_load(
    start: Start, settings: SettingsFile, token: str, store_url: str, workers: str, reloads: int, requests: int
) -> None:
    program = start("--workers", workers)
    assert await reload_under_load(program, settings, token, reloads, store_url) > requests
    assert program.end(signal.SIGTERM) == 0
