"""Request bodies that are as expensive as a body of their size can be, generated from a route's schema."""

from collections.abc import Callable
from functools import partial

from pydantic import BaseModel

from musicsvc.server.schemas.reading import MAX_VALUES

Make = Callable[[int, int], bytes]

FEWER = MAX_VALUES - 2000  # values in all, so that the body is parsed as a whole
PLAY = b'{"track_id":0,"played_at":"2026-01-31T12:00:00Q","listener":0,"duration_ms":-1,"client_id":0}'
CHANNELS = b",".join(b'"%d":0' % number for number in range(60))
SELECTION = b'{"notif_id":"!","channels":{%s}}' % CHANNELS


def _array(item: bytes, most: int | None = None) -> Make:
    """Return a maker of arrays of this item; `most`: how many of them all fields together hold."""

    def make(size: int, fields: int) -> bytes:
        count = size // (len(item) + 1)
        return b"[%s]" % b",".join([item] * (count if most is None else min(count, most // fields)))

    return make


def _string(piece: bytes) -> Make:
    return lambda size, _: b'"%s"' % (piece * (size // len(piece)))


def _members(size: int, fields: int) -> bytes:
    count = min(size // 9, FEWER // fields)
    return b"{%s}" % b",".join(b'"%x":0' % number for number in range(count))


def _long_keys(size: int, _fields: int) -> bytes:
    return b"{%s}" % b",".join(b'"%d%s":0' % (number, b"k" * (size // 20)) for number in range(15))


VALUES: dict[str, Make] = {
    "integers": _array(b"1"),
    "empty arrays": _array(b"[]"),
    "objects": _array(b'{"":0}'),
    "strings": _array(b'""'),
    "deep arrays": _array(b"[" * 100 + b"]" * 100),
    "integers below the bound": _array(b"1", FEWER),
    "objects below the bound": _array(b'{"a":0}', FEWER // 2),
    "floats below the bound": _array(b"-1.7976931348623157e-300", FEWER),
    "long integers": _array(b"9" * 400),
    "wrong plays": _array(PLAY, 1000),
    "more wrong plays": _array(PLAY),
    "wrong selections": _array(SELECTION, 100),
    "members": _members,
    "long keys": _long_keys,
    "a long string": _string(b"a"),
    "escapes": _string(rb"\u00e9"),
    "surrogate pairs": _string(rb"\ud83c\udfb5"),
    "blanks": _string(b" "),
    "NULs": _string(rb"\u0000"),
    "quotes": _string(rb"\""),
    "separators in a string": _string(b","),
    "ligatures": _string("ﷺ".encode()),
    "one number": lambda size, _: b"9" * size,
}
WHOLE: dict[str, Callable[[int], bytes]] = {
    "a repeated key": lambda size: b"{%s}" % b",".join([b'"a":0'] * (size // 6)),
    "a late repeated key": lambda size: (
        b"{%s}" % b",".join([*(b'"%05x":0' % number for number in range(min(FEWER, size // 11))), b'"":0,"":0'])
    ),
    "brackets": lambda size: b"[" * size,
    "objects in each other": lambda size: b'{"a":' * (size // 5),
    "an array": lambda size: b"[%s]" % b",".join([b"0"] * (size // 2 - 1)),
    "strings that do not end": lambda size: b'{"a":%s%s' % (rb"\"" * (size // 3 - 4), b"," * (size // 3)),
    "an open string": lambda size: b'{"a":"%s' % (rb"\n" * (size // 2 - 4)),
}


def bodies(schema: type[BaseModel], size: int) -> list[tuple[str, Callable[[], bytes]]]:
    """Return makers of bodies of at most this size, each with a description."""
    names = [field.alias or name for name, field in schema.model_fields.items()]
    return [
        *((f"{kind} in each field", partial(_body, names, make, size)) for kind, make in VALUES.items()),
        *((f"integers in {name}", partial(_body, [name], VALUES["integers"], size)) for name in names),
        ("unknown members", partial(_unknown_members, names[0], size)),
        *((kind, partial(make, size)) for kind, make in WHOLE.items()),
    ]


def _unknown_members(name: str, size: int) -> bytes:
    """Return a body of many members that are ignored, and one that is not valid."""
    count = (size - 100) // 10
    return b'{"%s":{},%s}' % (name.encode(), b",".join(b'"%05x":0' % number for number in range(count)))


def _body(names: list[str], make: Make, size: int) -> bytes:
    share = (size - sum(len(name) + 4 for name in names)) // len(names) - 4
    body = b"{%s}" % b",".join(b'"%s":%s' % (name.encode(), make(share, len(names))) for name in names)
    assert len(body) <= size
    return body
