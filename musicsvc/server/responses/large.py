"""JSON responses, encoded row by row on the thread that reads the rows, and limited in size while they are encoded.

The memory of responses that clients have not read yet is limited for each process and each client.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from typing import Any

import orjson

from musicsvc.errors import Invalid, Overloaded
from musicsvc.networks import client_network
from musicsvc.server.responses.answer_cache import LARGE, FragmentReader
from musicsvc.server.shapes.envelope import JSON, Download, Encoded, Members, ok, page_links, paginator
from musicsvc.store.engine.pagination import Listing

MAX_PAGE = 16 * 1024 * 1024  # bytes
EXPECTED = 2 * LARGE  # bytes reserved for a page that is expected to be large, until its first rows are encoded
GROUP = 100  # rows that are loaded together
ALBUMS = 20  # the same for rows that contain tracks: even the largest fit into a page
MARK = b"\x00"  # a byte that JSON never contains
TOO_LARGE = "The page would be larger than 16 MiB. Ask for fewer rows per page."
UNCOUNTED = 64 * 1024  # bytes; responses up to this size are ignored
SHARE = 4  # one client may hold this fraction of the budget
ANONYMOUS = 2  # all clients without a token or session together may hold this fraction
MEBIBYTE = 1 << 20

Shape = Callable[[Any], JSON]  # returns the JSON of a row
Load = Callable[[Sequence[Any]], Iterable[Any]]  # returns some rows with their content


class AnswerMemory:
    """The memory budget of one process for unsent responses: `limit` bytes. Safe to use from any thread."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._held: Counter[str] = Counter()
        self.total = 0  # bytes that unsent responses hold
        self._anonymous = 0

    def take(self, client: str, size: int, *, anonymous: bool) -> None:
        """Reserve `size` bytes for the client, or free bytes if `size` is negative. Raises Overloaded.

        `anonymous`: whether the client has neither a token nor a session.
        """
        with self._lock:
            if size > 0:
                self._require_room(client, size, anonymous=anonymous)
            self.total += size
            self._anonymous += size if anonymous else 0
            self._held[client] += size
            if not self._held[client]:
                del self._held[client]

    def _require_room(self, client: str, size: int, *, anonymous: bool) -> None:
        share = self._limit // SHARE
        if size > share:
            raise Overloaded(f"The response takes {_mebibytes(size)}; {_mebibytes(share)} are allowed per client.")
        if self._held[client] + size > share:
            raise Overloaded(
                f"Responses you have not read yet use all of the {_mebibytes(share)} allowed per client."
                " Read them, then try again."
            )
        full = anonymous and self._anonymous + size > self._limit // ANONYMOUS
        if full or self.total + size > self._limit:
            raise Overloaded("Too many large responses are waiting to be read. Try again in a second.")


class Reservation:
    """The part of the memory budget that the response to one request holds.

    It is that of a client: `holder`, or if that is None its address.
    """

    def __init__(self, memory: AnswerMemory, address: str, holder: str | None) -> None:
        self._memory = memory
        self._address = address
        self._holder = holder
        self._lock = threading.Lock()
        self._held = 0
        self._released = False

    def resize(self, size: int) -> None:
        """Change the reservation to `size` bytes. Raises Overloaded if too few are free, or after `release`."""
        with self._lock:
            if self._released:
                raise Overloaded("The client has disconnected.")
            self._hold(size if size > UNCOUNTED else 0)

    def release(self) -> None:
        """Free the memory. Later calls of `resize` fail: a transaction may still run after the client has gone."""
        with self._lock:
            self._released = True
            self._hold(0)

    @property
    def _client(self) -> str:
        return self._holder or f"address {client_network(self._address)}"

    def _hold(self, size: int) -> None:
        if size != self._held:
            self._memory.take(self._client, size - self._held, anonymous=self._holder is None)
            self._held = size


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

    def page(self, listing: Listing[Any], shape: Shape, complete: Load, *, kind: Hashable = None) -> Members:
        """Return the rows of a page as JSON. `complete` takes rows of the listing.

        The JSON of rows is kept by their ids for other pages with the same `shape`. `kind`: distinguishes the ids of
        the listing from those of the rows that are shaped, if they are of another table.
        Raises Invalid as soon as several rows take more than MAX_PAGE bytes, Overloaded if too little memory is free.
        """
        most = MAX_PAGE if len(listing.ids) > 1 else None
        return self._encode(listing.ids, shape, lambda ids: complete(listing.load(ids)), kind=kind or shape, most=most)

    def paged(self, listing: Listing[Any], shape: Shape, complete: Load, *, kind: Hashable = None) -> JSON:
        """Return the response with a page of a list, like `page`."""
        return ok(pagination=paginator(listing, self.page(listing, shape, complete, kind=kind)))

    def array(self, ids: Sequence[int], shape: Shape, load: Load) -> Members:
        """Return the JSON of rows of any size. Raises Overloaded if too little memory is free."""
        return self._encode(ids, shape, load)

    def _encode(
        self, ids: Sequence[int], shape: Shape, load: Load, *, kind: Hashable = None, most: int | None = None
    ) -> Members:
        def make(some: Sequence[int]) -> Iterable[bytes]:
            return map(orjson.dumps, map(shape, load(some)))

        read = make if kind is None or self._fragments is None else partial(self._fragments.read, kind, make=make)
        pieces: list[bytes] = []
        size = 0
        for first in range(0, len(ids), self._group):
            for content in read(ids[first : first + self._group]):
                pieces += (b",", content)
                size += 1 + len(content)
            if most is not None and size > most:
                raise Invalid({self._size_name: TOO_LARGE})
            self._reservation.resize(size)
        return Members(pieces[1:], len(ids))

    def finish(self, result: Any, *, writes: bool, drawn: bool) -> Any:
        """Return the handler's result, encoded if it is JSON.

        Raises Overloaded if the response to a read needs more memory than is free.
        `drawn`: whether the result is a picture or a document that may have been drawn for this response alone.
        """
        body = encoded(result)
        if not writes:
            self._reservation.resize(_size(body, drawn=drawn))
        return body


def encoded(result: Any, query: str = "") -> Any:
    """Encode the result of a handler as JSON bytes if it is a dict. Return files unchanged.

    `query`: that of the request, undecoded, for the links of a page of a list.
    """
    return encode(result, query) if isinstance(result, dict) else result


def encode(value: JSON, query: str = "") -> Encoded:
    held: list[Members] = []

    def mark(each: Any) -> Any:
        if not isinstance(each, Members):
            raise TypeError(f"{type(each)} is not a JSON value")
        held.append(each)
        return orjson.Fragment(b"[%b]" % MARK)

    raw = orjson.dumps(value, default=mark, option=orjson.OPT_PASSTHROUGH_DATACLASS)
    first, *parts = raw.split(MARK) if held else [raw]
    pieces = [first, *(piece for each, part in zip(held, parts, strict=True) for piece in (*each.pieces, part))]
    return Encoded(pieces, page_links(value, query))


def _size(body: Any, *, drawn: bool) -> int:
    """Return the bytes of memory that this response alone uses.

    A file counts only if it was drawn for this response (`drawn`) and is not cached.
    """
    if isinstance(body, Encoded):
        return body.size
    return len(body.content) if drawn and isinstance(body, Download) and body.kept is None else 0


def _mebibytes(size: int) -> str:
    return f"{size / MEBIBYTE:,.1f} MiB"
