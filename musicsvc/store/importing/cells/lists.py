r"""Texts that name several artists, genres or tags: the joints of known exports, and the signs at which a rule divides.

Exportify joins names by commas, with or without a blank, and since 2025 by semicolons; some of its versions write a
comma within a name as `\,`. The number of ids beside the names tells how many there are.
"""

import re
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Any

from musicsvc.store.importing.cells.names import SEPARATOR

MOST_SIGNS = 10  # of a rule
LONGEST_SIGN = 20  # characters
ANYWHERE = frozenset("&,/|\\")  # signs that divide wherever they stand; the others do between blanks
TIMES = "\N{MULTIPLICATION SIGN}"
ALIKE = (("feat.", "featuring", "feat", "ft.", "ft"), ("vs", "vs.", "versus"), ("with", "w/"), ("x", TIMES))
SAME = {form: group for group in ALIKE for form in group}
MARKS = ("&", ",", "/", "+", "x", "feat.", "with", "vs")  # what often stands between the names of several artists
# The joints are commas with a blank, without one, and semicolons. A comma between digits is part of a number.
SPACED, CLOSE = re.compile(r"(?<!\\),\s"), re.compile(r"(?<!\\),(?!\s)(?!(?<=[0-9],)[0-9])")
JOINTS = (SPACED, CLOSE, re.compile(SEPARATOR))
COMMA, NEVER = re.compile(","), re.compile(r"(?!)")


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
    return value if isinstance(value, list) else [part.strip().replace("\\,", ",") for part in joint.split(str(value))]


def counted(value: Any, ids: Any, joint: re.Pattern[str]) -> Any:
    """Return the names in a text like `split`, as many as there are `ids`; None if there are more or fewer."""
    number = len(ids) if isinstance(ids, list) else 1 + max(map(str(ids or "").count, (",", SEPARATOR)))
    names = split(value, joint if number > 1 else NEVER)
    return names if len(names) == number or isinstance(value, list) else None


def joint_of(cells: Sequence[tuple[Any, Any]]) -> re.Pattern[str]:
    """Return the joint that fits most of these cells of names, each with the cell of ids beside it."""
    return max(JOINTS, key=lambda joint: sum(counted(value, ids, joint) is not None for value, ids in cells))


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
    forms = {form for sign in at for form in SAME.get(sign, (sign,))}
    return re.compile("|".join(map(_form, sorted(forms, key=len, reverse=True))), re.IGNORECASE)


def _form(sign: str) -> str:
    """Return the pattern of a sign. Before a word there may be a bracket, after an abbreviation no blank."""
    if sign in ANYWHERE:
        return re.escape(sign)
    return rf"(?<=[\s(\[]){re.escape(sign)}" + ("" if sign.endswith(".") else r"(?=\s)")
