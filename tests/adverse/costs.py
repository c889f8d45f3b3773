"""Measures what it costs to look at a text: the cost may grow with its length, not with the square of that."""

import gc
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from typing import Any

from musicsvc.errors import Failure

ONE_GO = 0.05  # seconds of CPU time for what is looked at in one go
NOTICEABLE = 0.002  # seconds; the growth of less is not judged
GROWTH = 3.0  # at most, for twice the length
TRIES = 5  # of which the cheapest counts
GIVEN_UP = 1.0  # seconds
TINY = 1e-4  # seconds
SHORTEST = 32  # characters


class TooLongError(BaseException):
    """A call was given up."""


def fault(look: Callable[[Any], object], make: Callable[[int], Any], most: int) -> str | None:
    """Return what is wrong with the cost of looking at texts of up to this length, or None."""
    size = min(SHORTEST, most)
    while True:
        cost = _cost(look, make(size), 1)
        if cost >= NOTICEABLE and (found := _judged(look, make, size, cost)):
            return found
        if size >= most:
            return None
        size = min(size * (8 if cost < TINY else 4), most)


def _judged(look: Callable[[Any], object], make: Callable[[int], Any], size: int, cost: float) -> str | None:
    """Return what is wrong with the cost of texts of this length. Whatever is too much is measured again.

    A bound beyond which more is done makes a step, which is no growth: twice the length must cost too much as well.
    """
    if cost <= ONE_GO and cost <= GROWTH * _cost(look, make(size // 2), 1):
        return None
    costs = [_cost(look, make(length), TRIES) for length in (size // 2, size)]
    if costs[1] < GIVEN_UP / 2:
        costs.append(_cost(look, make(size * 2), TRIES))
    grows = all(after > GROWTH * before for before, after in pairwise(costs)) and costs[1] >= NOTICEABLE
    if costs[1] <= ONE_GO and not grows:
        return None
    return f"{size:,} characters cost {costs[1] * 1000:,.1f} ms, half of them {costs[0] * 1000:,.1f} ms"


def _cost(look: Callable[[Any], object], sent: Any, tries: int) -> float:
    """Return the least CPU time of this thread for one call, or GIVEN_UP if it takes longer."""
    costs = []
    for _ in range(tries):
        with _given_up(), _without_collections():
            begun = time.thread_time()
            with suppress(Failure, ValueError):
                look(sent)
            costs.append(time.thread_time() - begun)
        if not costs:
            return GIVEN_UP
        if costs[-1] > GIVEN_UP / 2:
            break
    return min(costs)


@contextmanager
def _without_collections() -> Iterator[None]:
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@contextmanager
def _given_up() -> Iterator[None]:
    """End the block after GIVEN_UP seconds of CPU time, which a pattern may exceed by any amount."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(*_: object) -> None:
        raise TooLongError

    former = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, GIVEN_UP)
    try:
        with suppress(TooLongError):
            yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, former)
