"""Traffic of a token, made from its description in `fixtures/traffic/`, as the log of calls would hold it.

A profile is a few clients that share a token. Each has workers, which ask one thing after the other; what a request is
answered stands in the profile, 429 comes from the limit that the traffic is played against.
"""

from __future__ import annotations

import heapq
import math
import random
import tomllib
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from musicsvc.clock import SECOND, parse
from musicsvc.server.routes.table import ROUTES
from musicsvc.store.activity.calls import Entry
from musicsvc.store.rate_limits import window as rate_limit_window
from musicsvc.store.rate_limits.memory import MemoryHitCounter
from musicsvc.store.rate_limits.window import Hit

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

FOLDER = Path(__file__).resolve().parents[2] / "fixtures" / "traffic"
BEGAN = parse("2026-03-01T12:00:17Z")
TOKEN, ACCOUNT = 7, 3
NEW = 100_000  # the first id that nothing has
OWN = 20  # things of its own that a client asks for again and again
SAVED_FROM, SAVED = 1_000, 60  # the first id of others' things that a client has saved, and how many there are
ANSWERED = 0.05  # seconds from a request to its answer at the client

PRIVATE = {(route.method, route.path) for route in ROUTES if route.private}

Step = dict[str, Any]


class Limit(Protocol):
    """Rate limit: returns None for an allowed request at this time (seconds), otherwise its Retry-After."""

    def ask(self, at: float) -> int | None: ...


class SlidingWindow:
    """The limit as the service has it, by a clock that the traffic moves."""

    def __init__(self, amount: int = 300, seconds: int = 60) -> None:
        self._now = 0
        self._quotas = MemoryHitCounter(lambda: self._now)
        self._demands = [Hit(rate_limit_window.Limit("token", amount, seconds * rate_limit_window.SECOND), str(TOKEN))]

    def ask(self, at: float) -> int | None:
        self._now = int((at + 1) * rate_limit_window.SECOND)
        (status,) = self._quotas.count(self._demands)
        return None if status.allowed else max(1, math.ceil(status.wait / rate_limit_window.SECOND))


@dataclass
class FixedWindow:
    """Fixed windows; Retry-After is the time until the next window."""

    amount: int = 300
    seconds: float = 60
    _window: int = -1
    _used: int = 0

    def ask(self, at: float) -> int | None:
        window, passed = divmod(at, self.seconds)
        if window != self._window:
            self._window, self._used = int(window), 0
        if self._used < self.amount:
            self._used += 1
            return None
        return max(1, math.ceil(self.seconds - passed))


@dataclass
class Bucket:
    """Token bucket; Retry-After is the time until the given number of requests fits again."""

    amount: int = 300
    seconds: float = 60
    fit: int = 1
    _full_at: float = 0.0

    def ask(self, at: float) -> int | None:
        pace = self.seconds / self.amount
        full_at = max(self._full_at, at) + pace
        if full_at - at <= self.seconds:
            self._full_at = full_at
            return None
        return max(1, math.ceil(self._full_at + self.fit * pace - self.seconds - at))


@dataclass
class Client:
    """A client with `workers`, each of which repeats the steps `rounds` times with `rest` seconds between.

    `on_429`: the part of Retry-After that a worker waits before it repeats the request; 1 is obedient, 0
    goes on as if nothing had been said. `gives_up`: it lets that request be and asks for the next. `pace`: seconds from
    an answer to the next request, give or take its part `jitter`.

    A step is asked `times` times and answered `status`. `ids`: `own` are twenty that it asks for again and again,
    `saved` are sixty of others that it asks for again and again, `new` ones are never asked for twice, `malformed` ones
    name nothing. `noun`: what an id is of that the path does not hold.
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
    """Traffic with its name; `rule`: the one that it must be punished by, None for an honest one."""

    name: str
    about: str
    clients: list[Client]
    rule: str | None = None

    def course(self) -> Generator[Asked, int | None, None]:
        """Its requests in the order of time, the same at every run; each is sent back what Retry-After it was told."""
        chance, new = random.Random(self.name), count(NEW)
        workers = [_Worker(client, chance, new) for client in self.clients for _ in range(client.workers)]
        due = [(worker.client.start, number) for number, worker in enumerate(workers)]
        heapq.heapify(due)
        while due:
            at, number = heapq.heappop(due)
            worker = workers[number]
            again = worker.answered(
                (yield Asked(at, f"127.0.{number}.{worker.address()}", worker.step, worker.thing()))
            )
            if again is not None:
                heapq.heappush(due, (at + ANSWERED + again, number))

    def entries(self, limit: Limit) -> list[Entry]:
        """Its calls against the limit, as the log holds them."""
        course = self.course()
        made: list[Entry] = []
        asked = next(course)
        with suppress(StopIteration):
            while True:
                retry_after = limit.ask(asked.at)
                made.append(_entry(len(made), asked, retry_after))
                asked = course.send(retry_after)
        return made


class Asked(NamedTuple):
    """A request: when (seconds), from which address, which step of the profile, and about which thing."""

    at: float
    address: str
    step: Step
    thing: int | None


class _Worker:
    """One that asks one thing after the other."""

    def __init__(self, client: Client, chance: random.Random, new: Iterator[int]) -> None:
        self.client = client
        self._chance = chance
        self._new = new
        self._asked = 0
        self._script = self._walk()
        self.step, self._pause = next(self._script)

    def _walk(self) -> Iterator[tuple[Step, float]]:
        """The requests, each with the seconds from its answer to the next one."""
        for _ in range(self.client.rounds):
            steps = [step for step in self.client.steps for _ in range(step.get("times", 1))]
            for number, step in enumerate(steps, 1):
                pause = self.client.pace * (1 + self.client.jitter * self._chance.uniform(-1, 1))
                yield step, pause + (self.client.rest if number == len(steps) else 0)

    def address(self) -> int:
        """The last part of the address that it asks from."""
        return self._asked % self.client.addresses

    def thing(self) -> int | None:
        """The id of what it asks for, None where that is malformed."""
        ids = self.step.get("ids", "own")
        if ids == "saved":
            return SAVED_FROM + self._asked % SAVED
        return None if ids == "malformed" else next(self._new) if ids == "new" else 1 + self._asked % OWN

    def answered(self, retry_after: int | None) -> float | None:
        """The seconds from this answer to its next request, None where it has finished."""
        self._asked += 1
        told = (retry_after or 0) * self.client.on_429
        pause = max(self._pause if self.client.gives_up else 0, told) or self._pause
        if retry_after is None or self.client.gives_up:
            following = next(self._script, None)
            if following is None:
                return None
            self.step, self._pause = following
        return pause


def _entry(number: int, asked: Asked, retry_after: int | None) -> Entry:
    method, _, route = asked.step["ask"].partition(" ")
    noun = asked.step.get("noun", _noun(route))
    named = bool(noun) and asked.thing is not None and retry_after is None
    return Entry(
        at=BEGAN + int(asked.at * SECOND),
        request_id=f"r{number}",
        account_id=ACCOUNT,
        token_id=TOKEN,
        address=asked.address,
        method=method,
        route=route,
        resource=f"{noun}/{asked.thing}" if named else None,
        status=asked.step.get("status", 200) if retry_after is None else 429,
        retry_after=retry_after,
        milliseconds=2.0,
        size=100,
        judged=True,
        private=named and (method, route) in PRIVATE,
    )


def _noun(route: str) -> str | None:
    """Return the kind of the id in the path."""
    parts = route.split("/")
    places = [at for at, part in enumerate(parts) if part.startswith("{")]
    return parts[places[0] - 1] if places else None


def profiles(file: str) -> list[Profile]:
    """The profiles of a file of the folder, in their order."""
    found = tomllib.loads((FOLDER / f"{file}.toml").read_text("utf-8"))["profile"]
    return [Profile(**{**each, "clients": [Client(**client) for client in each["clients"]]}) for each in found]
