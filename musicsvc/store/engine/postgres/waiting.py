"""Bound every wait for the PostgreSQL server.

psycopg waits in generators, which it resumes at least ten times a second. TCP timeouts do not detect a server that is
stopped while its kernel still acknowledges packets, so the limits of the running unit of work are checked here.
"""

import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from math import inf
from typing import Any, TypeVar

import psycopg

from musicsvc.store.engine.sql import assigned

T = TypeVar("T")


class NoResponse(psycopg.OperationalError):
    """The server did not respond in time. What it was asked to do may still happen."""


def _always() -> bool:
    return True


@dataclass(slots=True)
class Limits:
    """The longest wait of a thread: until `deadline`, in seconds of time.monotonic, or while the server responds."""

    deadline: float = inf
    responds: Callable[[], bool] = _always

    def check(self) -> None:
        """Raise NoResponse if the wait must end."""
        if time.monotonic() > self.deadline:
            raise NoResponse("it did not respond in time")
        if not self.responds():
            raise NoResponse("it does not respond")


_limits: ContextVar[Limits | None] = ContextVar("musicsvc_waiting", default=None)


def limited(limits: Limits) -> AbstractContextManager[Limits]:
    """Apply the limits to all waits of this thread for PostgreSQL inside the `with` block, which may change them."""
    return assigned(_limits, limits)


def deadline() -> float:
    """Return the time by which the waits of this thread must end."""
    limits = _limits.get()
    return inf if limits is None else limits.deadline


def _checked(waiting: Generator[Any, Any, T], limits: Limits) -> Generator[Any, Any, T]:
    """Check the limits each time psycopg resumes the generator."""
    try:
        wanted = next(waiting)
        while True:
            ready = yield wanted
            if not ready:
                limits.check()
            wanted = waiting.send(ready)
    except StopIteration as end:
        result: T = end.value
        return result


class BoundedConnection(psycopg.Connection[Any]):
    """A connection whose waits end at the limits of the thread. Close it after NoResponse."""

    @classmethod
    def _connect_gen(cls, *arguments: Any, **options: Any) -> Generator[Any, Any, Any]:
        waiting = super()._connect_gen(*arguments, **options)
        limits = _limits.get()
        return waiting if limits is None else _checked(waiting, limits)

    def wait(self, gen: Generator[Any, Any, T], *arguments: Any, **options: Any) -> T:
        if (limits := _limits.get()) is not None:
            gen = _checked(gen, limits)
        return super().wait(gen, *arguments, **options)
