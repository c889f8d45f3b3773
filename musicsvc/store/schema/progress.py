"""Progress of a running migration, which the migration reports and `schema.upgrade` passes on."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_listener: ContextVar[Callable[[float, float], None] | None] = ContextVar("musicsvc_migration", default=None)


def report(done: float, total: float) -> None:
    """Report how much of the running migration is done."""
    if (listener := _listener.get()) is not None:
        listener(done, total)


@contextmanager
def reported_to(listener: Callable[[float, float], None]) -> Iterator[None]:
    """Pass the reports of migrations in the `with` block to `listener`."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)
