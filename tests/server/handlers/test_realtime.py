"""A play counts in every process of the server as soon as it is acknowledged."""

import time
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from musicsvc.clock import SECOND, Clock
from musicsvc.server.routes.route import INSIGHTS
from musicsvc.store import opening
from tests.support.listening_world import Catalog, catalog
from tests.support.program import Program
from tests.support.serving import Client

WORKERS = 3


@pytest.fixture
def made(store_url: str) -> Catalog:
    """A catalog and a token in the time of this machine's clock, which the server uses."""
    with opening.connect(store_url) as store:
        return store.write(lambda: catalog(Clock().now())).result()


@pytest.fixture
async def everywhere(
    store_url: str, made: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Client]:
    """A client of a server with several processes, any of which may answer a request."""
    monkeypatch.setenv("MUSICSVC_DATABASE_URL", store_url)
    monkeypatch.setenv("MUSICSVC_DATA_DIR", str(tmp_path / "folder"))
    with Program(tmp_path, "serve", "--port", "0", "--workers", str(WORKERS)) as program:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as session:
            yield Client(session, program.root, made.token)


@pytest.mark.on_both
@pytest.mark.slow  # the memory of other processes: test_interleavings.py
async def test_every_process_counts_plays_reported_to_any(everywhere: Client, made: Catalog) -> None:
    track, now = made.tracks[0], time.time_ns() // 1000 // SECOND
    for number in range(1, 6):
        # A half minute each, so that none is a repeat of the one before.
        played_at = now - 30 * number
        taken = await everywhere.post("plays", {"plays": [{"track_id": track, "played_at": played_at}]})
        assert taken.json["accepted"] == 1, taken.body
        for _ in range(3 * WORKERS):
            answer = await everywhere.get(f"{INSIGHTS}/tracks/{track}/realtime")
            assert answer.json["data"]["plays_last_hour"] == number
            assert len(answer.json["data"]["recent_plays"]) == number
        figures = await everywhere.get(f"{INSIGHTS}/tracks/{track}")
        assert figures.json["data"]["plays"]["total"] == number
