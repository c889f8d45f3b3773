"""Answers that may be large: measured before they are loaded, encoded in pieces, off the event loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from musicsvc.errors import Invalid
from musicsvc.server.shapes.envelope import JSON, Download, Members
from musicsvc.store.engine import sql

if TYPE_CHECKING:
    from musicsvc.server.responses.memory_budget import Reservation
    from musicsvc.server.routes.route import Route

MAX_PAGE = 16 * 1024 * 1024  # bytes
LARGE = 1024 * 1024  # bytes from which on an answer is built piece by piece, few at once
UNMEASURED = 2 * LARGE  # held for a page that waits to be measured
MARK = b"\x00"  # a byte that JSON never holds
TOO_LARGE = "The page would be larger than 16 MiB. Ask for fewer rows per page."


Measure = Callable[[Sequence[Any]], Sequence[int]]  # the bytes of each row
Shape = Callable[[Sequence[Any]], list[JSON]]  # loads what some of the rows hold, and shapes them


class LargeAnswerError(Exception):
    """The answer is large: the unit is run again, after those that were found large before it."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """JSON in pieces."""

    pieces: list[bytes]

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return sum(map(len, self.pieces))


class Builder:
    """Builds the answer to one request; `size_name` is the name by which the client sends the page size.

    `large`: the unit runs where large answers are built.
    """

    def __init__(self, reservation: Reservation, size_name: str, *, writes: bool) -> None:
        self._reservation = reservation
        self._size_name = size_name
        self._writes = writes
        self.large = False

    def expect_large(self) -> None:
        """Take the answer for large before it is measured, which may take long by itself."""
        self._reservation.resize(UNMEASURED)
        self.large = True

    def page(self, rows: Sequence[Any], measure: Measure, shape: Shape) -> list[JSON] | Members:
        """The rows of a page as JSON. Raises Invalid where they do not fit into one; a single row always does."""
        sizes = measure(rows)
        if len(rows) > 1 and sum(sizes) > MAX_PAGE:
            raise Invalid({self._size_name: TOO_LARGE})
        return self._array(rows, sizes, shape)

    def array(self, rows: Sequence[Any], measure: Measure, shape: Shape) -> list[JSON] | Members:
        """The rows as JSON, however many they are."""
        return self._array(rows, measure(rows), shape)

    def _array(self, rows: Sequence[Any], sizes: Sequence[int], shape: Shape) -> list[JSON] | Members:
        size = sum(sizes)
        self.hold(size)
        if size <= LARGE:
            return shape(rows)
        pieces: list[bytes] = []
        for some in _groups(rows, sizes):
            pieces += [b",", orjson.dumps(shape(some))[1:-1]]
        return Members(pieces[1:], len(rows))

    def hold(self, size: int) -> None:
        """Hold memory for an answer of this size. Raises Overloaded, and LargeAnswerError."""
        self._reservation.resize(size)
        if size > LARGE and not self.large and not self._writes:
            self.large = True
            with sql.without_memory_map():  # releases what was mapped to measure the answer
                raise LargeAnswerError

    def finish(self, route: Route, result: Any) -> Any:
        """The result as it is sent. Raises Overloaded, but never after a write: that is done."""
        body = encoded(result)
        if not self._writes:
            self._reservation.resize(_size(route, body))
        return body


def uncached(unit: Callable[[], Any]) -> Callable[[], Any]:
    """Return the unit so that what it reads does not stay in the database's caches."""

    def run() -> Any:
        with sql.without_cache():
            return unit()

    return run


def encoded(result: Any) -> Any:
    """A handler's result with JSON encoded; files stay as they are."""
    return encode(result) if isinstance(result, dict) else result


def encode(value: JSON) -> Encoded:
    """The value as JSON."""
    held: list[Members] = []

    def mark(each: Any) -> Any:
        if not isinstance(each, Members):
            raise TypeError(f"{type(each)} is not a JSON value")
        held.append(each)
        return orjson.Fragment(b"[%b]" % MARK)

    raw = orjson.dumps(value, default=mark, option=orjson.OPT_PASSTHROUGH_DATACLASS)
    if not held:
        return Encoded([raw])
    first, *parts = raw.split(MARK)
    return Encoded([first, *(piece for each, part in zip(held, parts, strict=True) for piece in (*each.pieces, part))])


def _size(route: Route, body: Any) -> int:
    """How many bytes are held for this answer alone."""
    if isinstance(body, Encoded):
        return body.size
    alone = isinstance(body, Download) and route.render is not None and body.kept is None
    return len(body.content) if alone else 0  # other files are read or drawn once, and shared


def _groups(rows: Sequence[Any], sizes: Sequence[int]) -> Iterator[Sequence[Any]]:
    """The rows in runs of about a mebibyte, of one row at least."""
    begin = held = 0
    for at, size in enumerate(sizes):
        if held and held + size > LARGE:
            yield rows[begin:at]
            begin, held = at, 0
        held += size
    yield rows[begin:]
