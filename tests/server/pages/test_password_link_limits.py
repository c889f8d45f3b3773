"""Links to set a password: an unknown one costs no hash, counts for its address, and delays no sign-in."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from musicsvc.server.request.executors import RESERVED, Work
from musicsvc.store.accounts import password_links, passwords, users
from tests.rights.world import PASSWORD, PASSWORD_HASH
from tests.support.page_client import PageClient, add_account, page_client, text
from tests.support.shared_server import Shared, on_shared_loop

NEW = "four romances for viola"
UNKNOWN = "/password/" + "x" * 43
CAPACITY = Work.SETTING_PASSWORDS.value.threads + Work.SETTING_PASSWORDS.value.waiting - RESERVED  # of one address
PATIENCE = 30.0


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The passwords that were hashed for storing."""
    found: list[str] = []
    hash_password = passwords.hash_password

    def noted(password: str) -> str:
        found.append(password)
        return hash_password(password)

    monkeypatch.setattr(passwords, "hash_password", noted)
    return found


def add_link(server: Shared, email: str) -> str:
    """Create an account and return the path of its link."""
    user_id, now = add_account(server, email), server.clock.now()
    link = server.store.write(lambda: password_links.create(users.get(user_id), now=now)).result()
    return f"/password/{link.secret}"


@asynccontextmanager
async def another(browser: PageClient, last: int) -> AsyncIterator[PageClient]:
    """Open a browser at another address."""
    async with page_client(browser.root) as opened:
        opened.move(last)
        yield opened


@on_shared_loop
async def test_an_address_asks_for_20_unknown_links_a_minute_and_none_is_hashed(
    limited: Shared, browser: PageClient, hashed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = limited.clock.monotonic()
    monkeypatch.setattr(limited.clock, "monotonic", lambda: now)  # so that a busy machine changes no seconds left
    path = add_link(limited, "known@link.test")
    browser.move(21)
    for number in range(20):
        asked = browser.get(UNKNOWN) if number % 3 else browser.post(UNKNOWN, {"new_password": NEW})
        answer = await asked
        assert (answer.status, answer.headers["RateLimit"]) == (404, f'"password_links";r={19 - number};t=60')
    for asked in (browser.get(UNKNOWN), browser.head(UNKNOWN), browser.post(UNKNOWN, {"new_password": NEW})):
        answer = await asked
        assert (answer.status, answer.headers["RateLimit-Policy"]) == (429, '"password_links";q=20;w=60')
        assert 0 < int(answer.headers["Retry-After"]) <= 60
    shown = await browser.get(UNKNOWN)
    assert "The limit of 20 unknown links a minute for your address is reached." in text(shown)
    assert hashed == []
    assert (await browser.get(path)).status == 200  # a link that is known does not count and is not refused
    assert (await browser.post(path, {"new_password": NEW})).status == 303
    assert hashed == [NEW]
    async with another(browser, 22) as elsewhere:
        assert (await elsewhere.get(path)).status == 404  # it was used
        assert (await elsewhere.get(path)).headers["RateLimit"] == '"password_links";r=18;t=60'
    assert hashed == [NEW]


@on_shared_loop
async def test_a_full_line_of_links_refuses_links_only(shared: Shared, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [add_link(shared, f"line{number}@link.test") for number in range(CAPACITY + 1)]
    add_account(shared, "beside@link.test")
    finished = threading.Event()
    monkeypatch.setattr(passwords, "hash_password", _held(finished, NEW))
    async with page_client(shared.client.root) as browser, page_client(shared.client.root) as beside:
        fields = {"new_password": NEW, "form_token": await browser.form_token()}
        waiting = [asyncio.create_task(browser.post(path, fields)) for path in paths]
        done, held = await asyncio.wait(waiting, timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
        (busy,) = [each.result() for each in done]
        assert (busy.status, busy.headers["Retry-After"], len(held)) == (503, "1", CAPACITY)
        assert "Too many requests of this kind are under way." in text(busy)
        assert (await beside.sign_in("beside@link.test")).status == 303
        assert (await beside.post("/sign-out")).status == 303
        assert (await beside.post("/register", {"email": "new@link.test", "password": PASSWORD})).status == 303
        assert not any(each.done() for each in held)
        finished.set()
        assert {(await each).status for each in held} == {303}


def _held(finished: threading.Event, held: str) -> Callable[[str], str]:
    """Return a function that waits with the password `held` until the event is set."""

    def hash_password(password: str) -> str:
        if password == held:
            finished.wait(PATIENCE)
        return PASSWORD_HASH

    return hash_password
