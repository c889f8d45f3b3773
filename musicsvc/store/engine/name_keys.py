"""Keys by which names are compared: equal for names that look alike. Names are stored as they came."""

import re
import unicodedata
from collections.abc import Callable, Collection
from functools import lru_cache
from typing import TypeVar

T = TypeVar("T")

# By the ASCII sign that replaces them. Blanks are what `str.split` does not know as such.
_TYPOGRAPHIC = {
    "'": "\u00b4\u02b9\u02bb\u02bc\u02bd\u2018\u2019\u201a\u201b\u2032\u2039\u203a\uff07",
    '"': "\u00ab\u00bb\u02ba\u201c\u201d\u201e\u201f\u2033\u301d\u301e\u301f\uff02",
    "-": "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d",
    " ": "\u2800",
}
_ASCII = {char: ascii_sign for ascii_sign, chars in _TYPOGRAPHIC.items() for char in chars}
# Control characters but white space, and what Unicode calls format characters, fillers and variation selectors.
_INVISIBLE = (
    "\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160"
    "\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_REPLACED = re.compile(f"[{_INVISIBLE}{''.join(_ASCII)}]")
_BASE = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "ħ": "h", "ŧ": "t", "\u0131": "i", "æ": "ae", "œ": "oe"})


@lru_cache(4096)  # rows of a file often have the same names
def name_key(name: str) -> str:
    """Return the form in which a name is compared. Case and accents count.

    NFC, without invisible characters, with single blanks, and with ASCII apostrophes, quotes and hyphens.
    """
    return _plain(name) or name


def folded_key(name: str) -> str:
    """Return the key of a name in lower case, without accents and compatibility forms. Indic vowel signs stay."""
    if is_plain(name):
        return name.lower()
    key = _plain(name)
    letters = "".join(char for char in unicodedata.normalize("NFKD", key) if not _is_accent(char))
    return _plain(letters.casefold().translate(_BASE))


def caseless_key(name: str) -> str:
    """Return the key of a name without case. Accents count."""
    key = name_key(name)
    return key.lower() if key.isascii() else unicodedata.normalize("NFC", key.casefold())


def closest(found: Collection[T], names_of: Callable[[T], tuple[str, ...]], wanted: tuple[str, ...]) -> list[T]:
    """Return those of `found` whose names are written exactly as `wanted` or, if there are none, have the same keys."""
    if exact := [each for each in found if names_of(each) == wanted]:
        return exact
    keys = tuple(map(name_key, wanted))
    return [each for each in found if tuple(map(name_key, names_of(each))) == keys]


def is_plain(name: str) -> bool:
    """Return True for a name that is its own key, as most are, in little time. Others may be theirs too."""
    return name.isascii() and name.isprintable() and "  " not in name and name[:1] != " " != name[-1:]


def _plain(name: str) -> str:
    if is_plain(name):
        return name
    if not (name.isascii() and name.isprintable()):
        name = _REPLACED.sub(lambda found: _ASCII.get(found[0], ""), unicodedata.normalize("NFC", name))
    return unicodedata.normalize("NFC", " ".join(name.split()))


def _is_accent(char: str) -> bool:
    return bool(unicodedata.combining(char)) or unicodedata.category(char) == "Me"
