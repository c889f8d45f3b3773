"""The deadline of a connection: when it calls, and that nothing is left of it at the end."""

import random
from collections.abc import Callable
from typing import Any

from musicsvc.server.network.connection_limits import Deadline


class Timer:
    def __init__(self, at: float, call: Callable[[], None]) -> None:
        self._at = at
        self.call = call
        self.cancelled = False

    def when(self) -> float:
        return self._at

    def cancel(self) -> None:
        self.cancelled = True


class Loop:
    """An event loop whose time a test moves."""

    def __init__(self) -> None:
        self.now = 0.0
        self._timers: list[Timer] = []
        self.created = 0

    def time(self) -> float:
        return self.now

    def call_at(self, at: float, call: Callable[[], None]) -> Timer:
        self.created += 1
        self._timers.append(Timer(at, call))
        return self._timers[-1]

    def waiting(self) -> list[Timer]:
        return [timer for timer in self._timers if not timer.cancelled]

    def advance(self) -> None:
        self.now += 1
        for timer in [timer for timer in self.waiting() if timer.when() <= self.now]:
            self._timers.remove(timer)
            timer.call()


def opened() -> tuple[Any, list[float], Deadline]:
    """Return a loop, the times at which the deadline has called, and the deadline."""
    loop: Any = Loop()
    called: list[float] = []
    return loop, called, Deadline(loop, lambda: called.append(loop.now))


def test_it_calls_once_at_the_time_set_last_unless_it_was_cleared() -> None:
    chance = random.Random(1)
    loop, called, deadline = opened()
    expected: list[float] = []
    due = None
    for _ in range(3000):
        step = chance.randrange(8)
        if step < 2:
            seconds = chance.randrange(1, 5)
            deadline.set(seconds)
            due = loop.now + seconds
        elif step == 2:
            deadline.clear()
            due = None
        elif step == 3 and chance.randrange(4) == 0:
            deadline.end()
            due = None
            assert not loop.waiting()
        else:
            loop.advance()
            if due == loop.now:
                expected.append(due)
                due = None
        assert called == expected
        assert len(loop.waiting()) <= 1
    assert len(expected) > 100


def test_a_deadline_that_moves_on_keeps_its_timer() -> None:
    loop, called, deadline = opened()
    for _ in range(10):
        deadline.set(5)
        deadline.clear()
        deadline.set(5)
        loop.advance()
    assert (loop.created, called) == (3, [])  # one timer after another, not one for each change
