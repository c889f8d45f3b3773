"""The server in the process of a test, and a small client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import aiohttp
from aiohttp.test_utils import BaseTestServer, TestClient
from aiohttp.web import BaseRequest, BaseRunner
from yarl import URL

from musicsvc.clock import Clock
from musicsvc.config import Settings
from musicsvc.server import serving
from musicsvc.server.app import App
from musicsvc.server.network import tls
from musicsvc.server.network.tls import Configuration
from musicsvc.store.accounts import tokens, users
from musicsvc.store.engine.store import Store


@dataclass
class Answer:
    """A complete answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Client:
    """A client of one server; `token` is sent unless another one is given."""

    def __init__(self, session: aiohttp.ClientSession, root: str, token: str | None = None) -> None:
        self.session = session
        self.root = root
        self.token = token

    def holding(self, token: str | None) -> Client:
        """Return the same client with another token."""
        return Client(self.session, self.root, token)

    async def __call__(
        self, method: str, path: str, body: Any = None, *, headers: Mapping[str, str] | None = None, data: Any = None
    ) -> Answer:
        sent = dict(headers or {})
        if self.token is not None:
            sent.setdefault("Authorization", f"Bearer {self.token}")
        url = path if path.startswith("http") else f"{self.root}{path if path.startswith('/') else '/api/v1/' + path}"
        kind = {"data": data} if data is not None else {} if body is None else {"json": body}
        async with self.session.request(method, url, headers=sent, allow_redirects=False, **kind) as answer:
            return Answer(answer.status, answer.headers, await answer.read())

    async def get(self, path: str, **more: Any) -> Answer:
        return await self("GET", path, **more)

    async def post(self, path: str, body: Any = None, **more: Any) -> Answer:
        return await self("POST", path, body, **more)

    async def put(self, path: str, body: Any = None, **more: Any) -> Answer:
        return await self("PUT", path, body, **more)

    async def delete(self, path: str, body: Any = None, **more: Any) -> Answer:
        return await self("DELETE", path, body, **more)


default_settings = lru_cache(Settings)  # of the environment of the run; reading it takes a tenth of a server's start


class ServiceServer(BaseTestServer):
    """The service in the process of the test, on a free port, with TLS if the settings name a certificate."""

    def __init__(self, store: Store, clock: Clock, settings: Settings | None = None, root: str | None = None) -> None:
        """`root`: the address in its responses, by default its own."""
        super().__init__()
        self._named = root
        self._store = store
        self._clock = clock
        self._settings = settings or default_settings()
        self.service: App | None = None

    async def start_server(self, loop: asyncio.AbstractEventLoop | None = None, **_options: Any) -> None:
        self._loop = loop
        configuration = Configuration(self._settings, tls.create_context(self._settings.server))
        listener = serving.listen(self.host, 0)
        self.port = listener.getsockname()[1]
        scheme = "http" if configuration.tls is None else "https"
        self._root = URL.build(scheme=scheme, host=self.host, port=self.port, path=self._settings.server.base_path)
        root = self._named or configuration.root(listener)
        self.service = App(self._settings, self._store, self._clock, root)
        await self.service.start(listener, configuration.tls)

    async def _make_runner(self, **_options: Any) -> BaseRunner:
        raise NotImplementedError("the service accepts its connections itself")

    @property
    def started(self) -> bool:
        return self.service is not None

    async def close(self) -> None:
        if self.service is not None and not self.closed:
            self._closed = True
            await self.service.stop()


def connector() -> aiohttp.TCPConnector:
    """Connections with a resolver that closes at once; that of aiohttp's own choice takes ten milliseconds."""
    return aiohttp.TCPConnector(resolver=aiohttp.ThreadedResolver())


class StartServer(Protocol):
    """Starts a server for the rest of the test and returns a client without a token."""

    async def __call__(
        self, settings: Settings | None = None, *, store: Store | None = None, clock: Clock | None = None
    ) -> Client: ...


@asynccontextmanager
async def running(store: Store, clock: Clock, settings: Settings | None = None) -> AsyncIterator[Client]:
    """Run a server for the block only, and yield a client without a token."""
    server = ServiceServer(store, clock, settings)
    client: TestClient[BaseRequest, None] = TestClient(server, connector=connector())
    async with client:
        yield Client(client.session, str(server.make_url("")))


def person(
    store: Store, clock: Clock, email: str, *, access: bool = True, scope: tokens.Scope = "read-write"
) -> tuple[int, str]:
    """Create an account and a token; return the account's id and the token's value."""

    def make() -> tuple[int, str]:
        user = users.create(email, api_access=access, now=clock.now())
        return user.id, tokens.create(user, "test", scope=scope, now=clock.now(), without_access=True)[1]

    return store.write(make).result()
