"""Sets of listeners, exact and small, to which more are added by appending bytes: `packed + pack(more)` is the union.

A set is any number of 4-byte integers as they came, repeats among them; from some size on they follow a roaring bitmap.
"""

from __future__ import annotations

import sys
from array import array
from typing import TYPE_CHECKING

from pyroaring import BitMap

from musicsvc.store.engine import dialect
from musicsvc.store.engine.sql import fetch

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

INTEGERS = "I" if array("I").itemsize == 4 else "L"  # noqa: PLR2004 - bytes
WIDTH = 4
FEW = 32  # so many integers are smaller than their bitmap
NAMES_A_QUERY = 5000
INSERT = "INSERT INTO listener (key) {rows} ON CONFLICT DO NOTHING RETURNING key, id"


def account_key(user_id: int) -> str:
    """The key of an account's own listening; no opaque listener can spell it."""
    return f"account:{user_id}"


def opaque_key(name: str) -> str:
    """The key of a listener that somebody else reports."""
    return f"opaque:{name}"


def pack(some: Iterable[int]) -> bytes:
    """The listeners as bytes, repeats and all."""
    return b"".join(listener.to_bytes(WIDTH, "little") for listener in some)


def merge(sets: Iterable[bytes]) -> bytes:
    """The union of the sets in few bytes."""
    some = list(sets)
    joined = b"".join(some)
    if len(joined) <= FEW * WIDTH and not any(len(packed) & 1 for packed in some):
        return joined
    found = union(some)
    if len(found) <= FEW:
        return pack(found)
    # The length of the bitmap goes before it, and the whole is of odd length, which no row of integers is.
    bitmap: bytes = found.serialize()
    return len(bitmap).to_bytes(WIDTH, "little") + bitmap + bytes((1 - len(bitmap)) % WIDTH)


def count(packed: bytes) -> int:
    """How many listeners the set has."""
    return len(union([packed]))


def union(many: Iterable[bytes]) -> BitMap:
    """Everybody who is in any of the sets."""
    integers = bytearray()
    bitmaps: list[BitMap] = []
    for packed in many:
        end = 0
        if len(packed) & 1:
            length = int.from_bytes(packed[:WIDTH], "little")
            end = WIDTH + length + (1 - length) % WIDTH
            bitmaps.append(BitMap.deserialize(packed[WIDTH : WIDTH + length]))
        integers += packed[end:]
    read = array(INTEGERS, bytes(integers))
    if sys.byteorder == "big":
        read.byteswap()
    return BitMap.union(BitMap(read), *bitmaps)


def ensure(keys: Iterable[str]) -> dict[str, int]:
    """The ids of these listeners by key, those that are missing made."""
    wanted = sorted(set(keys))
    found: dict[str, int] = {}
    for start in range(0, len(wanted), NAMES_A_QUERY):
        some = wanted[start : start + NAMES_A_QUERY]
        found |= find(some)
        if missing := [(key,) for key in some if key not in found]:
            found |= dict(dialect.insert_returning(INSERT, ("text",), missing))
        if others := [key for key in some if key not in found]:  # made by somebody else just now
            found |= find(others)
    return found


def find(keys: Sequence[str]) -> dict[str, int]:
    """The ids of those of the listeners that are there, by key."""
    condition, values = dialect.in_list(keys)
    return dict(fetch(f"SELECT key, id FROM listener WHERE key {condition}", values))  # noqa: S608 - our own condition
