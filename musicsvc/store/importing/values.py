"""Parse cells of imported files. A blank cell becomes None. An invalid cell raises ValueError with the reason."""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import date, time, timedelta
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

from musicsvc.store.catalog import identifiers
from musicsvc.wording import CONTROLS, is_url, is_visible

SLASHED = re.compile(r"([0-9]{1,2})([./-])([0-9]{1,2})\2([0-9]{4})")
CLOCK = re.compile(r"(?:([0-9]{1,3}):)?([0-9]{1,3}):([0-5][0-9])(?:[.,]([0-9]{1,3}))?")
MONTHS, MINUTE, HOUR = 12, 60, 3600
LONGEST_DURATION = 86_400_000  # milliseconds
DATE = re.compile(r"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2})(?:[T ][0-9]{2}:[0-9:.]{2,}Z?)?)?)?")
NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
LONGEST_NUMBER = 40
MOST_NAMES = 1_000  # in a cell
LONGEST_CACHED = 64  # characters
NOTES = ("C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B")
NOTE = re.compile(r"([A-Ga-g])([#♯b♭]?)")
SCALES = {"major": "Major", "maj": "Major", "1": "Major", "minor": "Minor", "min": "Minor", "0": "Minor"}
TRUE = ("true", "yes", "y", "t", "x", "ja", "j", "wahr", "oui", "sí", "si", "explicit", "explizit", "e", "1")
FALSE = ("false", "no", "n", "f", "nein", "falsch", "non", "none", "clean", "cleaned", "edited", "0")
FLAGS = dict.fromkeys(TRUE, True) | dict.fromkeys(FALSE, False)
FLAGS |= dict.fromkeys(("not explicit", "non-explicit", "notexplicit", "nicht explizit"), False)
T = TypeVar("T")
URL_LENGTH = 2048
SEPARATOR = ";"


class Day(NamedTuple):
    """A date. `padded` is `month` if the cell had only a year, `day` if it had a year and a month, otherwise None."""

    date: str
    padded: str | None


def _unless_blank(parse: Callable[[Any], T]) -> Callable[[Any], T | None]:
    """Return `parse` for cells that are not blank, with a cache of short texts, for columns with few values."""

    def parsed(value: Any) -> T | None:
        return None if is_blank(value) else parse(value)

    cached = lru_cache(1024)(parsed)
    return lambda value: (cached if isinstance(value, str) and len(value) <= LONGEST_CACHED else parsed)(value)


def is_blank(value: Any) -> bool:
    """Return True if the cell is empty, has only spaces, or is NaN (the empty value of data frames)."""
    if isinstance(value, str):
        return not value.strip()
    return value is None or (isinstance(value, float) and math.isnan(value))


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
    if len(found) > longest:
        raise ValueError(f"must not be longer than {longest:,} characters")
    return found


def name(value: Any, longest: int) -> str | None:
    """Return the cell as text like `text`, or None if it has no visible character."""
    found = text(value, longest)
    return found if found is not None and is_visible(found) else None


def without_controls(value: Any) -> Any:
    """Return the cell without control characters, except NUL, which is refused, and tabs and line breaks."""
    if isinstance(value, list):
        return [without_controls(each) for each in value]
    return CONTROLS.sub(_only_nul, value) if isinstance(value, str) else value


def _only_nul(found: re.Match[str]) -> str:
    return found[0] if found[0] == "\0" else ""


def several(value: Any, longest: int) -> list[str]:
    """Return the distinct names in a list, or in a text separated by semicolons. `longest`: limit in code points.

    Raises ValueError for more than MOST_NAMES.
    """
    if isinstance(value, str) and SEPARATOR not in value:
        return [] if (only := name(value, longest)) is None else [only]
    parts = value.split(SEPARATOR) if isinstance(value, str) else value if isinstance(value, list) else [value]
    if len(parts) > MOST_NAMES:
        raise ValueError(f"must not have more than {MOST_NAMES:,} names")
    found = [part for each in parts if (part := name(each, longest)) is not None]
    return list(dict.fromkeys(found))


def texts(cells: Iterable[Any], longest: int) -> tuple[str, ...]:
    """Return the distinct names in several cells."""
    return tuple(dict.fromkeys(part for cell in cells for part in several(cell, longest)))


def number(value: Any) -> Decimal | None:
    """Parse a number in decimal or scientific notation. Raises ValueError for anything else."""
    if is_blank(value):
        return None
    if isinstance(value, bool) or not isinstance(value, (str, int, float, Decimal)):
        raise ValueError("must be a number")  # noqa: TRY004 - the caller handles ValueError
    found = str(value).strip()
    if len(found) > LONGEST_NUMBER or not NUMBER.fullmatch(found):
        raise ValueError("must be a number")
    return Decimal(found)


def rounded(value: Decimal) -> int:
    """Round to the nearest integer. Halves are rounded away from zero."""
    return int(value.to_integral_value(ROUND_HALF_UP))


def whole(value: Any, lowest: int, highest: int) -> int | None:
    """Parse a number and round it to an integer. Raises ValueError below `lowest` or above `highest`."""
    found: Decimal | int | None
    plain = isinstance(value, str) and len(value) < LONGEST_NUMBER and value.isascii() and value.isdigit()
    found = int(value) if plain else number(value)
    if found is None:
        return None
    if not lowest <= found <= highest:
        raise ValueError(f"must be between {lowest:,} and {highest:,}")
    return found if isinstance(found, int) else rounded(found)


@_unless_blank
def day(value: Any) -> Day:
    """Parse a date. A year becomes its January 1, a month its first day. Raises ValueError for anything else."""
    found = value.isoformat()[:10] if isinstance(value, date) else str(value).strip()
    match = DATE.fullmatch(found)
    if match is None and (dotted := SLASHED.fullmatch(found)) and dotted[2] == ".":
        return _day(dotted[4], dotted[3], dotted[1])
    if isinstance(value, bool) or match is None:
        raise ValueError("must be a date: YYYY-MM-DD, DD.MM.YYYY, YYYY-MM or YYYY")
    return _day(*match.groups())


def dated(value: Any, order: str) -> Day | None:
    """Parse a date in a column whose dates have this order: `DMY` or `MDY`. Those that begin with a year are valid."""
    match = SLASHED.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None or match[2] == ".":
        return day(value)
    first, second = match[1], match[3]
    return _day(match[4], second, first) if order == "DMY" else _day(match[4], first, second)


def slashed(value: Any) -> tuple[int, int] | None:
    """Return the first two numbers of a date such as 10/11/2026, whose order the cell does not say."""
    match = SLASHED.fullmatch(value.strip()) if isinstance(value, str) else None
    return None if match is None or match[2] == "." else (int(match[1]), int(match[3]))


def _day(year: str, month: str | None, of_month: str | None) -> Day:
    try:
        found_date = date(int(year), int(month or 1), int(of_month or 1))
    except ValueError:
        raise ValueError("must be a date that exists") from None
    return Day(found_date.isoformat(), None if of_month else "day" if month else "month")


@_unless_blank
def key(value: Any) -> str | None:
    """Parse a musical key: a note name, or a number from 0 (C) to 11 (B). Returns None for -1.

    Raises ValueError for anything else.
    """
    found = str(value).strip()
    if match := NOTE.fullmatch(found):
        step = {"#": 1, "♯": 1, "b": -1, "♭": -1, "": 0}[match[2]]
        return NOTES[(NOTES.index(match[1].upper()) + step) % len(NOTES)]
    place = _integer(value)
    if place is None or not -1 <= place < len(NOTES):
        raise ValueError("must be a note (C, C#, … B) or a number from 0 to 11")
    return None if place == -1 else NOTES[place]


def milliseconds(value: Any) -> int | None:
    """Parse a duration in milliseconds."""
    return whole(value, 0, LONGEST_DURATION)


def seconds(value: Any) -> int | None:
    """Parse a duration in seconds. Returns milliseconds."""
    found = number(value)
    return None if found is None else milliseconds(found * 1000)


def clock(value: Any, *, shifted: bool = False) -> int | None:
    """Parse a duration such as 3:45 or 1:02:03. Returns milliseconds. Raises ValueError for anything else.

    `shifted`: times of a workbook have hours and minutes in place of minutes and seconds.
    """
    if is_blank(value):
        return None
    if isinstance(value, time | timedelta):
        length = span(value)
        if shifted and length % MINUTE:
            raise ValueError("must be a duration as m:ss, which the workbook holds as hours and minutes in this column")
        return milliseconds(Decimal(str(length / MINUTE if shifted else length)) * 1000)
    match = CLOCK.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None or (match[1] and int(match[2]) >= MINUTE):
        raise ValueError("must be a duration as m:ss or h:mm:ss, like most of its column")
    whole_seconds = int(match[1] or 0) * HOUR + int(match[2]) * MINUTE + int(match[3])
    return milliseconds(whole_seconds * 1000 + int((match[4] or "").ljust(3, "0")))


def clock_text(length: float) -> str:
    """Return a duration in seconds as h:mm:ss."""
    whole_seconds, rest = divmod(round(length * 1000), 1000)
    minutes, of_minute = divmod(whole_seconds, MINUTE)
    fraction = f".{rest:03}" if rest else ""
    return f"{minutes // MINUTE}:{minutes % MINUTE:02}:{of_minute:02}{fraction}"


def span(value: time | timedelta) -> float:
    """Return the seconds of a time of day, or of a duration."""
    if isinstance(value, timedelta):
        return value.total_seconds()
    return value.hour * HOUR + value.minute * MINUTE + value.second + value.microsecond / 1_000_000


def isrc(value: Any) -> str | None:
    found = text(value, LONGEST_NUMBER)
    return None if found is None else identifiers.isrc(found)


def upc(value: Any) -> str | None:
    found = text(value, LONGEST_NUMBER)
    if found is None:
        return None
    # A spreadsheet that takes it for a number drops the zeros in front.
    return identifiers.upc(found.zfill(identifiers.UPC_DIGITS) if found.isascii() and found.isdigit() else found)


@_unless_blank
def flag(value: Any) -> bool:
    """Parse a truth value: a word of TRUE or FALSE, in any case."""
    return _meaning(value, FLAGS, "true or false")


@_unless_blank
def scale(value: Any) -> str:
    """Parse a scale. Returns `Major` (also for 1) or `Minor` (also for 0)."""
    return _meaning(value, SCALES, "Major or Minor, or 1 or 0")


def _meaning(value: Any, words: Mapping[str, T], expected: str) -> T:
    """Return what the word or the integer in a cell stands for."""
    found = _integer(value)
    key = str(value).strip().lower() if found is None else str(found)
    if key not in words:
        raise ValueError(f"must be {expected}")
    return words[key]


def number_or_none(value: Any) -> Decimal | None:
    """Return the number in a cell, or None if the cell has anything else."""
    try:
        return number(value)
    except ValueError:
        return None


def _integer(value: Any) -> int | None:
    """Return the integer in a cell such as `7` or `7.0`, or None if the cell has anything else."""
    found = number_or_none(value)
    return int(found) if found is not None and found == found.to_integral_value() else None


def url(value: Any) -> str | None:
    """Return the URL in the cell. Raises ValueError unless it is absolute and begins with http or https."""
    found = text(value, URL_LENGTH)
    if found is not None and not is_url(found):
        raise ValueError("must be an absolute http or https URL")
    return found
