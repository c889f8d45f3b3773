"""A revocation is in force at once on its machine and within a second elsewhere, though tokens are rarely looked up."""

import asyncio
import time
from contextlib import AsyncExitStack, ExitStack
from functools import partial
from pathlib import Path

import pytest

from musicsvc.clock import MovableClock
from musicsvc.store.accounts import api_access, tokens, users
from musicsvc.store.people import deletion
from tests.conftest import NOW
from tests.support.query_count import queries
from tests.support.serving import Client, person, running

psycopg = pytest.importorskip("psycopg")
from musicsvc.store.engine.postgres.store import PostgresStore  # noqa: E402 - imports the driver

pytestmark = pytest.mark.only_on("postgres")
REQUESTS = 200


async def test_a_revoked_token_is_refused_everywhere_within_a_second_with_few_look_ups(
    store_url: str, tmp_path: Path
) -> None:
    clock = MovableClock(NOW, speed=0)
    with ExitStack() as stores:
        machines = [tmp_path / name for name in ("a", "a", "a", "b")]
        for folder in machines:
            folder.mkdir(exist_ok=True)
        command_line, *nodes = [stores.enter_context(PostgresStore(store_url, folder)) for folder in machines]
        async with AsyncExitStack() as serving:
            servers = [await serving.enter_async_context(running(node, clock)) for node in nodes]
            for number, end in enumerate((revoke, suspend, withdraw, delete)):
                account, token = person(command_line, clock, f"ann{number}@label.test")
                clients = [server.holding(token) for server in servers]
                if end is revoke:
                    await used_with_few_look_ups(clients, nodes)
                assert [(await client.get("users/me")).status for client in clients] == [200, 200, 200]
                command_line.write(partial(end, account, clock.now())).result()
                ended = time.monotonic()
                refused = 401 if end in {revoke, delete} else 403
                assert [(await client.get("users/me")).status for client in clients[:2]] == [refused, refused]
                async with asyncio.timeout(30):
                    while (await clients[2].get("users/me")).status == 200:  # noqa: ASYNC110 - as asked
                        await asyncio.sleep(0.01)
                assert time.monotonic() - ended < 3  # one second on a machine that is not busy
                assert (await clients[2].get("users/me")).status == refused


async def used_with_few_look_ups(clients: list[Client], nodes: list[PostgresStore]) -> None:
    """Send requests beside unrelated writes. Fewer than a tenth of them look the token up."""
    for client, node in zip(clients, nodes, strict=True):
        async with asyncio.timeout(30):
            while node.changes() is None:
                await client.get("users/me")
        with queries(node) as statements:
            for number in range(REQUESTS):
                assert (await client.get("users/me")).status == 200
                if number % 4 == 0:
                    assert (await client.post("playlists", {"name": f"{number}"})).status == 200
        assert sum("t.digest =" in event.sql for event in statements) < REQUESTS / 10


def revoke(account_id: int, now: int) -> None:
    (token,) = tokens.list(users.get(account_id))
    tokens.revoke(token.id, "test", now=now)


def delete(account_id: int, now: int) -> None:
    deletion.delete(account_id, now=now)


def suspend(account_id: int, now: int) -> None:
    users.suspend(users.get(account_id), now=now)


def withdraw(account_id: int, now: int) -> None:
    api_access.revoke(users.get(account_id), now=now)
