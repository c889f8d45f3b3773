"""Sets of listeners, exact and small: packed integers up to 16 of them, a roaring bitmap beyond."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from pyroaring import BitMap

from musicsvc.store.database import current
from musicsvc.store.models import Listener

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

FEW = 16
PACKED = [struct.Struct(f"<{count}I") for count in range(FEW + 1)]
PADDING = b"\0"
NAMES_A_QUERY = 5000


def account_key(user_id: int) -> str:
    """The key of an account's own listening; no opaque listener can spell it."""
    return f"account:{user_id}"


def opaque_key(name: str) -> str:
    """The key of a listener that somebody else reports."""
    return f"opaque:{name}"


def pack(listeners: Iterable[int]) -> bytes:
    """The set as bytes: 4 a listener up to 16, which no bitmap undercuts, else a bitmap of a length that tells it."""
    found = listeners if isinstance(listeners, (set, BitMap)) else set(listeners)
    if len(found) <= FEW:
        return PACKED[len(found)].pack(*sorted(found))
    return _serialized(found if isinstance(found, BitMap) else BitMap(found))


def _serialized(bitmap: BitMap) -> bytes:
    """The bitmap in a length that is no multiple of 4; the reader stops at its end by itself."""
    packed: bytes = bitmap.serialize()
    return packed if len(packed) % 4 else packed + PADDING


def unpack(packed: bytes) -> Sequence[int] | BitMap:
    """The set again, without repeats."""
    if len(packed) % 4 == 0:
        return PACKED[len(packed) // 4].unpack(packed)
    return BitMap.deserialize(packed)


def count(packed: bytes) -> int:
    """How many listeners the set has."""
    return len(packed) // 4 if len(packed) % 4 == 0 else len(BitMap.deserialize(packed))


def add(packed: bytes, more: Iterable[int]) -> bytes:
    """The set with more listeners in it."""
    before = unpack(packed)
    if isinstance(before, BitMap):
        before.update(more)
        return _serialized(before)
    return pack({*before, *more})


def union(many: Iterable[bytes]) -> BitMap:
    """Everybody who is in any of the sets."""
    few: list[int] = []
    large: list[BitMap] = []
    for packed in many:
        some = unpack(packed)
        if isinstance(some, BitMap):
            large.append(some)
        else:
            few.extend(some)
    return BitMap.union(BitMap(few), *large)


def ensure(keys: Iterable[str]) -> dict[str, int]:
    """The ids of these listeners by key, those that are missing made."""
    wanted = sorted(set(keys))
    found: dict[str, int] = {}
    for start in range(0, len(wanted), NAMES_A_QUERY):
        some = wanted[start : start + NAMES_A_QUERY]
        found |= _find(some)
        missing = [(key,) for key in some if key not in found]
        if missing:
            sign = current().param
            statement = f"INSERT INTO listener (key) VALUES ({sign}) ON CONFLICT DO NOTHING"  # noqa: S608 - a constant
            current().cursor().executemany(statement, missing)
            found |= _find([key for (key,) in missing])
    return found


def _find(keys: Sequence[str]) -> dict[str, int]:
    return dict(Listener.select(Listener.key, Listener.id).where(Listener.key.in_(keys)).tuples().iterator())
