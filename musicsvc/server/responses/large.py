"""Large responses: their size is measured before the rows are loaded, and they are encoded off the event loop."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from musicsvc.errors import Invalid
from musicsvc.server.responses.fragments import FragmentReader
from musicsvc.server.responses.memory_budget import Reservation
from musicsvc.server.shapes.envelope import JSON, Download, Members
from musicsvc.store.engine import sql
from musicsvc.store.engine.pagination import Listing

MAX_PAGE = 16 * 1024 * 1024  # bytes
LARGE = 1024 * 1024  # bytes; larger responses are built in pieces, on an executor with few threads
UNMEASURED = 2 * LARGE  # bytes reserved for a page before its size is measured
MARK = b"\x00"  # a byte that JSON never contains
TOO_LARGE = "The page would be larger than 16 MiB. Ask for fewer rows per page."

Measure = Callable[[Sequence[Any]], Sequence[int]]  # returns the size of each row in bytes
Shape = Callable[[Sequence[Any]], list[JSON]]  # loads the content of some rows and returns their JSON


class LargeAnswerError(Exception):
    """Raised when a response turns out to be large. The request then runs again on the executor for large responses."""


@dataclass(frozen=True, slots=True)
class Encoded:
    pieces: list[bytes]

    @property
    def size(self) -> int:
        return sum(map(len, self.pieces))


class AnswerBuilder:
    """Builds the response to one request within the memory that the client may use.

    `size_name`: the name of the page-size parameter, for error messages. `fragments`: the cached JSON of rows, or None
    if this response must not use it. `large`: whether the request runs on the executor for large responses.
    """

    def __init__(
        self, reservation: Reservation, size_name: str, *, writes: bool, fragments: FragmentReader | None = None
    ) -> None:
        self._reservation = reservation
        self._size_name = size_name
        self._writes = writes
        self._fragments = fragments
        self.large = False

    def expect_large(self) -> None:
        """Declare the response as large before its size is known, because measuring the size can take long."""
        self._reservation.resize(UNMEASURED)
        self.large = True

    def page(self, listing: Listing[Any], measure: Measure, shape: Shape) -> Members:
        """Return the rows of a page as JSON. Raises Invalid if a page of several rows is larger than MAX_PAGE bytes."""
        if self._fragments is not None and not self.large:
            return self._join(self._fragments, listing, measure, shape)
        sizes = measure(listing.rows)
        self._require_sendable(sum(sizes), len(sizes))
        return self._array(listing.rows, sizes, shape)

    def _require_sendable(self, size: int, rows: int) -> None:
        if rows > 1 and size > MAX_PAGE:
            raise Invalid({self._size_name: TOO_LARGE})

    def _join(self, fragments: FragmentReader, listing: Listing[Any], measure: Measure, shape: Shape) -> Members:
        """Return the JSON of the page's rows, from cached fragments where possible."""

        def make(ids: Sequence[int], ready: int) -> Iterable[tuple[bytes, int]]:
            rows = listing.load(ids)
            sizes = measure(rows)
            self._require_sendable(ready + sum(sizes), len(listing.ids))
            self.hold(ready + sum(sizes))
            return list(zip(map(orjson.dumps, shape(rows)), sizes, strict=True))

        found = fragments.read(shape, listing.ids, make)
        size = sum(fragment.measured for fragment in found)
        self._require_sendable(size, len(found))
        self.hold(size)
        return Members([b",".join([fragment.content for fragment in found])] if found else [], len(found))

    def array(self, rows: Sequence[Any], measure: Measure, shape: Shape) -> Members:
        return self._array(rows, measure(rows), shape)

    def _array(self, rows: Sequence[Any], sizes: Sequence[int], shape: Shape) -> Members:
        size = sum(sizes)
        self.hold(size)
        pieces: list[bytes] = []
        for some in _groups(rows, sizes):
            pieces += [b",", orjson.dumps(shape(some))[1:-1]]
        return Members(pieces[1:], len(rows))

    def hold(self, size: int) -> None:
        """Reserve `size` bytes for the response. Raises Overloaded if too few are free.

        Raises LargeAnswerError if the response to a read is large but not built on the executor for large responses.
        """
        self._reservation.resize(size)
        if size > LARGE and not self.large and not self._writes:
            self.large = True
            with sql.without_memory_map():  # unmaps the pages read to measure the response
                raise LargeAnswerError

    def finish(self, result: Any, *, drawn: bool) -> Any:
        """Return the handler's result, encoded if it is JSON.

        Raises Overloaded if the response to a read needs more memory than is free.
        `drawn`: whether the result is a picture or a document that may have been drawn for this response alone.
        """
        body = encoded(result)
        if not self._writes:
            self._reservation.resize(_size(body, drawn=drawn))
        return body


def uncached(unit: Callable[[], Any]) -> Callable[[], Any]:
    """Return a function that calls `unit` with SQLite's caches limited, so that large reads do not fill them."""

    def run() -> Any:
        with sql.without_cache():
            return unit()

    return run


def encoded(result: Any) -> Any:
    """Encode the result of a handler as JSON bytes if it is a dict. Return files unchanged."""
    return encode(result) if isinstance(result, dict) else result


def encode(value: JSON) -> Encoded:
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


def _size(body: Any, *, drawn: bool) -> int:
    """Return the bytes of memory that this response alone uses.

    A file counts only if it was drawn for this response (`drawn`) and is not cached.
    """
    if isinstance(body, Encoded):
        return body.size
    return len(body.content) if drawn and isinstance(body, Download) and body.kept is None else 0


def _groups(rows: Sequence[Any], sizes: Sequence[int]) -> Iterator[Sequence[Any]]:
    """Split the rows into groups of at most LARGE bytes; a larger row is a group. `sizes`: the bytes of each row."""
    begin = held = 0
    for at, size in enumerate(sizes):
        if held and held + size > LARGE:
            yield rows[begin:at]
            begin, held = at, 0
        held += size
    yield rows[begin:]
