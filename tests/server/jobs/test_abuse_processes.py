"""Abuse spread over several processes is detected as a whole, and revoked on each of them."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import pytest

from musicsvc.clock import Clock
from musicsvc.store import opening
from musicsvc.store.accounts import tokens
from musicsvc.store.engine.store import Store
from tests.support.program import Program
from tests.support.serving import Client, person

pytestmark = pytest.mark.slow


CONNECTIONS = 8  # kept open, over both processes
SOON = 60.0  # seconds; on an idle machine it takes two
SETTINGS = {
    "LIMITS__LOCAL": "true",
    "LIMITS__TOKEN": "40/minute",
    "LIMITS__ADDRESS": "10000/minute",  # requests with a revoked token count there
    "ABUSE__REFUSALS": "20",
    "ABUSE__PROBES": "20",
}


@pytest.fixture
async def connections(
    store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Sequence[Client]]:
    """Clients of a server with two processes, each with its own persistent connection."""
    monkeypatch.setenv("MUSICSVC_DATABASE_URL", store_url)
    monkeypatch.setenv("MUSICSVC_DATA_DIR", str(tmp_path / "folder"))
    for name, value in SETTINGS.items():
        monkeypatch.setenv(f"MUSICSVC_{name}", value)
    with Program(tmp_path, "serve", "--port", "0", "--workers", "2") as program:
        async with AsyncExitStack() as stack:
            sessions = [await stack.enter_async_context(aiohttp.ClientSession()) for _ in range(CONNECTIONS)]
            yield [Client(session, program.root) for session in sessions]


async def statuses(connections: Sequence[Client], token: str, path: str) -> set[int]:
    return {(await client.holding(token).get(path)).status for client in connections}


async def ended(connections: Sequence[Client], store: Store, token: str) -> None:
    """Wait until the token is revoked, without using it, and then until it is refused on every connection."""
    deadline = time.monotonic() + SOON
    while reason(store, token) is None:
        assert time.monotonic() < deadline, "the token is not revoked"
        await asyncio.sleep(0.1)
    while await statuses(connections, token, "users/me") != {401}:
        assert time.monotonic() < deadline, "the token lives on"
        await asyncio.sleep(0.1)


def reason(store: Store, value: str) -> str | None:
    found = store.read(lambda: tokens.find_by_value(value)).result()
    assert found is not None
    return found.revoked_reason


@pytest.mark.on_both
async def test_abuse_spread_over_processes_is_revoked_on_all(connections: Sequence[Client], store_url: str) -> None:
    with opening.connect(store_url) as store:
        prober, hammer, honest = (person(store, Clock(), f"{name}@label.test")[1] for name in ("a", "b", "c"))
        # Eleven or so at each process: too few for either.
        for number in range(22):
            client = connections[number % CONNECTIONS]
            assert (await client.holding(prober).get(f"playlists/{1000 + number}")).status == 404
        for _ in range(20):
            await statuses(connections, hammer, "users/me")
        assert await statuses(connections, honest, "users/me") == {200}
        await ended(connections, store, prober)
        await ended(connections, store, hammer)

        assert (reason(store, prober) or "").startswith("abuse: 20 different resources")
        assert "requests refused with 429" in (reason(store, hammer) or "")
        token = store.read(lambda: tokens.find_by_value(prober)).result()
        store.write(lambda: tokens.reinstate(token.id if token else 0, now=Clock().now())).result()
        assert 401 not in await statuses(connections, prober, "users/me")
        assert await statuses(connections, honest, "users/me") == {200}
