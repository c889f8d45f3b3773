r"""Texts that name several artists, genres or tags: the joints of known exports, and the signs at which a rule divides.

Exportify joins names by commas, with or without a blank, and since 2025 by semicolons; some of its versions write a
comma within a name as `\,`. The number of ids beside the names tells how many there are.
"""

import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

import orjson

from musicsvc.store.importing.cells.names import SEPARATOR

MOST_SIGNS = 10  # of a rule
LONGEST_SIGN = 20  # characters
ANYWHERE = frozenset("&,/|\\")  # signs that divide wherever they stand; the others do between blanks
TIMES = "\N{MULTIPLICATION SIGN}"
ALIKE = (("feat.", "featuring", "feat", "ft.", "ft"), ("vs", "vs.", "versus"), ("with", "w/"), ("x", TIMES))
SAME = {form: group for group in ALIKE for form in group}
MARKS = ("&", ",", "/", "|", "+", "x", "feat.", "with", "vs")  # what often stands between the names of several artists
# The joints are commas with a blank, without one, and semicolons. A comma between digits is part of a number.
SPACED = re.compile(r"(?<!\\),\s")
CLOSE = re.compile(r"(?<!\\),(?!\s)(?!(?<=[0-9],)[0-9])")
SEMICOLON = re.compile(SEPARATOR)
JOINTS = (SPACED, CLOSE, SEMICOLON)
COMMA = re.compile(",")
ITEM = re.compile(r"""'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)\"""")  # of a list as Python writes it


def signs(text: str) -> tuple[str, ...]:
    """Return the signs of a rule, which are separated by blanks. Raises ValueError for too many or too long ones."""
    found = tuple(dict.fromkeys(text.casefold().split()))
    if len(found) > MOST_SIGNS or any(len(sign) > LONGEST_SIGN for sign in found):
        raise ValueError(f"a rule has at most {MOST_SIGNS} signs of {LONGEST_SIGN} characters, separated by blanks")
    return found


def marks(name: str) -> tuple[str, ...]:
    """Return the signs in a name that often join the names of several artists."""
    return tuple(dict.fromkeys(SAME.get(sign, (sign,))[0] for sign in _pattern(MARKS).findall(name.casefold())))


def divide(value: Any, at: tuple[str, ...]) -> list[Any]:
    """Return the names in a text, divided at semicolons and at the signs `at`, or those in a list of texts."""
    parts = value.split(SEPARATOR) if isinstance(value, str) else value if isinstance(value, list) else [value]
    return [name for part in parts for name in (_names(part, at) if isinstance(part, str) else [part])]


def split(value: Any, joint: re.Pattern[str]) -> Any:
    """Return the names in a text of an export that joins them by `joint`. A list stays as it is."""
    return value if isinstance(value, list) else [_plain(part) for part in joint.split(str(value))]


def counted(value: Any, ids: Any, joint: re.Pattern[str]) -> Any:
    """Return the names in a text like `split`, as many as there are `ids`; None if there are more or fewer."""
    number = len(ids) if isinstance(ids, list) else 1 + max(map(str(ids or "").count, (",", SEPARATOR)))
    names = split(value, joint) if number > 1 or isinstance(value, list) else [_plain(str(value))]
    return names if len(names) == number or isinstance(value, list) else None


def bracketed(value: Any) -> Any:
    """Return the names in a text such as `['Ann', "Bob"]`, or None for another text. A list stays as it is."""
    if not isinstance(value, str):
        return value
    with suppress(orjson.JSONDecodeError):
        found = orjson.loads(value)
        return found if isinstance(found, list) and all(isinstance(each, str) for each in found) else None
    inner, at, found = value.strip()[1:-1], 0, []
    while item := ITEM.match(inner, at):
        found.append((item[1] or item[2] or "").replace("\\'", "'"))
        at = item.end() + len(", ") * inner.startswith(", ", item.end())
    return found if value.strip() == f"[{inner}]" and at == len(inner) else None


def joint_of(cells: Sequence[tuple[Any, Any]]) -> re.Pattern[str]:
    """Return the joint that fits most of these cells of names, each with the cell of ids beside it."""
    return max(JOINTS, key=lambda joint: sum(counted(value, ids, joint) is not None for value, ids in cells))


def _plain(part: str) -> str:
    return part.strip().replace("\\,", ",")


def _names(text: str, at: tuple[str, ...]) -> Collection[str]:
    """Return the parts of a text between signs, without the brackets around them, or the text if it has no other."""
    parts = _pattern(at).split(text) if at and _pattern(at).search(text) else ()
    return [name for part in parts if (name := _without_bracket(part.strip()))] or [text]


def _without_bracket(part: str) -> str:
    """Return a part without a bracket that another part closes or opens: `Ann (` and `Bob)` of `Ann (feat. Bob)`."""
    for opening, closing in ("()", "[]"):
        if (part.count(opening) > part.count(closing) and part.endswith(opening)) or (
            part.count(closing) > part.count(opening) and part.endswith(closing)
        ):
            part = part[:-1].rstrip()
    return part


@lru_cache(64)
def _pattern(at: tuple[str, ...]) -> re.Pattern[str]:
    """Return the pattern of signs. Before a word there may be a bracket, after an abbreviation no blank."""
    forms = sorted({form for sign in at for form in SAME.get(sign, (sign,))}, key=len, reverse=True)
    signs = "".join(re.escape(form) for form in forms if form in ANYWHERE)
    words = [re.escape(form) + ("" if form.endswith(".") else r"(?=\s)") for form in forms if form not in ANYWHERE]
    parts = [*([f"[{signs}]"] if signs else []), *([rf"(?<=[\s(\[])(?:{'|'.join(words)})"] if words else [])]
    return re.compile("|".join(parts), re.IGNORECASE)
