"""JSON responses, encoded row by row on the thread that reads the rows, and limited in size while they are encoded."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import orjson

from musicsvc.errors import Invalid
from musicsvc.server.responses.fragments import LARGE, FragmentReader
from musicsvc.server.responses.memory_budget import Reservation
from musicsvc.server.shapes.envelope import JSON, Download, Members
from musicsvc.store.engine import sql
from musicsvc.store.engine.pagination import Listing

MAX_PAGE = 16 * 1024 * 1024  # bytes
EXPECTED = 2 * LARGE  # bytes reserved for a page that is expected to be large, until its first rows are encoded
GROUP = 100  # rows that are loaded together
ALBUMS = 20  # the same for rows that contain tracks: even the largest fit into a page
MARK = b"\x00"  # a byte that JSON never contains
TOO_LARGE = "The page would be larger than 16 MiB. Ask for fewer rows per page."

Shape = Callable[[Sequence[Any]], list[JSON]]  # loads the content of some rows and returns their JSON


@dataclass(frozen=True, slots=True)
class Encoded:
    pieces: list[bytes]

    @property
    def size(self) -> int:
        return sum(map(len, self.pieces))


class AnswerBuilder:
    """Encodes the rows of one response within the memory that the client may use.

    `size_name`: the name of the page-size parameter, for error messages. `nests_tracks`: each row contains tracks.
    `fragments`: the cached JSON of rows, or None if this response must not use it.
    """

    def __init__(
        self,
        reservation: Reservation,
        size_name: str,
        *,
        nests_tracks: bool = False,
        fragments: FragmentReader | None = None,
    ) -> None:
        self._reservation = reservation
        self._size_name = size_name
        self._group = ALBUMS if nests_tracks else GROUP
        self._fragments = fragments

    def page(self, listing: Listing[Any], shape: Shape) -> Members:
        """Return the rows of a page as JSON.

        Raises Invalid as soon as several rows take more than MAX_PAGE bytes, Overloaded if too little memory is free.
        """
        most = MAX_PAGE if len(listing.ids) > 1 else None
        return self._encode(listing.ids, lambda ids: shape(listing.load(ids)), kind=shape, most=most)

    def array(self, rows: Sequence[Any], shape: Shape) -> Members:
        """Return the JSON of rows of any size. Raises Overloaded if too little memory is free."""
        return self._encode(rows, shape)

    def _encode(self, rows: Sequence[Any], shape: Shape, *, kind: Hashable = None, most: int | None = None) -> Members:
        def make(some: Sequence[Any]) -> Iterable[bytes]:
            return map(orjson.dumps, shape(some))

        read = make if kind is None or self._fragments is None else partial(self._fragments.read, kind, make=make)
        pieces: list[bytes] = []
        size = 0
        for first in range(0, len(rows), self._group):
            for content in read(rows[first : first + self._group]):
                pieces += (b",", content)
                size += 1 + len(content)
            if most is not None and size > most:
                raise Invalid({self._size_name: TOO_LARGE})
            self._reservation.resize(size)
        return Members(pieces[1:], len(rows))

    def expect_large(self) -> None:
        """Reserve memory before anything is read. Raises Overloaded if too little is free."""
        self._reservation.resize(EXPECTED)

    def finish(self, result: Any, *, writes: bool, drawn: bool) -> Any:
        """Return the handler's result, encoded if it is JSON.

        Raises Overloaded if the response to a read needs more memory than is free.
        `drawn`: whether the result is a picture or a document that may have been drawn for this response alone.
        """
        body = encoded(result)
        if not writes:
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
