"""Fixtures for tests of pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest_asyncio

from tests.support.office import Office
from tests.support.page_client import page_client

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.support.shared_server import Shared


@pytest_asyncio.fixture(loop_scope="module")
async def office(shared: Shared, request: Any) -> AsyncIterator[Office]:
    async with page_client(shared.client.root) as browser:
        yield Office(shared, browser, abs(hash(request.node.name)))
