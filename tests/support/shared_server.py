"""A server shared by the tests of a module; each test creates its own accounts and subjects."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from musicsvc.clock import MovableClock
from musicsvc.config import Settings
from musicsvc.store import opening
from musicsvc.store.engine.store import Store
from tests.conftest import NOW
from tests.rights.world import WHO, World
from tests.support import databases
from tests.support.serving import Client, running

on_shared_loop = pytest.mark.asyncio(loop_scope="module")


class Shared(NamedTuple):
    """A running server, its store and its stopped clock."""

    client: Client
    store: Store
    clock: MovableClock

    def world(self, kinds: Sequence[str] = WHO) -> World:
        """Create accounts that no other test knows."""
        return World(self.store, self.clock, kinds)


@asynccontextmanager
async def shared_server(
    template: databases.Template, folder: Path, settings: Settings | None = None
) -> AsyncIterator[Shared]:
    """Serve a new database."""
    clock = MovableClock(NOW, speed=0)
    with databases.Maker(template, folder) as maker, opening.connect(maker.make()) as store:
        template.make_log(store.url)
        async with running(store, clock, settings) as client:
            yield Shared(client, store, clock)
