"""Cells with dates."""

import re
from collections.abc import Callable, Sequence
from datetime import date
from functools import cache
from typing import Any, NamedTuple

from musicsvc.store.importing.cells.blanks import unless_blank
from musicsvc.store.importing.cells.notations import LONGEST, Fitted, Notation, Parse, Sample, read

PLAIN = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})(?:[T ][0-9]{2}:[0-9:.]{2,}Z?)?")
YEAR_FIRST = re.compile(r"([0-9]{4})([-/.])([0-9]{1,2})\2([0-9]{1,2})")
COMPACT = re.compile(r"([0-9]{4})([0-9]{2})([0-9]{2})")
YEAR = re.compile(r"([0-9]{4})(?:[-/]([0-9]{1,2})|\.0)?()")
MONTH_FIRST = re.compile(r"([0-9]{1,2})[/.]([0-9]{4})()")
IDEOGRAMS = re.compile(r"([0-9]{4})年 ?([0-9]{1,2})月 ?([0-9]{1,2})日")
DOTTED = re.compile(r"([0-9]{1,2})\. ?([0-9]{1,2})\. ?([0-9]{4}|[0-9]{2})")
SLASHED = re.compile(r"([0-9]{1,2})([/-])([0-9]{1,2})\2([0-9]{4}|[0-9]{2})")
CLOCK = re.compile(
    r"[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]{1,9})?)? ?(?:Z|UTC|GMT)?(?:[+-][0-9]{1,2}(?::?[0-9]{2})?)?"
    r"|12:00(?::00)? ?AM"  # midnight, as American databases write it
)
WORDED = re.compile(r"(?:[^\W\d]|[0-9 .,'\u2019/-])+")
WORD = re.compile(r"[0-9]+|[^\W\d_]+")
NAMES = (
    "jan january januar jänner janvier janv enero ene gennaio gen januari janeiro",
    "feb february februar feber février févr febrero febbraio februari fevereiro fev",
    "mar march mär märz mrz mars marzo maart mrt março",
    "apr april avril avr abril abr aprile",
    "may mai mayo maggio mag mei maio",
    "jun june juni juin junio giugno giu junho",
    "jul july juli juillet juil julio luglio lug julho",
    "aug august août agosto ago augustus",
    "sep sept september septembre septiembre settembre set setembro",
    "oct october okt oktober octobre octubre ottobre ott outubro out",
    "nov november novembre noviembre novembro",
    "dec december dez dezember décembre déc diciembre dic dicembre dezembro",
)
MONTHS = {name: month for month, names in enumerate(NAMES, 1) for name in names.split()}
WEEKDAYS = (
    "mon tue tues wed thu thur thurs fri sat sun monday tuesday wednesday thursday friday saturday sunday",
    "mo di mi do fr sa so montag dienstag mittwoch donnerstag freitag samstag sonntag",
)
ASIDE = {
    "st",
    "nd",
    "rd",
    "th",
    "er",
    "of",
    "de",
    "at",
    "um",
    "à",
    "às",
    "alle",
    "om",
    *(word for words in WEEKDAYS for word in words.split()),
}
LAST_MONTH = 12
LONGEST_YEAR = 4  # digits
SERIAL = "is a date that a spreadsheet wrote as a number; format its column as a date"
SERIAL_DIGITS = 5  # from May 1927 on
CENTURY = 30  # years of two digits before it are of this century, as spreadsheets take them
UNCLEAR = "can be day, month or month, day; say which with --date-format DD/MM/YYYY or --date-format MM/DD/YYYY"
Parts = tuple[str, str | int, str]  # year, month and day; "" and 0 stand for what is unknown


class Day(NamedTuple):
    """A date. `padded`: `month` if the cell had only a year, `day` if it had a year and a month, otherwise None.

    A date whose year is unknown is None, and `padded` is `year`.
    """

    date: str | None
    padded: str | None


def _at(pattern: re.Pattern[str], year: int, month: int, day: int) -> Callable[[str], Parts | None]:
    """Return the reader of a pattern whose groups with these numbers are year, month and day."""

    def parts_of(text: str) -> Parts | None:
        found = pattern.fullmatch(text)
        return found and (found[year], found[month] or "", found[day] or "")

    return parts_of


def _either(text: str) -> Parts | None:
    found = SLASHED.fullmatch(text)
    if found and (found[1] != found[3] or len(found[4]) < LONGEST_YEAR):
        raise ValueError(UNCLEAR)
    return found and (found[4], found[1], found[3])


def _worded(text: str) -> Parts | None:
    """Return the parts of a date with the name of its month, before or after the day, or of a month and a year."""
    if not WORDED.fullmatch(text):
        return None
    parts = [word for word in WORD.findall(text.casefold()) if word not in ASIDE]
    months = [MONTHS[word] for word in parts if word in MONTHS]
    numbers = [word for word in parts if word.isdecimal()]
    if len(months) != 1 or len(parts) != len(numbers) + 1 or any(len(each) > LONGEST_YEAR for each in numbers):
        return None
    if len(numbers) == 1 and len(numbers[0]) == LONGEST_YEAR:
        return numbers[0], months[0], ""
    if len(numbers) != 2:  # noqa: PLR2004 - day and year
        return None
    first, last = numbers
    return (first, months[0], last) if len(first) == LONGEST_YEAR else (last, months[0], first)


NOTATIONS = (
    Notation("year, month, day", _at(YEAR_FIRST, 1, 3, 4), "2026-10-15 = 2026-10-15 | 2024/03/21 = 2024-03-21 |"
             " 2024.3.1 = 2024-03-01 | 2026-10-15 00:00 = 2026-10-15", source="ISO 8601, databases, East Asia"),
    Notation("year, month, day without signs", _at(COMPACT, 1, 2, 3), "20240321 = 2024-03-21", source="DDEX, tags"),
    Notation("year, or year and month: the first day, counted", _at(YEAR, 1, 2, 3),
             "1999 = 1999-01-01 | 2005-10 = 2005-10-01 | 2005/10 = 2005-10-01", source="Spotify, MusicBrainz"),
    Notation("month/year: the first day, counted", _at(MONTH_FIRST, 2, 1, 3),
             "10/2005 = 2005-10-01 | 10.2005 = 2005-10-01", source="people"),
    Notation("zeros for what is unknown, counted", _at(YEAR_FIRST, 1, 3, 4),
             "1999-05-00 = 1999-05-01 | 1999-00-00 = 1999-01-01 | 0000-00-00 = ", source="MySQL, Discogs"),
    Notation("month.day.year, if the column shows it or `--date-format` says it", _at(DOTTED, 3, 1, 2),
             "10.15.2026 = 2026-10-15", "MDY", "American sheets"),
    Notation("day.month.year", _at(DOTTED, 3, 2, 1),
             "15.10.2026 = 2026-10-15 | 1. 2. 2026 = 2026-02-01 | 21.03.24 = 2024-03-21", source="German sheets"),
    Notation("with ideograms", _at(IDEOGRAMS, 1, 2, 3), "2024年3月21日 = 2024-03-21", source="East Asia"),
    Notation("with the name of the month, in English, German, French, Spanish, Italian, Dutch or Portuguese", _worded,
             "21-Mar-24 = 2024-03-21 | 21 Mar 2024 = 2024-03-21 | March 21, 2024 = 2024-03-21 |"
             " 21. März 2024 = 2024-03-21 | May 2005 = 2005-05-01", source="Excel, Discogs, Bandcamp"),
    Notation("day/month/year, if the column shows it or `--date-format` says it", _at(SLASHED, 4, 3, 1),
             "15/10/2026 = 2026-10-15 | 21-03-2024 = 2024-03-21", "DMY", "British sheets"),
    Notation("month/day/year, likewise", _at(SLASHED, 4, 1, 3),
             "10/15/2026 = 2026-10-15 | 3/21/24 = 2024-03-21", "MDY", "American sheets"),
    Notation("the same number for day and month", _either, "10/10/2026 = 2026-10-10", "either"),
)  # fmt: skip


def without_clock(text: str) -> tuple[str, str]:
    """Divide a text into a date and the time of day after it, which may be empty."""
    colon = text.find(":")
    if colon < 0:
        return text, ""
    place = max(text.rfind(sign, 0, colon) for sign in " Tt")
    return (text[:place].rstrip(" ,"), text[place + 1 :]) if place > 0 else (text, "")


def parts(text: str, order: str | None) -> Parts | None:
    """Return year, month and day of a date, or None if the text is none. Raises ValueError if it can mean two."""
    found: Parts | None = read(NOTATIONS, text, order or "either")
    return found


@cache
def reader(order: str | None) -> Parse:
    """Return the parser of dates in a column that has this order: DMY, MDY, YMD, or None if nobody says."""

    def parse(value: Any) -> Day:
        text = value.isoformat()[:10] if isinstance(value, date) else str(value).strip()
        if plain := PLAIN.fullmatch(text):
            return _day(plain[1], plain[2], plain[3])
        day, clock = without_clock(" ".join(text.split()))  # with any white space
        found = parts(day, order) if not clock or CLOCK.fullmatch(clock) else None
        if found is None and len(whole := text.partition(".")[0]) == SERIAL_DIGITS and whole.isdecimal():
            raise ValueError(SERIAL)
        if isinstance(value, bool) or found is None:
            raise ValueError("must be a date: YYYY-MM-DD, DD.MM.YYYY, YYYY-MM or YYYY")
        return _day(*found)

    return unless_blank(parse)


def _day(year: str, month: str | int, of_month: str) -> Day:
    number, months, days = whole_year(year), int(month or 0), int(of_month or 0)
    if not number:
        return Day(None, "year")
    if days and not months:
        raise ValueError("must be a date that exists")
    return Day(existing(number, months or 1, days or 1).isoformat(), None if days else "day" if months else "month")


def whole_year(year: str) -> int:
    """Return a year, also one of two digits."""
    found = int(year)
    return found if len(year) == LONGEST_YEAR else found + (2000 if found < CENTURY else 1900)


def existing(year: int, month: int, of_month: int) -> date:
    """Return the date. Raises ValueError if there is no such day."""
    try:
        return date(year, month, of_month)
    except ValueError:
        raise ValueError("must be a date that exists") from None


day = reader(None)


def order_of(sample: Sample) -> tuple[str | None, tuple[int, str] | None]:
    """Return the order of days and months in a column, if it has one, and the first cell that leaves it open."""
    if sample.order:
        return sample.order, None
    texts = [
        (line, " ".join(value.split()))
        for line, value in sample.cells
        if isinstance(value, str) and len(value) <= LONGEST
    ]
    found = [(line, text, each) for line, text in texts if (each := SLASHED.fullmatch(without_clock(text)[0]))]
    # A year of two digits may come first.
    if any(int(each[1]) > LAST_MONTH and (len(each[4]) == LONGEST_YEAR or int(each[4]) > 31) for _, _, each in found):  # noqa: PLR2004 - days
        return "DMY", None
    dotted = [each for _, text in texts if (each := DOTTED.fullmatch(without_clock(text)[0]))]
    by_dots = max((int(each[2]) for each in dotted), default=0) > LAST_MONTH >= max(int(each[1]) for each in dotted)
    if by_dots or any(int(each[3]) > LAST_MONTH for _, _, each in found):
        return "MDY", None
    open_ones: Sequence[tuple[int, str]] = [(line, text) for line, text, each in found if each[1] != each[3]]
    return None, open_ones[0] if open_ones else found[0][:2] if found else None


def fit(sample: Sample) -> Fitted:
    """Decide on the order of days and months in a column."""
    order, unclear = order_of(sample)
    return Fitted(reader(order), ORDERS.get(order or ""), unclear)


ORDERS = {"DMY": "day, month, year", "MDY": "month, day, year"}
