"""Reads go on while many people sign in at once."""

import asyncio
import time
from collections import Counter

import pytest

from musicsvc.store import opening
from musicsvc.store.accounts import passwords, users
from tests.rights.world import PASSWORD
from tests.server.conftest import Start
from tests.support.page_client import PageClient, page_client, text

pytestmark = pytest.mark.only_on("sqlite")  # the same over either database

SIGN_INS = 200
LONGEST = 3.0  # seconds, the 99th percentile of a read on a busy machine; the sign-ins one after the other take longer


@pytest.mark.slow
async def test_reads_go_on_beside_200_sign_ins(start: Start, store_url: str) -> None:
    with opening.connect(store_url) as store:
        store.write(
            lambda: users.create("clara@new.test", password_hash=passwords.hash_password(PASSWORD), now=1)
        ).result()
    root = start().root
    async with page_client(root) as browser, page_client(root) as reader:
        assert await read_during_sign_ins(browser, reader) < LONGEST


async def read_during_sign_ins(browser: PageClient, reader: PageClient) -> float:
    """Sign in 200 times at once, and return the 99th percentile of the seconds of reads meanwhile."""
    token = await browser.form_token()
    forms = [
        {"email": "clara@new.test", "password": PASSWORD if number % 2 else "wrong", "form_token": token}
        for number in range(SIGN_INS)
    ]
    signing_in = asyncio.gather(*(browser.post("/sign-in", form) for form in forms))
    seconds = []
    while not signing_in.done():
        began = time.perf_counter()
        assert (await reader.get("/api/v1/albums")).status == 200
        seconds.append(time.perf_counter() - began)
        await asyncio.sleep(0.01)
    answers = await signing_in
    statuses = Counter(answer.status for answer in answers)
    assert statuses.keys() == {303, 422, 503}
    busy = next(answer for answer in answers if answer.status == 503)
    assert busy.headers["Retry-After"] == "1"
    assert 'value="clara@new.test"' in text(busy)  # the form is shown again with what was typed
    return sorted(seconds)[int(len(seconds) * 0.99)]
