"""Pages that their readers do not read count towards the memory of unread answers."""

import asyncio
import re
from contextlib import AsyncExitStack

import pytest
from pydantic import ByteSize

from musicsvc.clock import DAY, MovableClock
from musicsvc.config import Server, Settings
from musicsvc.server.shapes import share_links
from musicsvc.server.shapes.envelope import Site
from musicsvc.store.dashboards import report_links
from musicsvc.store.engine.store import Store
from musicsvc.store.plays.periods import between, to_date
from musicsvc.store.plays.subjects import TRACK, Subject
from tests.support.listening_world import Catalog, catalog
from tests.support.page_client import add_account, add_session, page_client
from tests.support.raw_connection import not_reading, request
from tests.support.serving import Client, running
from tests.support.shared_server import Shared
from tests.support.waiting import PATIENCE

KIBIBYTE = 1024
BUDGET = 3 * KIBIBYTE * KIBIBYTE  # a quarter for each client
DAYS = 3_660

pytestmark = pytest.mark.only_on("sqlite")  # memory of answers, whatever the database


async def held(client: Client) -> int:
    """Return the bytes that unread answers hold."""
    figures = (await client.get("/metrics")).body.decode()
    return int(float(re.findall(r"^musicsvc_answer_memory_bytes (\S+)", figures, re.MULTILINE)[0]))


async def holding(client: Client, count: int) -> None:
    """Wait until unread answers hold this number of bytes."""
    async with asyncio.timeout(PATIENCE):
        while await held(client) != count:  # noqa: ASYNC110 - as asked
            await asyncio.sleep(0.02)


def played(store: Store, clock: MovableClock) -> tuple[Catalog, str, str]:
    """Create a track with a first play on the first of DAYS. Return the paths of its page and of a comparison."""
    now = clock.now()
    made = store.write(lambda: catalog(now)).result()
    track, user_id = made.tracks[0], made.manager.user_id
    store.write(lambda: made.add_plays([(track, now - (DAYS - 1) * DAY, "first")])).result()
    first, last = (to_date(now // DAY - ago) for ago in (DAYS - 1, 0))
    window = between(first, last, now)
    compared = [Subject(TRACK, each) for each in made.tracks[:2]]  # by day

    def share() -> str:
        link = report_links.create(compared, window, user_id=user_id, now=now)
        return share_links.address(link.id, link.created_at, Site(""))

    return made, f"/insights/track/{track}?from={first}&to={last}&by=day", store.write(share).result()


@pytest.mark.slow
async def test_pages_that_nobody_reads_share_the_memory_of_answers(store: Store, clock: MovableClock) -> None:
    made, path, report = played(store, clock)
    async with (
        running(store, clock, Settings(server=Server(answer_memory=ByteSize(BUDGET)))) as client,
        page_client(client.root) as manager,
        page_client(client.root) as other,
        AsyncExitStack() as stack,
    ):
        shared = Shared(client, store, clock)
        first, second = (add_session(shared, made.manager.user_id) for _ in range(2))
        manager.cookies["musicsvc"] = second
        other.cookies["musicsvc"] = add_session(shared, add_account(shared, "other@label.test"))
        size, report_size = [len((await manager.get(each)).body) for each in (path, report)]
        assert BUDGET / 8 < min(size, report_size) < max(size, report_size) < BUDGET / 4  # one fits, two do not
        await holding(client, 0)
        raw = request("GET", path, f"Cookie: musicsvc={first}")
        reader = await stack.enter_async_context(not_reading(client.root, raw))
        await holding(client, size)
        refused = await manager.get(path)
        assert (refused.status, refused.headers["Retry-After"]) == (503, "1")
        assert b"Responses you have not read yet use all of the 0.8 MiB allowed per client." in refused.body
        assert {(await manager.get(each)).status for each in ("/settings", "/")} == {200}
        assert (await client.holding(made.token).get("albums")).status == 200
        assert (await other.get(report)).status == 200

        await stack.enter_async_context(not_reading(client.root, request("GET", report)))
        await holding(client, size + report_size)
        assert (await client.get(report)).status == 503  # of the same address, without a session
        assert (await other.get(report)).status == 200
        reader.close()
        await holding(client, report_size)
        assert (await manager.get(path)).status == 200
