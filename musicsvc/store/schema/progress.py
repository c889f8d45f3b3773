"""Pass the progress that a running migration reports to the function that shows it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_listener: ContextVar[Callable[[float, float], None] | None] = ContextVar("musicsvc_migration", default=None)


def report(done: float, total: float) -> None:
    """Report how much of the running migration is done."""
    if (listener := _listener.get()) is not None:
        listener(done, total)


@contextmanager
def reported_to(listener: Callable[[float, float], None]) -> Iterator[None]:
    """Call `listener` with the progress (done, total) that migrations in the `with` block report."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)
