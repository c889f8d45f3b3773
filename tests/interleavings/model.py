"""The values that answers may show while several processes change them."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple

from tests.support.serving import Answer

HERE, ELSEWHERE = "here", "elsewhere"
ANOTHER_MACHINE = 1.0  # seconds until a machine must show what another one has acknowledged
COUNTER = 5.0  # seconds until any machine must show a counter


@dataclass
class Change:
    """A value. `machine`: where it was written. `at`: when that was acknowledged."""

    value: Any
    machine: str
    at: float = inf

    def acknowledge(self) -> None:
        self.at = time.monotonic()


class History:
    """The values that something has had, oldest first. It is in tables that each of its changes changes.

    So what a machine writes makes it read again also what other machines have written.
    """

    def __init__(self, value: Any, seconds: float = 0) -> None:
        """`seconds`: the age of values that any machine may still show."""
        self._changes = [Change(value, HERE, -inf)]
        self._seconds = seconds

    @property
    def value(self) -> Any:
        return self._changes[-1].value

    def begin(self, value: Any, machine: str = HERE) -> Change:
        """Add a value that is being written, so that answers show it or the one before."""
        self._changes.append(Change(value, machine))
        return self._changes[-1]

    def add(self, value: Any, machine: str = HERE) -> None:
        """Add a value that was just acknowledged."""
        self.begin(value, machine).acknowledge()

    def permitted(self, machine: str, began: float) -> list[Any]:
        """Return the values that an answer of this machine to a request sent at `began` may show."""
        due = [
            number
            for number, change in enumerate(self._changes)
            if change.at <= began - max(self._seconds, 0 if change.machine == machine else ANOTHER_MACHINE)
        ]
        return [change.value for change in self._changes[due[-1] :]]


class View(NamedTuple):
    """A path, a function of its answer, and a function of the current value of `history` that returns the same."""

    path: str
    history: History
    shown: Callable[[Answer], object]
    expected: Callable[[Any], object] = lambda value: value
    token: str | None = None  # None: that of the caller


class Look(NamedTuple):
    """An answer of a machine to a view that was asked for at `began`."""

    view: View
    machine: str
    began: float
    answer: Answer

    def verify(self) -> None:
        """Assert that the answer is not stale."""
        view = self.view
        permitted = [view.expected(value) for value in view.history.permitted(self.machine, self.began)]
        assert view.shown(self.answer) in permitted, (view.path, self.machine, self.answer)


class Guest(NamedTuple):
    """The state of an account and of its token."""

    revoked: bool = False
    suspended: bool = False
    access: bool = True

    def status(self) -> int:
        """Return the status of requests with the token."""
        if self.revoked:
            return 401
        return 200 if self.access and not self.suspended else 403


def at(*keys: str) -> Callable[[Answer], object]:
    """Return a function that finds the value at these keys in the JSON of an answer."""

    def find(answer: Answer) -> object:
        found = answer.json
        for key in keys:
            found = found[key]
        return found

    return find


def list_of_playlists(names: History) -> View:
    """Return a view of the caller's playlists: their names by id."""
    return View(
        "playlists?perPage=100",
        names,
        lambda answer: {row["id"]: row["name"] for row in answer.json["pagination"]["data"]},
    )


def name_of(playlist: int, names: History) -> View:
    """Return a view of the name of a playlist, None if it does not exist."""
    return View(
        f"playlists/{playlist}",
        names,
        lambda answer: None if answer.status == 404 else answer.json["playlist"]["name"],
        lambda value: value.get(playlist),
    )


def tracks_of(playlist: int, tracks: History) -> View:
    """Return a view of the tracks of a playlist, None if it does not exist."""
    return View(
        f"playlists/{playlist}/tracks?perPage=100",
        tracks,
        lambda answer: None if answer.status == 404 else [row["id"] for row in answer.json["pagination"]["data"]],
        lambda value: value.get(playlist),
    )
