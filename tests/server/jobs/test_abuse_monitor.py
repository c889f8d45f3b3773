"""Abuse of a running server: a hammering or probing token is revoked with a reason."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from musicsvc.clock import SECOND, Clock
from musicsvc.config import Abuse, Access, Activity, Limits, Settings
from musicsvc.server.jobs import abuse_monitor
from musicsvc.store.accounts import tokens, users
from musicsvc.store.engine.sql import current
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Token, Track
from musicsvc.store.security import security_events
from tests.support.bounds import Bounds
from tests.support.serving import Client, person, running
from tests.support.waiting import until

PUBLIC = {"name": "Rags", "public": True}
SOON = 60.0  # seconds; on an idle machine it takes two
STRICT = Settings(limits=Limits(local=True, token="20/minute"), abuse=Abuse(refusals=10, probes=12, terminate_after=2))
CONTACT = Access(contact_email="help@label.test")
LOOSE = STRICT.model_copy(update={"limits": Limits(local=True, token="10000/minute"), "access": CONTACT})
SUSPENDED = "The account is suspended. If this is a mistake, write to help@label.test."


@pytest.fixture(autouse=True)
def often(bounds: Bounds) -> None:
    """Let the server, the only process that logs calls, evaluate tokens more often and sooner after their calls.

    After an evaluation that a busy machine has delayed, it pauses no longer either.
    """
    bounds(evaluation_seconds=0.1, longest_evaluation_pause=0.1, settled=SECOND // 5)


@pytest.fixture
async def strict(store: Store) -> AsyncIterator[Client]:
    """A client of a server with low limits and the system clock."""
    async with running(store, Clock(), STRICT) as client:
        yield client


@pytest.fixture
async def loose(store: Store) -> AsyncIterator[Client]:
    """A client of such a server with limits that are never reached."""
    async with running(store, Clock(), LOOSE) as client:
        yield client


async def refused(client: Client) -> None:
    """Send harmless requests until the token is refused."""
    deadline = time.monotonic() + SOON
    while (await client.get("users/me")).status != 401:
        assert time.monotonic() < deadline, "the token lives on"
        await asyncio.sleep(0.05)


async def hammer(client: Client, requests: int = 100) -> list[int]:
    return [(await client.get("users/me")).status for _ in range(requests)]


async def probe(client: Client, start: int = 0) -> list[int]:
    return [(await client.get(f"playlists/{1000 + start + number}")).status for number in range(12)]


async def locked(client: Client, log: Path) -> apsw.Connection:
    """Lock the log once the server has written a call to it. Closing the connection releases it."""
    await client.holding(None).get("users/me")
    await until(log.exists)
    connection = apsw.Connection(str(log))
    connection.set_busy_timeout(10_000)
    await until(lambda: connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'activity'").get is not None)
    await until(lambda: connection.execute("SELECT 1 FROM activity").get is not None)
    connection.execute("BEGIN IMMEDIATE")
    return connection


def token_of(store: Store, value: str | None) -> Token:
    found = store.read(lambda: tokens.find_by_value(value or "")).result()
    assert found is not None
    return found


async def test_a_hammer_is_revoked_and_a_burst_that_pauses_is_not(strict: Client, store: Store) -> None:
    hammering = strict.holding(person(store, Clock(), "ann@label.test")[1])
    pausing = strict.holding(person(store, Clock(), "ben@label.test")[1])
    assert (await hammer(pausing, 29)).count(429) == 9
    assert (await hammer(hammering)).count(429) >= 10  # it may be revoked before the last of them
    await refused(hammering)
    await until(lambda: token_of(store, hammering.token).revoked_at is not None)

    token = token_of(store, hammering.token)
    assert token.revoked_reason is not None
    assert token.revoked_reason.startswith("abuse: 10 requests refused with 429 within ")
    (event,) = store.read(lambda: security_events.find(security_events.Filter(token_id=token.id), limit=9)).result()[1:]
    assert (event.kind, event.actor, event.reason) == ("token.revoked", "abuse", token.revoked_reason)
    assert token_of(store, pausing.token).revoked_at is None
    assert (await pausing.get("users/me")).status != 401  # 200 a minute after the first call


@pytest.mark.on_both
async def test_probing_ids_in_paths_or_bodies_is_revoked(loose: Client, store: Store) -> None:
    paths, bodies, own, odd = (
        loose.holding(person(store, Clock(), f"{name}@label.test")[1]) for name in ("pia", "bo", "olga", "odd")
    )
    reader = loose.holding(person(store, Clock(), "rea@label.test", scope="read")[1])
    assert await probe(paths) == [404] * 12
    for number in range(12):
        answer = await bodies.post("messaging/messages", {"conversation_id": 50 + number, "message_text": "hello"})
        assert answer.status == 404
        assert (await reader.delete(f"playlists/{1000 + number}")).status == 403
        assert (await odd.get(f"playlists/{number}-x")).status == 404
        assert (await odd.get(f"nowhere/{number}")).status == 404
        assert (await own.get("playlists/4711")).status == 404
    await refused(paths)
    await refused(bodies)
    await until(lambda: token_of(store, bodies.token).revoked_at is not None)

    reason = token_of(store, bodies.token).revoked_reason
    assert reason is not None
    assert reason.startswith("abuse: 12 different resources that belong to others or do not exist, within ")
    assert (await own.get("users/me")).status == 200
    assert (await odd.get("users/me")).status == 200
    assert (await reader.get("users/me")).status == 200


@pytest.mark.slow
async def test_probing_by_tools_is_revoked(loose: Client, store: Store) -> None:
    client = loose.holding(person(store, Clock(), "ann@label.test", scope="read")[1])
    ids = store.write(lambda: [Track.create(name="Rags", duration=1, created_at=1).id for _ in range(12)]).result()
    for number in ids:
        call = {"name": "figures", "arguments": {"kind": "track", "id": number}}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        assert (await client.post("/mcp", message)).json["result"]["isError"]
    await refused(client)
    await until(lambda: token_of(store, client.token).revoked_at is not None)
    reason = token_of(store, client.token).revoked_reason
    assert reason is not None
    assert reason.endswith("0 of 12 calls successful")


@pytest.mark.slow
async def test_a_reinstated_token_is_not_revoked_again_for_old_calls(loose: Client, store: Store) -> None:
    client = loose.holding(person(store, Clock(), "ann@label.test")[1])
    await probe(client)
    await refused(client)
    await until(lambda: token_of(store, client.token).revoked_at is not None)
    token = token_of(store, client.token)
    store.write(lambda: tokens.reinstate(token.id, now=Clock().now())).result()
    assert (await client.get("playlists/77")).status == 404
    await asyncio.sleep(0.45)  # four evaluations
    assert (await client.get("users/me")).status == 200
    await probe(client, 20)
    await refused(client)


@pytest.mark.slow
async def test_the_account_is_suspended_after_several_revocations(
    loose: Client, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    user_id, first = person(store, Clock(), "ann@label.test")

    def another() -> str:
        return tokens.create(users.get(user_id), "another", now=Clock().now())[1]

    second, third = store.write(another).result(), store.write(another).result()
    for value in (first, second):
        assert (await loose.holding(third).get("users/me")).status == 200
        await probe(loose.holding(value))
        await refused(loose.holding(value))
    # A token ends in memory first; the account follows with the store.
    await until(lambda: store.read(lambda: users.get(user_id)).result().suspended_at is not None)
    answer = await loose.holding(third).get("users/me")
    assert (answer.status, answer.json["message"]) == (403, SUSPENDED)
    user = store.read(lambda: users.get(user_id)).result()
    assert user.suspended_reason == "abuse: 2 tokens were revoked for abuse"
    kinds = [
        event.kind for event in store.read(lambda: security_events.find(limit=50)).result() if event.actor == "abuse"
    ]
    assert kinds == ["token.revoked", "token.revoked", "account.suspended"]
    last = token_of(store, second).id
    await until(lambda: f"suspended the account of token {last} after repeated abuse" in caplog.messages)
    revoked = [f"revoked token {token_of(store, value).id} for abuse: 12 different" for value in (first, second)]
    told = [message for message in caplog.messages if message.startswith("revoked ")]
    assert [message[: len(revoked[0])] for message in told] == revoked


@pytest.mark.only_on("sqlite")
async def test_without_writes_a_token_is_revoked_in_memory_and_reads_count(store: Store, tmp_path: Path) -> None:
    log = tmp_path / "calls.db"
    value, owned = (person(store, Clock(), f"{name}@label.test")[1] for name in ("ann", "olga"))
    user_id, first = person(store, Clock(), "ben@label.test")
    second = store.write(lambda: tokens.create(users.get(user_id), "another", now=Clock().now())[1]).result()
    async with running(store, Clock(), LOOSE.model_copy(update={"activity": Activity(file=log)})) as client:
        owner, reads, refreshes = (client.holding(each) for each in (owned, first, second))
        paths = [f"playlists/{(await owner.post('playlists', PUBLIC)).json['playlist']['id']}" for _ in range(13)]
        locks = [await locked(client, log), apsw.Connection(store.url.removeprefix("sqlite:///"))]
        locks[1].set_busy_timeout(10_000)
        assert {(await reads.get(path)).status for path in paths} == {200}
        assert {(await owner.delete(path)).status for path in paths} == {200}
        locks[1].execute("BEGIN IMMEDIATE")
        try:
            assert {(await refreshes.get(path)).status for path in paths} == {404}
            await probe(client.holding(value))
            await refused(client.holding(value))
            assert token_of(store, value).revoked_at is None
            assert (await refreshes.get("users/me")).status == 200
        finally:
            for lock in locks:
                lock.close()
        await until(lambda: token_of(store, value).revoked_at is not None)
        assert (await client.holding(value).get("users/me")).status == 401


@pytest.mark.only_on("sqlite")
async def test_the_probing_rule_is_off_while_successes_may_be_missing(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bounds: Bounds
) -> None:
    bounds(most_waiting=12)
    log = tmp_path / "calls.db"
    ends: list[int] = []  # up to which moment each evaluation counts
    violations = abuse_monitor._violations

    def recording(calls: Any, statuses: Any, end: int, rules: Abuse) -> Any:
        found = violations(calls, statuses, end, rules)
        ends.append(end)
        return found

    monkeypatch.setattr(abuse_monitor, "_violations", recording)
    _, value = person(store, Clock(), "ann@label.test")
    async with running(store, Clock(), LOOSE.model_copy(update={"activity": Activity(file=log)})) as client:
        lock = await locked(client, log)
        try:
            await client.holding(value).get("users/me")
            await asyncio.sleep(0.7)  # it is under way, and what comes after it waits
            for _ in range(20):
                await client.holding(value).get("users/me")
            await probe(client.holding(value), 100)
            last = Clock().now()
            await until(lambda: sum(end > last for end in ends) > 1)
            assert (await client.holding(value).get("users/me")).status == 200
        finally:
            lock.close()


@pytest.mark.slow
@pytest.mark.parametrize("mended", [True, False])
async def test_an_unwritten_revocation_is_written_when_the_server_stops(
    store: Store, caplog: pytest.LogCaptureFixture, *, mended: bool
) -> None:
    _, value = person(store, Clock(), "ann@label.test")

    def rename(column: str, name: str) -> None:
        sql = f"ALTER TABLE security_event RENAME COLUMN {column} TO {name}"
        store.write(lambda: current().execute_sql(sql) and None).result()

    async with running(store, Clock(), LOOSE) as client:
        rename("actor", "broken")  # revocations fail from now on
        await probe(client.holding(value))
        await refused(client.holding(value))
        assert token_of(store, value).revoked_at is None
        if mended:
            rename("broken", "actor")
    assert (token_of(store, value).revoked_at is not None) == mended
    lost = "is valid again: its revocation could not be written to the database"
    assert (lost in caplog.text) != mended
    if not mended:
        failed = "could not write the revocation of token 1 to the database; will retry"
        (record, *_) = [each for each in caplog.records if each.getMessage() == failed]
        assert record.exc_info


@pytest.mark.slow
async def test_earlier_reads_and_deleted_catalog_resources_do_not_count(loose: Client, store: Store) -> None:
    """The reads are made with another token, so that the denied token has no successes of its own."""
    owner, prober = (loose.holding(person(store, Clock(), f"{name}@label.test")[1]) for name in ("olga", "pia"))
    user_id, first = person(store, Clock(), "ann@label.test")
    reads = loose.holding(first)

    def another() -> str:
        return tokens.create(users.get(user_id), "another", now=Clock().now())[1]

    refreshes, lists = (loose.holding(store.write(another).result()) for _ in range(2))
    made = [(await owner.post("playlists", PUBLIC)).json["playlist"]["id"] for _ in range(26)]
    assert {(await reads.get(f"playlists/{each}")).status for each in made} == {200}

    for each in made[:13]:
        await owner.put(f"playlists/{each}", {"name": "Rags"})
    for each in made[13:]:
        await owner.delete(f"playlists/{each}")
    for each in made:
        path = f"playlists/{each}/tracks" if each % 2 else f"playlists/{each}"
        assert (await refreshes.get(path)).status == 404
    assert (await lists.get("playlists/4711")).status == 404
    for number in range(26):
        assert (await lists.get(f"tracks/{5000 + number}")).status == 404
        assert (await lists.post(f"tracks/{5000 + number}/like")).status == 404
    for each in made[:13]:
        assert (await prober.get(f"playlists/{each}")).status == 404

    await refused(prober)
    assert [(await client.get("users/me")).status for client in (reads, refreshes, lists)] == [200] * 3


@pytest.mark.only_on("sqlite")
async def test_the_probing_rule_is_off_while_the_log_cannot_be_read(store: Store, tmp_path: Path) -> None:
    """Only the log knows whether the account has read a resource before."""
    settings = STRICT.model_copy(update={"activity": Activity(file=tmp_path)})  # a folder
    prober, hammering = (person(store, Clock(), f"{name}@label.test")[1] for name in ("pia", "ann"))
    async with running(store, Clock(), settings) as client:
        await probe(client.holding(prober))
        await hammer(client.holding(hammering))
        await refused(client.holding(hammering))
        assert (await client.holding(prober).get("users/me")).status == 200
