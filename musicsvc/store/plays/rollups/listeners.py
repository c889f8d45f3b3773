"""Sets of listener ids, packed into bytes. Appending packed ids to a packed set adds the ids to the set.

A set is a sequence of 4-byte integers, possibly repeated. In a large set, a roaring bitmap precedes the integers.
"""

from __future__ import annotations

import secrets
import sys
from array import array
from collections.abc import Iterable, Sequence
from typing import Any

from pyroaring import BitMap

from musicsvc.store.engine import bulk
from musicsvc.store.engine.sql import batches, compiled
from musicsvc.store.models import Listener

INTEGERS = "I" if array("I").itemsize == 4 else "L"  # noqa: PLR2004 - bytes
WIDTH = 4
FEW = 32  # up to this number, integers are smaller than a bitmap
KEYS_PER_QUERY = 5000
ACCOUNT = "account:"
ERASED = "erased:"
ERASED_BYTES = 16
# A condition: the listener is or was an account, so its reported plays are own plays.
IS_ACCOUNT = f"(substr(key, 1, 8) = '{ACCOUNT}' OR substr(key, 1, 15) = '{ERASED}{ACCOUNT}')"
INSERT = "INSERT INTO listener (key) {rows} ON CONFLICT DO NOTHING RETURNING key, id"


def account_key(user_id: int) -> str:
    """Return the key under which the listener table stores an account."""
    return f"{ACCOUNT}{user_id}"


def opaque_key(name: str) -> str:
    """Return the key under which the listener table stores a name that an API client gave to a listener."""
    return f"opaque:{name}"


def erase(key: str) -> int | None:
    """Replace the key of a listener by a random one, and return the listener's id, or None if there is none.

    Plays and sets of listeners refer to the id, so all figures stay. The same key is a new listener from then on.
    """
    marked = ERASED + (ACCOUNT if key.startswith(ACCOUNT) else "") + secrets.token_urlsafe(ERASED_BYTES)
    found = find([key]).get(key)
    if found is not None:
        Listener.update(key=marked).where(Listener.id == found).execute()
    return found


def pack(some: Iterable[int]) -> bytes:
    """Return the listener ids as bytes. Repeated ids are kept."""
    packed = array(INTEGERS, some)
    if sys.byteorder == "big":
        packed.byteswap()
    return packed.tobytes()


def merge(sets: Iterable[bytes]) -> bytes:
    """Return the union of packed sets as a packed set. A large set becomes a bitmap."""
    some = list(sets)
    joined = b"".join(some)
    if len(joined) <= FEW * WIDTH and not any(len(packed) & 1 for packed in some):
        return joined
    found = union(some)
    if len(found) <= FEW:
        return pack(found)
    # The bitmap follows its length. The whole has an odd length, which a sequence of integers never has.
    bitmap: bytes = found.serialize()
    return len(bitmap).to_bytes(WIDTH, "little") + bitmap + bytes((1 - len(bitmap)) % WIDTH)


def count(packed: bytes) -> int:
    """Return the number of distinct listener ids in a packed set."""
    bitmap, integers = _split(packed)
    if bitmap is None:
        return len(set(array(INTEGERS, integers)))  # their byte order does not matter
    if integers:
        bitmap.update(_read(integers))
    return len(bitmap)


def union(many: Iterable[bytes]) -> BitMap:
    integers = bytearray()
    bitmaps: list[BitMap] = []
    for packed in many:
        bitmap, others = _split(packed)
        if bitmap is not None:
            bitmaps.append(bitmap)
        integers += others
    if integers and len(bitmaps) == 1:
        bitmaps[0].update(_read(integers))
    elif integers or not bitmaps:
        bitmaps.append(BitMap(_read(integers)))
    return bitmaps[0] if len(bitmaps) == 1 else BitMap.union(*bitmaps)


def _split(packed: bytes) -> tuple[BitMap | None, bytes]:
    """Return the bitmap at the beginning of a packed set, if there is one, and the integers that follow."""
    if not len(packed) & 1:
        return None, packed
    length = int.from_bytes(packed[:WIDTH], "little")
    end = WIDTH + length + (1 - length) % WIDTH
    return BitMap.deserialize(packed[WIDTH : WIDTH + length]), packed[end:]


def _read(integers: bytes | bytearray) -> array[int]:
    read = array(INTEGERS, bytes(integers))
    if sys.byteorder == "big":
        read.byteswap()
    return read


def ensure(keys: Iterable[str]) -> dict[str, int]:
    """Return the listener's id for each key, such as `account:7`. Listeners that do not exist are created."""
    found: dict[str, int] = {}
    for some in batches(sorted(set(keys)), KEYS_PER_QUERY):
        found |= find(some)
        if missing := [(key,) for key in some if key not in found]:
            found |= dict(bulk.insert_returning(INSERT, ("text",), missing))
        if others := [key for key in some if key not in found]:  # created by another process just now
            found |= find(others)
    return found


def find(keys: Sequence[str]) -> dict[str, int]:
    """Return the listener's id for each key, such as `account:7`. Keys without a listener are absent."""
    return dict(_ids(keys))


@compiled
def _ids(keys: Sequence[str]) -> Any:
    return Listener.select(Listener.key, Listener.id).where(Listener.key.in_(keys))
