"""Fixtures for tests of pages: signed-in people, a browser, a server whose limits hold for this machine."""

from collections.abc import AsyncIterator
from itertools import count

import pytest
import pytest_asyncio

from musicsvc.config import Limits, Settings
from musicsvc.store.accounts import api_access
from tests.support import databases
from tests.support.listening_world import fill
from tests.support.office import Office
from tests.support.page_client import PageClient, add_account, add_session, page_client
from tests.support.shared_server import Shared, shared_server
from tests.support.signed_in import Person, World

NUMBERS = count()


@pytest_asyncio.fixture(loop_scope="module")
async def office(shared: Shared) -> AsyncIterator[Office]:
    async with page_client(shared.client.root) as browser:
        yield Office(shared, browser, next(NUMBERS))


@pytest_asyncio.fixture(loop_scope="module")
async def person(shared: Shared) -> AsyncIterator[Person]:
    """An account without API access."""
    email = f"person{next(NUMBERS)}@label.test"
    async with page_client(shared.client.root) as browser:
        opened = Person(shared, browser, add_account(shared, email), email)
        browser.cookies = {"musicsvc": add_session(shared, opened.id)}
        yield opened


@pytest_asyncio.fixture(loop_scope="module")
async def developer(person: Person) -> Person:
    """An account with API access."""
    person.do(lambda user: api_access.grant(user, now=1))
    return person


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def limited(template: databases.Template, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Shared]:
    """A server whose limits also hold for this machine."""
    settings = Settings(limits=Limits(local=True))
    async with shared_server(template, tmp_path_factory.mktemp("limited"), settings) as server:
        yield server


@pytest_asyncio.fixture(loop_scope="module")
async def browser(limited: Shared) -> AsyncIterator[PageClient]:
    async with page_client(limited.client.root) as opened:
        yield opened


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(template: databases.Template, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    """A server with figures, and a browser in which their manager is signed in."""
    async with (
        shared_server(template, tmp_path_factory.mktemp("figures")) as shared,
        page_client(shared.client.root) as browser,
    ):
        made = shared.store.write(lambda: fill(shared.clock.now())).result()
        browser.cookies["musicsvc"] = add_session(shared, made.manager.user_id)
        yield World(shared, browser, made)
