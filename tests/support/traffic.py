"""Traffic of a token, generated from a profile in `fixtures/traffic/`, as entries of the activity log.

A profile has clients that share a token. Each client has workers, which send one request after the other. The profile
names the status of each response; 429 comes from the limit that the traffic is played against.
"""

from __future__ import annotations

import heapq
import math
import random
import tomllib
from collections.abc import Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from musicsvc.clock import SECOND, parse
from musicsvc.server.routes.table import ROUTES
from musicsvc.store.activity.calls import Entry
from musicsvc.store.rate_limits import window as rate_limit_window
from musicsvc.store.rate_limits.window import Hit, MemoryHitCounter

FOLDER = Path(__file__).resolve().parents[2] / "fixtures" / "traffic"
BEGAN = parse("2026-03-01T12:00:17Z")
TOKEN, ACCOUNT = 7, 3
NEW = 100_000  # the first unused id
OWN = 20  # own resources, requested repeatedly
SAVED_FROM, SAVED = 1_000, 60  # first id and number of saved resources of others, requested repeatedly
RESPONSE_SECONDS = 0.05  # from a request to its response at the client

PRIVATE = {(route.method, route.path) for route in ROUTES if route.private}

Step = dict[str, Any]


class Limit(Protocol):
    """A rate limit; `hit` returns None for a request allowed at this time (seconds), else its Retry-After."""

    def hit(self, at: float) -> int | None: ...


class SlidingWindow:
    """The limit of the service, on the clock of the traffic."""

    def __init__(self, amount: int = 300, seconds: int = 60) -> None:
        self._now = 0
        self._counter = MemoryHitCounter(lambda: self._now)
        self._hits = [Hit(rate_limit_window.Limit("token", amount, seconds * rate_limit_window.SECOND), str(TOKEN))]

    def hit(self, at: float) -> int | None:
        self._now = int((at + 1) * rate_limit_window.SECOND)
        (status,) = self._counter.count(self._hits)
        return None if status.allowed else max(1, math.ceil(status.wait / rate_limit_window.SECOND))


@dataclass
class FixedWindow:
    """A number of requests in each window; a refused request waits for the next window."""

    amount: int = 300
    seconds: float = 60
    _window: int = -1
    _used: int = 0

    def hit(self, at: float) -> int | None:
        window, passed = divmod(at, self.seconds)
        if window != self._window:
            self._window, self._used = int(window), 0
        if self._used < self.amount:
            self._used += 1
            return None
        return max(1, math.ceil(self.seconds - passed))


@dataclass
class Bucket:
    """A bucket that drains steadily; a refused request waits until `fit` requests fit in."""

    amount: int = 300
    seconds: float = 60
    fit: int = 1
    _full_at: float = 0.0

    def hit(self, at: float) -> int | None:
        pace = self.seconds / self.amount
        full_at = max(self._full_at, at) + pace
        if full_at - at <= self.seconds:
            self._full_at = full_at
            return None
        return max(1, math.ceil(self._full_at + self.fit * pace - self.seconds - at))


@dataclass
class Client:
    """A client: each of its `workers` runs the steps, `rounds` times with `rest` seconds between.

    `on_429`: the share of Retry-After that a worker waits before it repeats a refused request; 1 is obedient, 0 ignores
    it. `gives_up`: it skips a refused request instead. `pace`: seconds from a response to the next request, varied by
    the share `jitter`.

    A step is sent `times` times and answered with `status`. `ids`: `own` and `saved` are requested repeatedly, `new`
    ones once, `malformed` ones name no resource. `noun`: the kind of resource where the path does not show it.
    """

    steps: list[Step]
    workers: int = 1
    addresses: int = 1
    rounds: int = 1
    rest: float = 0.0
    start: float = 0.0
    pace: float = 0.2
    jitter: float = 0.0
    on_429: float = 1.0
    gives_up: bool = False


@dataclass
class Profile:
    """Named traffic; `rule`: the rule that it violates, None for an honest one."""

    name: str
    about: str
    clients: list[Client]
    rule: str | None = None

    def requests(self) -> Generator[Request, int | None, None]:
        """Yield the requests in the order of time, the same at every run; send back the Retry-After of each."""
        chance, new = random.Random(self.name), count(NEW)
        workers = [_Worker(client, chance, new) for client in self.clients for _ in range(client.workers)]
        due = [(worker.client.start, number) for number, worker in enumerate(workers)]
        heapq.heapify(due)
        while due:
            at, number = heapq.heappop(due)
            worker = workers[number]
            again = worker.answered(
                (yield Request(at, f"127.0.{number}.{worker.address()}", worker.step, worker.resource_id()))
            )
            if again is not None:
                heapq.heappush(due, (at + RESPONSE_SECONDS + again, number))

    def entries(self, limit: Limit) -> list[Entry]:
        """Return the log entries of the traffic against a limit."""
        requests = self.requests()
        entries: list[Entry] = []
        request = next(requests)
        with suppress(StopIteration):
            while True:
                retry_after = limit.hit(request.at)
                entries.append(_entry(len(entries), request, retry_after))
                request = requests.send(retry_after)
        return entries


class Request(NamedTuple):
    """A request: time in seconds, address, step of the profile, id of the resource."""

    at: float
    address: str
    step: Step
    resource_id: int | None


class _Worker:
    def __init__(self, client: Client, chance: random.Random, new: Iterator[int]) -> None:
        self.client = client
        self._chance = chance
        self._new = new
        self._sent = 0
        self._script = self._steps()
        self.step, self._pause = next(self._script)

    def _steps(self) -> Iterator[tuple[Step, float]]:
        """Yield the steps, each with the seconds from its response to the next request."""
        for _ in range(self.client.rounds):
            steps = [step for step in self.client.steps for _ in range(step.get("times", 1))]
            for number, step in enumerate(steps, 1):
                pause = self.client.pace * (1 + self.client.jitter * self._chance.uniform(-1, 1))
                yield step, pause + (self.client.rest if number == len(steps) else 0)

    def address(self) -> int:
        """Return the last part of the address of the next request."""
        return self._sent % self.client.addresses

    def resource_id(self) -> int | None:
        """Return the id in the next request, None for a malformed one."""
        ids = self.step.get("ids", "own")
        if ids == "saved":
            return SAVED_FROM + self._sent % SAVED
        return None if ids == "malformed" else next(self._new) if ids == "new" else 1 + self._sent % OWN

    def answered(self, retry_after: int | None) -> float | None:
        """Return the seconds from this response to the next request, None at the end."""
        self._sent += 1
        wait = (retry_after or 0) * self.client.on_429
        pause = max(self._pause if self.client.gives_up else 0, wait) or self._pause
        if retry_after is None or self.client.gives_up:
            following = next(self._script, None)
            if following is None:
                return None
            self.step, self._pause = following
        return pause


def _entry(number: int, request: Request, retry_after: int | None) -> Entry:
    method, _, route = request.step["request"].partition(" ")
    noun = request.step.get("noun", _noun(route))
    named = bool(noun) and request.resource_id is not None and retry_after is None
    return Entry(
        at=BEGAN + int(request.at * SECOND),
        request_id=f"r{number}",
        account_id=ACCOUNT,
        token_id=TOKEN,
        address=request.address,
        method=method,
        route=route,
        resource=f"{noun}/{request.resource_id}" if named else None,
        status=request.step.get("status", 200) if retry_after is None else 429,
        retry_after=retry_after,
        milliseconds=2.0,
        size=100,
        limits_apply=True,
        private=named and (method, route) in PRIVATE,
    )


def _noun(route: str) -> str | None:
    """Return the kind of resource that the parameter of the path identifies."""
    parts = route.split("/")
    places = [at for at, part in enumerate(parts) if part.startswith("{")]
    return parts[places[0] - 1] if places else None


def profiles(file: str) -> list[Profile]:
    """Return the profiles of a file in `fixtures/traffic/`."""
    found = tomllib.loads((FOLDER / f"{file}.toml").read_text("utf-8"))["profile"]
    return [Profile(**{**each, "clients": [Client(**client) for client in each["clients"]]}) for each in found]
