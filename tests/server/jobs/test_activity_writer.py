"""The activity writer: every call within a second, no secrets, no request waiting."""

import asyncio
import logging
import math
import time
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Any

import apsw
import pytest

from musicsvc.clock import DAY, MovableClock
from musicsvc.config import Settings
from musicsvc.server.call import Call
from musicsvc.server.jobs.activity_writer import ActivityWriter
from musicsvc.store.accounts import tokens
from musicsvc.store.activity import calls
from musicsvc.store.activity import log as activity_log
from musicsvc.store.activity.calls import Entry
from musicsvc.store.engine.store import Store
from musicsvc.store.security import security_events
from tests.faults import disk
from tests.support.bounds import Bounds
from tests.support.raw_connection import connected, request
from tests.support.serving import Client, person, running
from tests.support.waiting import until

sqlite = pytest.mark.only_on("sqlite")
PROXIED = {"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "https"}


def logged(store: Store, **wanted: Any) -> list[Entry]:
    """Return the entries of the log, as another process reads them."""
    with activity_log.build(store.url) as log:
        log.prepare()
        return log.read(lambda: calls.find(calls.Filter(**wanted), limit=100_000)).result()


async def test_a_call_is_in_the_log_a_moment_later(client: Client, store: Store, clock: MovableClock) -> None:
    answer = await client.post("artists", {"name": "Amy Beach"}, headers={"X-Request-Id": "my.own-id"})

    await until(lambda: logged(store))

    (entry,) = logged(store)
    assert entry.milliseconds > 0
    assert entry._replace(milliseconds=0) == calls.Entry(
        at=clock.now(),
        request_id="my.own-id",
        account_id=1,
        token_id=1,
        address="127.0.0.1",
        method="POST",
        route="/api/v1/artists",
        resource=None,
        status=201,
        retry_after=None,
        milliseconds=0,
        size=len(answer.body),
        limits_apply=False,
        private=False,
    )


async def test_every_call_is_logged_when_the_server_has_stopped(store: Store, clock: MovableClock) -> None:
    clock = MovableClock(clock.now())
    async with running(store, clock) as anonymous:
        client = anonymous.holding(person(store, clock, "ann@label.test")[1])
        for path in ("artists/7?q=secret", "albums", "nothing", "albums/x"):
            await client.get(path)
        await client("HEAD", "albums")
        await anonymous.get("users/me", headers=PROXIED)
        await client.delete("albums")
        async with connected(client.root) as wire:
            await wire.send(b"\x16\x03\x01 no HTTP at all\r\n\r\n")
            await wire.answer()

    told = [(e.method, e.route, e.resource, e.status, e.account_id, e.address, e.limits_apply) for e in logged(store)]
    assert told == [
        ("GET", "/api/v1/artists/{id}", "artists/7", 404, 1, "127.0.0.1", False),
        ("GET", "/api/v1/albums", None, 200, 1, "127.0.0.1", False),
        ("GET", None, None, 404, None, "127.0.0.1", False),
        ("GET", "/api/v1/albums/{id}", None, 404, 1, "127.0.0.1", False),
        ("HEAD", "/api/v1/albums", None, 200, 1, "127.0.0.1", False),
        ("GET", "/api/v1/users/me", None, 401, None, "203.0.113.9", True),
        ("DELETE", None, None, 405, None, "127.0.0.1", False),
        ("", None, None, 400, None, "127.0.0.1", False),
    ]


async def test_health_and_metrics_are_not_logged(store: Store, clock: MovableClock) -> None:
    async with running(store, clock) as anonymous:
        for path in ("/healthz", "/readyz"):
            assert (await anonymous.get(path)).status == 200

    assert logged(store) == []


async def test_nothing_secret_or_hostile_gets_into_the_log(store: Store, clock: MovableClock) -> None:
    _, token = person(store, clock, "ann@label.test")
    stray = tokens.generate()
    hostile = ['"; DROP TABLE activity; --', "\x1b[31mred", "\udcff\udcfe", "a\tb", "Ünïcode", stray, "x" * 200]
    async with running(store, clock) as anonymous:
        for text in hostile:
            names = ("X-Request-Id", "User-Agent", "Referer", "X-Forwarded-For", "Cookie")
            headers = ["X-Forwarded-Proto: https", *(f"{name}: {text}" for name in names)]
            for target in ("/api/v1/albums", f"/api/v1/playlists/{stray}", f"/api/v1/{stray}?token={stray}"):
                for credentials in (token, text):
                    async with connected(anonymous.root) as wire:
                        await wire.send(request("GET", target, f"Authorization: Bearer {credentials}", *headers))
                        assert (await wire.answer()).status in {200, 400, 401, 404}
        path = "/api/v1/notifications/%s/subscriptions"
        await anonymous.holding(token).get(path % stray)
        await anonymous.post("auth/register", {"email": "bob@label.test", "password": "open sesame 7"})

    entries = logged(store)
    assert len(entries) == len(hostile) * 6 + 2
    for entry in entries:
        said = [entry.request_id, entry.address, entry.method, entry.route or "", entry.resource or ""]
        assert all(text.isascii() and text.isprintable() and len(text) <= 128 for text in said)
    kept = repr(entries)
    for secret in (token, stray, token[5:30], stray[5:30], "open sesame", "DROP TABLE", "bob@label.test"):
        assert secret not in kept


async def test_unprintable_text_is_escaped_and_cut(store: Store, clock: MovableClock) -> None:
    log = activity_log.build(store.url)
    record = ActivityWriter(log, store, clock, 90)
    call = Call(1, 0.0, "r\x00\r\n\ud800", "\x1b[2J" * 99, "a" * 999, resource="users/\u202e\x00")
    record(call)
    record(replace(call, request_id="2", resource=f"users/{tokens.generate()}"))
    await record.stop()

    entry, secret = sorted(logged(store), key=attrgetter("request_id"), reverse=True)
    assert (secret.request_id, secret.resource) == ("2", None)
    assert entry.request_id == "r\\x00\\r\\n\\ud800"
    assert entry.method == "\\x1b[2J\\x1b[2J\\x1b"[:16]
    assert len(entry.address) == 128
    assert entry.resource == "users/\\u202e\\x00"


@sqlite
async def test_a_call_that_no_database_accepts_is_lost_alone_and_reported(store: Store, clock: MovableClock) -> None:
    record = ActivityWriter(activity_log.build(store.url), store, clock, 90)
    record(Call(1, 0.0, "large", "GET", size=2**63))
    record.start()
    await until(lambda: record.dropped)
    record(Call(2, 0.0, "next", "GET"))
    await record.stop()
    assert [entry.request_id for entry in logged(store)] == ["next"]
    assert events_of(store) == [("activity.lost", "server", "1 call not in the activity log")]
    assert (record.written, record.dropped) == (1, 1)


@sqlite
async def test_calls_that_are_not_written_before_the_end_are_counted_in_the_log(
    store: Store, clock: MovableClock, tmp_path: Path, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    activity_log.default_file(file).unlink()

    def fault(operation: str, file: str) -> None:
        if operation == "write" and file.startswith("activity"):
            raise disk.error(apsw.SQLITE_FULL)

    with disk.mounted(tmp_path, fault):
        record = ActivityWriter(activity_log.build(store.url), store, clock, 90)
        for number in range(3):
            record(Call(1, 0.0, f"call {number}", "GET"))
        await record.stop()
    assert record.waiting == 3
    failed, lost = caplog.messages
    full = f"The disk of {activity_log.default_file(file)} is full."
    assert failed.startswith(f"background job failed: writing the activity log: {full}")
    assert lost == "could not write the activity log before the server stopped: 3 calls are lost"


@pytest.mark.slow
@sqlite
async def test_requests_are_answered_while_the_disk_is_full_and_the_log_recovers(
    store: Store, clock: MovableClock, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    full = False

    def fault(operation: str, file: str) -> None:
        if full and file.startswith("activity") and operation == "write":
            raise disk.error(apsw.SQLITE_FULL)

    with disk.mounted(tmp_path, fault):
        async with running(store, clock) as anonymous:
            assert (await anonymous.get("albums")).status == 200
            await until(lambda: len(logged(store)) == 1)
            full = True
            for _ in range(30):
                assert (await anonymous.get("albums")).status == 200
            written = await anonymous.post("auth/register", {"email": "a@b.test", "password": "open sesame 7"})
            assert written.status == 200
            await until(lambda: "writing the activity log" in caplog.text)
            await asyncio.sleep(0.8)
            full = False
            await until(lambda: len(logged(store)) == 32)

    file = Path(store.url.removeprefix("sqlite:///")).with_name("activity.db")
    full_disk = f"The disk of {file} is full. Make room on it, then try again."
    assert [record.message for record in caplog.records if record.levelno >= logging.WARNING] == [
        f"background job failed: writing the activity log: {full_disk}",
        "background job recovered: writing the activity log",
    ]


@sqlite
async def test_waiting_calls_are_bounded_refused_ones_dropped_last_and_the_loss_reported(
    store: Store, clock: MovableClock, tmp_path: Path, bounds: Bounds
) -> None:
    bounds(most_waiting=6)
    failures = math.inf

    def fault(operation: str, file: str) -> None:
        nonlocal failures
        if failures and operation != "read" and file.startswith("activity"):
            failures -= 1
            raise disk.error(apsw.SQLITE_FULL)

    with disk.mounted(tmp_path, fault):
        async with running(store, clock) as anonymous:
            for number in range(3):
                await anonymous.get("users/me", headers={"X-Request-Id": f"refused-{number}"})
            await anonymous.get("albums/99", headers={"X-Request-Id": "faulty"})
            for number in range(20):
                await anonymous.get("albums", headers={"X-Request-Id": f"plain-{number}"})
            failures = 1  # a batch may be on its way
            await until(lambda: events_of(store))

    assert [entry.request_id for entry in logged(store)] == [
        *(f"refused-{number}" for number in range(3)),
        "faulty",
        "plain-18",
        "plain-19",
    ]
    assert events_of(store) == [("activity.lost", "server", "18 calls not in the activity log")]


@pytest.mark.slow
@sqlite
async def test_a_loss_that_cannot_be_reported_is_reported_later(
    store: Store, clock: MovableClock, tmp_path: Path, bounds: Bounds
) -> None:
    bounds(most_waiting=6)
    database = Path(store.url.removeprefix("sqlite:///")).name
    failures = {"activity": math.inf, database: 0}

    def fault(operation: str, file: str) -> None:
        for name, left in failures.items():
            if left and operation not in {"read", "open"} and file.startswith(name):
                failures[name] = left - 1
                raise disk.error(apsw.SQLITE_FULL)

    with disk.mounted(tmp_path, fault):
        async with running(store, clock) as anonymous:
            for _ in range(9):
                await anonymous.get("albums")
            failures |= {"activity": 1, database: math.inf}  # a batch may be on its way
            await until(lambda: not failures["activity"])
            await until(lambda: len(logged(store)) == 6)
            await anonymous.get("albums")
            await until(lambda: len(logged(store)) == 7)  # the loss could not be reported before
            assert events_of(store) == []
            failures[database] = 0
            await anonymous.get("albums")
            await until(lambda: events_of(store))

    assert events_of(store) == [("activity.lost", "server", "3 calls not in the activity log")]


def events_of(store: Store) -> list[tuple[str, str, str | None]]:
    found = store.read(lambda: security_events.find(limit=9)).result()
    return [(event.kind, event.actor, event.reason) for event in found]


@sqlite
async def test_a_locked_log_delays_no_request(client: Client, store: Store, caplog: pytest.LogCaptureFixture) -> None:
    await client.get("albums")
    await until(lambda: logged(store))
    connection = apsw.Connection(str(Path(store.url.removeprefix("sqlite:///")).with_name("activity.db")))
    connection.execute("BEGIN EXCLUSIVE")
    began = time.monotonic()
    for _ in range(20):
        assert (await client.get("albums")).status == 200
        await asyncio.sleep(0.05)
    assert time.monotonic() - began < 5
    connection.execute("ROLLBACK")
    connection.close()

    await until(lambda: len(logged(store)) == 21)
    assert caplog.text == ""


@sqlite
async def test_a_log_damaged_or_deleted_under_the_server_is_replaced(
    client: Client, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    file = Path(store.url.removeprefix("sqlite:///")).with_name("activity.db")
    await client.get("albums")
    await until(lambda: logged(store))
    for side in ("", "-wal", "-shm"):
        file.with_name(file.name + side).unlink()
    await client.get("albums")
    await until(lambda: file.exists() and len(logged(store)) == 1)

    file.write_bytes(b"\xff" * 4096)
    await client.get("albums/9")
    await until(lambda: [entry.status for entry in logged(store)] == [404])
    assert file.with_name("activity.db.aside-1").exists()
    assert "created a new one" in caplog.text


async def test_old_calls_are_deleted_while_the_server_runs(store: Store, clock: MovableClock, bounds: Bounds) -> None:
    bounds(first_pruning_seconds=0.3, pruning_seconds=0.3)
    settings = Settings(activity={"keep_days": 30})
    async with running(store, clock, settings) as anonymous:
        await anonymous.get("albums")
        clock.advance(30 * DAY)
        await anonymous.get("albums/1")
        clock.advance(1)
        await until(lambda: [entry.status for entry in logged(store)] == [404])


@sqlite
async def test_a_fault_in_deleting_old_calls_is_logged_and_deleting_goes_on(
    store: Store, clock: MovableClock, bounds: Bounds, caplog: pytest.LogCaptureFixture
) -> None:
    bounds(first_pruning_seconds=0.05, pruning_seconds=0.05)
    with activity_log.build(store.url) as file:
        log = ActivityWriter(file, store, clock, keep_days=10**9, workers=1)  # beyond the integers of SQLite
        log.start()
        await until(lambda: caplog.text.count("background job failed: deleting old calls from the activity log") > 1)
        await log.stop()
