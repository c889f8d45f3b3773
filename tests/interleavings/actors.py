"""Servers and other processes over one database, and requests to them that are compared with a model."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from musicsvc.store.engine.store import Store
from tests.interleavings.model import History, Look, View
from tests.support.serving import Answer, Client


@dataclass
class Service:
    """Servers, each on a machine, and two more processes on the machine HERE.

    `store` is open in this process. `command` begins a command; its result returns whether the command is done.
    """

    loop: asyncio.AbstractEventLoop
    clients: Sequence[Client]
    machines: Sequence[str]
    store: Store
    command: Callable[[Sequence[str]], Callable[[], bool]]


class Caller:
    """Sends requests with a token to the servers, and verifies what they show."""

    def __init__(self, service: Service, token: str) -> None:
        self._service = service
        self._token = token
        self._kept: dict[tuple[str, str | None], Answer] = {}
        self._looks = 0

    def _client(self, server: int, token: str | None = None) -> Client:
        clients = self._service.clients
        return clients[server % len(clients)].holding(token or self._token)

    def machine(self, server: int) -> str:
        return self._service.machines[server % len(self._service.machines)]

    def look(self, *views: View) -> None:
        """Verify these views on every server."""
        for look in self._ask([], views)[1]:
            look.verify()

    def write(
        self,
        server: int,
        request: tuple[Any, ...],
        views: Sequence[View],
        changes: Callable[[Answer], Sequence[tuple[History, object]]],
        token: str | None = None,
    ) -> None:
        """Send a request that changes these views, beside reads, which show what was before or after it.

        `request`: method, path and body. `changes`: a function of the answer, which returns new values.
        """
        (answer,), looks = self._ask([self._client(server, token)(*request)], views)
        assert answer.status in {200, 201}, answer
        for history, value in changes(answer):
            history.add(value, self.machine(server))
        for look in looks:
            look.verify()
        self.look(*views)

    def write_at_once(
        self, servers: Sequence[int], requests: Sequence[tuple[Any, ...]], views: Sequence[View]
    ) -> list[Look]:
        """Send requests to different servers at once. Return reads beside them, which are not verified yet."""
        requested = [self._client(server)(*request) for server, request in zip(servers, requests, strict=True)]
        answers, looks = self._ask(requested, views)
        assert {answer.status for answer in answers} == {200}, answers
        return looks

    def _ask(
        self, requests: Sequence[Coroutine[Any, Any, Answer]], views: Sequence[View]
    ) -> tuple[list[Answer], list[Look]]:
        """Send requests and, beside them, one for each view to every server."""

        async def gather() -> list[Any]:
            servers = range(len(self._service.clients))
            looks = (self._look(server, view) for view in views for server in servers)
            answers: list[Any] = await asyncio.gather(*requests, *looks)
            return answers

        answers = self._service.loop.run_until_complete(gather())
        return answers[: len(requests)], answers[len(requests) :]

    async def _look(self, server: int, view: View) -> Look:
        """Ask for a view; every second time with the entity tag of the last answer of any server."""
        key = view.path, view.token
        began, kept = time.monotonic(), self._kept.get(key)
        self._looks += 1
        headers = {"If-None-Match": kept.headers["ETag"]} if kept and self._looks % 2 else {}
        answer = await self._client(server, view.token).get(view.path, headers=headers)
        if answer.status == 200:
            self._kept[key] = answer
        elif answer.status == 304:
            assert kept is not None
            answer = kept
        return Look(view, self.machine(server), began, answer)
