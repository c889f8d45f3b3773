"""Rate limits over all processes of a server are exact."""

import asyncio
import os
import signal
from collections import Counter
from pathlib import Path

import aiohttp
import pytest

from musicsvc.clock import Clock
from musicsvc.store import opening
from tests.support.program import Program, until
from tests.support.serving import Client, person
from tests.support.waiting import PATIENCE

WORKERS = 3
AMOUNT = 50
MANY = 200  # some of them are counted in advance


async def statuses(client: Client, requests: int) -> Counter[int]:
    answers = await asyncio.gather(*(client.get("albums") for _ in range(requests)))
    return Counter(answer.status for answer in answers)


@pytest.mark.on_both
@pytest.mark.slow
async def test_parallel_requests_are_limited_exactly(
    store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opening.connect(store_url) as store:
        _, token = person(store, Clock(), "ann@label.test")
    for name, value in {
        "DATABASE_URL": store_url,
        "DATA_DIR": str(tmp_path / "folder"),
        "LIMITS__LOCAL": "true",
        "LIMITS__TOKEN": f"{AMOUNT}/hour",
        "LIMITS__ADDRESS": f"{MANY}/hour",
    }.items():
        monkeypatch.setenv(f"MUSICSVC_{name}", value)
    with Program(tmp_path, "serve", "--port", "0", "--workers", str(WORKERS)) as program:
        connector = aiohttp.TCPConnector(force_close=True, limit=30)
        async with aiohttp.ClientSession(connector=connector) as session:
            anonymous = Client(session, program.root)
            assert await statuses(anonymous.holding(token), 3 * AMOUNT) == {200: AMOUNT, 429: 2 * AMOUNT}
            allowed = 0
            async with asyncio.timeout(PATIENCE):
                while allowed < MANY:  # what is counted in advance and not used is given back
                    allowed += (await statuses(anonymous, 100))[200]
                    await asyncio.sleep(0.1)
            assert (allowed, await statuses(anonymous, AMOUNT)) == (MANY, {429: AMOUNT})
            # A worker that takes the place of a dead one knows what was spent.
            old = program.workers
            for worker in old:
                os.kill(worker, signal.SIGKILL)
            until(lambda: len(program.workers) == WORKERS and not set(program.workers) & set(old))
            assert (await anonymous.get("albums")).status == 429
