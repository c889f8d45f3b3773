"""Cells with texts: names, lists of names, addresses."""

import html
import re
from collections.abc import Iterable
from typing import Any

from musicsvc.errors import Failure
from musicsvc.store.importing.cells.blanks import is_blank
from musicsvc.store.importing.cells.notations import Notation
from musicsvc.wording import CONTROLS, is_url, is_visible, name_problem

MOST_NAMES = 1_000  # in a cell
URL_LENGTH = 2048
SEPARATOR, JOINT = ";", ", "  # between names in cells, and in the artist of a listen that has a list of them, too
ENTITY = re.compile(r"&(?:amp|quot|apos|lt|gt|nbsp|#[0-9]{1,6}|#x[0-9a-fA-F]{1,5});")  # of web pages: `&amp;`
OBJECTS = ("[{", '{"', "{'")  # how a text begins that has objects of JSON or Python
# What spreadsheets write into a CSV file for a formula that failed, in English, German and French.
ERRORS = {"#N/A", "#REF!", "#VALUE!", "#NAME?", "#DIV/0!", "#NULL!", "#NUM!", "#NV", "#BEZUG!", "#WERT!", "#VALEUR!"}


def text(value: Any, longest: int) -> str | None:
    """Return the cell as text without surrounding spaces. Raises ValueError beyond `longest` code points."""
    if not isinstance(value, str):
        if is_blank(value):
            return None
        if isinstance(value, float) and value.is_integer():  # a column of numbers with an empty cell has only such
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError("must be text")  # noqa: TRY004 - the caller handles ValueError
    found = str(value).strip()
    if not found:
        return None
    if "\0" in found:
        raise ValueError("must not contain a NUL character")
    if found in ERRORS:
        raise ValueError("is an error of a spreadsheet")
    if len(found) > longest:
        raise ValueError(f"must not be longer than {longest:,} characters")
    return found


def name(value: Any, longest: int) -> str | None:
    """Return the cell as text like `text`, or None if it has no visible character. Raises ValueError for objects."""
    found = text(value, longest)
    if found is not None and SEPARATOR in found:
        found = _without_entities(found)
    if found and found[0] in "[{" and found.startswith(OBJECTS):
        raise ValueError("has objects in place of names; write what is in them as cells")
    return found if found is not None and is_visible(found) else None


def _without_entities(text: str) -> str:
    return ENTITY.sub(lambda found: " ".join(html.unescape(found[0]).split()) or " ", text).strip()


def given(field: str, name: str | None, longest: int) -> str | None:
    """Return the name that an option gives to rows without one, such as their artist.

    Raises Failure for a name that no row could have.
    """
    if name is None:
        return None
    if not 1 <= len(name := name.strip()) <= longest:
        raise Failure(f"The {field}'s name must have 1 to {longest} characters.")
    if problem := name_problem(name):
        raise Failure(f"The {field}'s name is wrong: {problem}")
    return name


def without_controls(value: Any) -> Any:
    """Return the cell without control characters, except NUL, which is refused, and tabs and line breaks."""
    if isinstance(value, list):
        return [without_controls(each) for each in value]
    return CONTROLS.sub(_only_nul, value) if isinstance(value, str) and not value.isprintable() else value


def _only_nul(found: re.Match[str]) -> str:
    return found[0] if found[0] == "\0" else ""


def several(value: Any, longest: int) -> list[str]:
    """Return the distinct names in a list, or in a text separated by semicolons. `longest`: limit in code points.

    Raises ValueError for more than MOST_NAMES.
    """
    if isinstance(value, str) and SEPARATOR not in value:
        return [] if (only := name(value, longest)) is None else [only]
    parts = value if isinstance(value, list) else [value]
    if isinstance(value, str):
        parts = _without_entities(value).split(SEPARATOR)
    if len(parts) > MOST_NAMES:
        raise ValueError(f"must not have more than {MOST_NAMES:,} names")
    found = [part for each in parts if (part := name(each, longest)) is not None]
    return list(dict.fromkeys(found))


def texts(cells: Iterable[Any], longest: int) -> tuple[str, ...]:
    """Return the distinct names in several cells."""
    cells = [*cells]
    if len(cells) == 1:  # most often
        return (*several(cells[0], longest),)
    return tuple(dict.fromkeys(part for cell in cells for part in several(cell, longest)))


def url(value: Any) -> str | None:
    """Return the URL in the cell. Raises ValueError unless it is absolute and begins with http or https."""
    found = text(value, URL_LENGTH)
    if found is not None and not is_url(found):
        raise ValueError("must be an absolute http or https URL")
    return found


def unmarked(value: Any) -> Any:
    """Return the text of a cell that a formula marks as text: `="036"`."""
    if isinstance(value, list):
        return [unmarked(each) for each in value]
    found = value.strip() if isinstance(value, str) else ""
    is_marked = found.startswith('="') and found.endswith('"') and len(found) > len('="')
    return found[2:-1].replace('""', '"') if is_marked else value


NOTATIONS = (
    Notation("a text without the blanks around it", str, "Rag = Rag"),
    Notation('="text", if most cells of the column are so', unmarked, '="Rag" = Rag', source="spreadsheets"),
)
LISTS = (Notation("texts with semicolons between them, or a list of JSON or Parquet", str, "Ann; Bea = Ann;Bea"),)
