"""The activity log of real processes: flushed by SIGTERM, intact after SIGKILL, shared by all workers."""

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from musicsvc.store.activity import calls as activity_calls
from musicsvc.store.activity import log as activity_log
from musicsvc.store.activity.calls import Entry
from tests.support.program import Program
from tests.support.raw_connection import connected, request
from tests.support.waiting import until

CLIENTS, CALLS = 8, 18  # fewer in all than each worker logs one by one of an address without a token


@pytest.fixture
def serve(tmp_path: Path, store_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Program]:
    """Run a server with two workers on the database of the test."""
    monkeypatch.setenv("MUSICSVC_DATA_DIR", str(tmp_path / "folder"))
    monkeypatch.setenv("MUSICSVC_DATABASE_URL", store_url)
    with Program(tmp_path, "serve", "--port", "0", "--workers", "2") as program:
        yield program


async def call(root: str, client: int) -> list[str]:
    """Return the request ids of the calls of this client, all of them answered."""
    names = [f"client-{client}-{number}" for number in range(CALLS)]
    async with connected(root) as wire:
        for name in names:
            await wire.send(request("GET", "/api/v1/albums", f"X-Request-Id: {name}"))
            assert (await wire.answer()).status == 200
    return names


async def answered(program: Program, first: int = 0) -> set[str]:
    """Return the request ids of parallel clients, numbered from `first`."""
    calls = [call(program.root, client) for client in range(first, first + CLIENTS)]
    return {name for names in await asyncio.gather(*calls) for name in names}


def logged(store_url: str) -> list[Entry]:
    with activity_log.build(store_url) as log:
        return log.read(lambda: activity_calls.find(limit=10_000)).result() if log.open_existing() else []


async def test_sigterm_flushes_the_log_of_every_worker(serve: Program, store_url: str) -> None:
    names = await answered(serve)
    assert serve.end(signal.SIGTERM) == 0

    entries = logged(store_url)
    assert len(entries) == CLIENTS * CALLS
    assert {entry.request_id for entry in entries} == names
    assert [entry.at for entry in entries] == sorted(entry.at for entry in entries)
    assert activity_log.check(store_url) == []


@pytest.mark.on_both
@pytest.mark.slow
async def test_a_killed_server_loses_only_the_latest_of_the_log(serve: Program, store_url: str, tmp_path: Path) -> None:
    first = await answered(serve)
    await until(lambda: first <= {entry.request_id for entry in logged(store_url)})
    last = await answered(serve, CLIENTS)
    os.killpg(serve.process.pid, signal.SIGKILL)  # the session of the server alone, its workers included
    serve.process.wait()

    with Program(tmp_path, "serve", "--port", "0") as again:
        assert await call(again.root, 99)
        assert again.end(signal.SIGTERM) == 0
    kept = [entry.request_id for entry in logged(store_url)]
    assert first <= set(kept) <= first | last | {f"client-99-{number}" for number in range(CALLS)}
    assert len(kept) == len(set(kept))
    assert activity_log.check(store_url) == []
