"""Values that have caused faults in servers, and their spelling in JSON, in paths and in queries."""

import json
from random import Random
from typing import Any
from urllib.parse import quote_from_bytes

TEXTS = (
    *(
        "",
        " ",
        "\t\n",
        "a",
        "a" * 256,
        "a" * 10_001,
        "é" * 300,
        "\0",
        "a\0b",
        "\u202e",
        "\ufeff",
        "\ud800",
        "\udfff\ud800",
    ),
    *(
        "ﬁ",
        "İ",
        "ß",
        "𝄞" * 130,
        "à" * 60,
        "' OR 1=1 --",
        "%",
        "_",
        "\\",
        '"',
        "=1+1",
        "@x",
        "\r\nX-Injected: 1",
        "../../etc",
    ),
    *(
        "{{7*7}}",
        "<script>",
        "null",
        "true",
        "1e999",
        "0x10",
        "１２",
        "٣",
        "2024-02-30",
        "0000-00-00",
        "9999-12-31T23:59:60Z",
    ),
    *("2026-01-01T00:00:00+99:99", "https://", "https://a b", "javascript:1", "https://[::1", "http://a" + "a" * 2050),
    *("a@b", "A@B.TEST", "@", "a@" + "b" * 300 + ".test", "7-days", "30d", "plays", "non_exclusive_only", "me"),
)
NUMBERS = (
    *(0, -0.0, -1, 1, 2, 1.0, 1.5, 100, 101, 1 << 31, (1 << 31) - 1, 1 << 53, (1 << 53) - 1, (1 << 63) - 1, 1 << 63),
    *(1 << 64, -(1 << 63) - 1, 10**30, 10**400, 1e308, 5e-324, float("inf"), float("-inf"), float("nan"), 86_400_001),
)
OTHERS: tuple[Any, ...] = (
    *(None, True, False, [], {}, [[]], [None], {"": ""}),
    *([1] * 600, {"id": 1}, {"$ref": "#"}, [{"ids": [{}]}]),
)
BYTES = (b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\x00", b"\xf4\x90\x80\x80", b"%", b"/..", b"\xe2\x80\x8b", b"+", b" ")


def anything(chance: Random) -> Any:
    """Return a random value, which `spell` can write."""
    return chance.choice(chance.choice((TEXTS, NUMBERS, OTHERS)))


def number(chance: Random, length: int) -> str:
    """A number with this many digits."""
    return "".join(chance.choices("0123456789", k=length))


def mutate(chance: Random, value: Any) -> Any:
    """Return the value with a part replaced, added, removed or nested deeper."""
    if isinstance(value, dict) and value and chance.random() < 0.8:
        changed = dict(value)
        key = chance.choice(list(changed))
        way = chance.randrange(5)
        if way == 0:
            del changed[key]
        elif way == 1:
            changed[chance.choice(TEXTS)] = anything(chance)
        else:
            changed[key] = mutate(chance, changed[key])
        return changed
    if isinstance(value, list) and value and chance.random() < 0.7:
        at = chance.randrange(len(value))
        way = chance.randrange(4)
        middle = [] if way == 0 else [value[at]] * chance.choice((2, 60)) if way == 1 else [mutate(chance, value[at])]
        return [*value[:at], *middle, *value[at + 1 :]]
    return anything(chance) if chance.random() < 0.9 else [value]


def spell(chance: Random, value: Any) -> bytes:
    """Return the value as JSON, at times invalid."""
    text = json.dumps(value, ensure_ascii=chance.random() < 0.5)
    raw = text.encode("utf-8", "surrogatepass")
    at = chance.randrange(len(raw) + 1)
    digits = number(chance, chance.choice((20, 5000))).encode()
    spoilt = (
        raw[:at],
        raw[:at] + chance.choice(BYTES) + raw[at:],
        b"[" * chance.choice((50, 5000, 100_000)) + raw,
        raw[:-1] + b"," + raw[1:],  # every key of an object twice
        text.encode(chance.choice(("utf-16", "utf-32", "utf-8-sig")), "surrogatepass"),
        raw.replace(b"1", digits, 1),
    )
    return chance.choice(spoilt) if chance.random() < 0.15 else raw


def in_url(chance: Random, *, path: bool) -> str:
    """Return a value escaped for a URL, at times incorrectly."""
    way = chance.randrange(10)
    if way < 7:
        return str(chance.randrange(1, 40))
    if way == 7:
        return chance.choice(
            ("0", "-1", "+1", "01", "1.0", number(chance, 20), number(chance, 5000), "me", "%", "%zz", "%00")
        )
    raw = chance.choice(BYTES) if way == 8 else str(anything(chance))[:500].encode("utf-8", "surrogatepass")
    return quote_from_bytes(raw, safe="" if path else "/")
