"""Ways in which clients damage values: ids that do not fit into a number type, texts that lose characters."""

import html
import re
import struct
import unicodedata
from collections.abc import Iterator
from urllib.parse import quote

BITS = 32
LARGEST_SMALL = 2**31 - 1
CLAMPED = {2**31 - 1, 2**32 - 1}
NULLS = {"null", "none", "nil", "nan", "undefined", "(null)", "<null>"}
NOT_AN_ID = re.compile(r"-?[0-9]+(\.[0-9]+)?(e\+?[0-9]+)?|-?inf(inity)?", re.IGNORECASE)
OBJECT = "[object"  # as JavaScript writes one
TRUNCATED = 100  # characters of a text that is cut by a limit, not on purpose
TELLING = 4  # characters of a damaged text that nobody sends by chance
REPLACEMENT = "\ufffd"
SPECIAL = frozenset("<>&\"'")


def mangled_ids(number: int) -> set[int]:
    """Return the numbers that a large id becomes in 32 bits and in a float of 32 bits."""
    low = number & (2**BITS - 1)
    signed = low - 2**BITS if low > LARGEST_SMALL else low
    return {low, signed, int(struct.unpack("f", struct.pack("f", number))[0])} - {number}


def is_no_id(text: str) -> bool:
    """Return whether a text in place of an id is null or a number in a notation that ids do not have."""
    if text.isascii() and text.isdecimal():
        return False
    lowered = text.lower()
    return lowered in NULLS or OBJECT in lowered or NOT_AN_ID.fullmatch(text) is not None


def mangled_texts(text: str) -> set[str]:
    """Return what a text becomes in clients that do not keep it as it is."""
    if text.isascii() and text.isprintable() and SPECIAL.isdisjoint(text):
        return set()
    return {form for each in _mangled(text) if len(form := each.strip()) >= TELLING} - {text}


def _mangled(text: str) -> Iterator[str]:
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        yield unicodedata.normalize(form, text)
    raw = text.encode()
    for encoding in ("ascii", "latin-1", "cp1252"):
        yield text.encode(encoding, "replace").decode(encoding)
        yield text.encode(encoding, "ignore").decode(encoding)
        yield raw.decode(encoding, "replace")
        yield raw.decode(encoding, "ignore")
    for sign in ("", "?", "??", REPLACEMENT, REPLACEMENT * 2):  # characters beyond 16 bits
        yield re.sub("[\U00010000-\U0010ffff]", sign, text)
    yield html.escape(text)
    yield html.escape(text, quote=False)
    yield html.unescape(text)
    yield quote(text)
    yield " ".join(text.split())
    yield "".join(char for char in text if char.isprintable())


def is_cut(sent: str, given: str) -> bool:
    """Return whether `sent` is the beginning of a long text."""
    kept = sent.rstrip(".…\ufffd ")
    return len(given) >= TRUNCATED and 0 < len(kept) < len(given) and given.startswith(kept)


def is_null(text: object) -> bool:
    return isinstance(text, str) and text.lower() in NULLS
