"""A real server on a real socket for tests, and a small client that speaks to it."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import aiohttp

from musicsvc.config import Settings
from musicsvc.server import serving
from musicsvc.server.app import App
from musicsvc.server.network import tls
from musicsvc.store.accounts import tokens, users

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from musicsvc.clock import Clock
    from musicsvc.store.engine.store import Store


@dataclass
class Answer:
    """A whole answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Client:
    """Speaks to one server; `token` is sent where no other is given."""

    def __init__(self, session: aiohttp.ClientSession, root: str, token: str | None = None) -> None:
        self._session = session
        self.root = root
        self.token = token

    def holding(self, token: str | None) -> Client:
        """The same client with another token."""
        return Client(self._session, self.root, token)

    async def __call__(
        self, method: str, path: str, body: Any = None, *, headers: Mapping[str, str] | None = None, data: Any = None
    ) -> Answer:
        sent = dict(headers or {})
        if self.token is not None:
            sent.setdefault("Authorization", f"Bearer {self.token}")
        url = path if path.startswith("http") else f"{self.root}{path if path.startswith('/') else '/api/v1/' + path}"
        kind = {"data": data} if data is not None else {} if body is None else {"json": body}
        async with self._session.request(method, url, headers=sent, allow_redirects=False, **kind) as answer:
            return Answer(answer.status, answer.headers, await answer.read())

    async def get(self, path: str, **more: Any) -> Answer:
        return await self("GET", path, **more)

    async def post(self, path: str, body: Any = None, **more: Any) -> Answer:
        return await self("POST", path, body, **more)

    async def put(self, path: str, body: Any = None, **more: Any) -> Answer:
        return await self("PUT", path, body, **more)

    async def delete(self, path: str, body: Any = None, **more: Any) -> Answer:
        return await self("DELETE", path, body, **more)


@asynccontextmanager
async def running(store: Store, clock: Clock, settings: Settings | None = None) -> AsyncIterator[Client]:
    """A server on a port of its own, with TLS where the settings say so, and a client without a token."""
    settings = settings or Settings()
    context = tls.create_context(settings.server)
    listener = serving.listen("127.0.0.1", 0)
    root = serving.root_of(settings, listener, tls=context is not None)
    app = App(settings, store, clock, root)
    await app.start(listener, context)
    local = f"{'http' if context is None else 'https'}://127.0.0.1:{listener.getsockname()[1]}"
    try:
        # The resolver of aiohttp's own choice takes ten milliseconds to close.
        connector = aiohttp.TCPConnector(resolver=aiohttp.ThreadedResolver())
        async with aiohttp.ClientSession(connector=connector) as session:
            yield Client(session, local)
    finally:
        await app.stop()


def person(store: Store, clock: Clock, email: str, *, access: bool = True) -> tuple[int, str]:
    """An account and its token: its id and the token's value."""

    def make() -> tuple[int, str]:
        user = users.create(email, api_access=access, now=clock.now())
        return user.id, tokens.create(user, "test", now=clock.now(), without_access=True)[1]

    return store.write(make).result()
