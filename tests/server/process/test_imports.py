"""An import of a page while its process is killed, and while the server stops."""

import asyncio
import os
import signal
from collections.abc import Callable

import pytest

from musicsvc.clock import Clock
from musicsvc.store.accounts import users
from musicsvc.store.engine.store import Store
from musicsvc.store.models import ImportRun, Track
from musicsvc.store.security import sessions
from tests.support.page_client import PageClient, page_client, text
from tests.support.program import Program, until

ROWS = 3_000  # take some seconds


def sign_in(store: Store) -> str:
    def create() -> str:
        now = Clock().now()
        ann = users.create("ann@label.test", api_access=True, now=now)
        return sessions.create(ann, address="127.0.0.1", agent="Tests/1.0", now=now)

    return store.write(create).result()


async def shown(browser: PageClient, path: str, words: str) -> str:
    """Return the page once it shows these words."""
    async with asyncio.timeout(60):
        while words not in (page := text(await browser.get(path))):  # noqa: ASYNC110 - as browsers do
            await asyncio.sleep(0.05)
    return page


@pytest.mark.slow
async def test_an_import_goes_on_after_a_kill_a_restart_and_new_settings(
    serve: Callable[..., Program], store: Store
) -> None:
    count = lambda: store.read(Track.select().count).result()  # noqa: E731 - short
    session = sign_in(store)
    program = serve("--workers", "2")
    async with page_client(program.root) as browser:
        browser.cookies = {"musicsvc": session}
        rows = "\n".join(("Title,Artist", *(f"Etude {row},Czerny" for row in range(ROWS)), "")).encode()
        path = (await browser.post("/import", {"file": ("etudes.csv", rows)})).headers["Location"]
        await shown(browser, path, "Import the file")
        await browser.post(f"{path}/start")
        await asyncio.to_thread(until, lambda: count() > 0)
        killed = program.workers
        for worker in killed:
            os.kill(worker, signal.SIGKILL)
        await asyncio.to_thread(until, lambda: len(set(program.workers) - set(killed)) == 2)
    async with page_client(program.root) as browser:
        browser.cookies = {"musicsvc": session}
        page = await shown(browser, path, "Continue the import")
        assert "The service was interrupted while it worked on this." in page
        some = count()
        assert 0 < some < ROWS
        await browser.post(f"{path}/start")
        await asyncio.to_thread(until, lambda: count() > some)
    program.process.terminate()
    assert program.process.wait(30) == 0
    more = count()
    assert some < more < ROWS
    program = serve()
    async with page_client(program.root) as browser:
        browser.cookies = {"musicsvc": session}
        assert "The service stops." in await shown(browser, path, "Continue the import")
        await browser.post(f"{path}/start")
        await asyncio.to_thread(until, lambda: count() > more)
        program.process.send_signal(signal.SIGHUP)  # the process that imports retires when that is done
        await shown(browser, path, "Import another file")
    assert count() == ROWS
    states = store.read(lambda: [run.state for run in ImportRun.select().order_by(ImportRun.id)]).result()
    assert states == ["stopped", "stopped", "done"]
