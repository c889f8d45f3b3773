"""Cells with instants: a date and a time of day, or Unix seconds. They are in UTC unless they say otherwise."""

import re
from datetime import UTC, date, datetime, timedelta
from functools import cache, partial
from statistics import median
from typing import Any

from musicsvc.clock import EPOCH, SECOND
from musicsvc.store.importing.cells import dates
from musicsvc.store.importing.cells.blanks import is_blank
from musicsvc.store.importing.cells.notations import Fitted, Notation, Parse, Sample, read
from musicsvc.store.importing.cells.numbers import number, number_or_none, refuse

PLAIN_EPOCH = EPOCH.replace(tzinfo=None)
DAY_SECONDS = 86_400
LATEST = 253_402_300_799  # the last second of the year 9999
UNSET = (0, 315_532_800 * SECOND)  # the times of players whose clock was never set: 1970, or 1980
MILLISECONDS = 1_000_000_000_000  # from it on, a Unix time is in milliseconds: those of September 2001
OUT_OF_RANGE = "is out of range; Unix times must be in seconds or milliseconds"
SERIAL = "is a date that a spreadsheet wrote as a number; format its column as date and time"
SERIALS = range(36_526, 73_051)  # from 2000 to 2099; as Unix seconds they are all on the first of January 1970
LENGTHS = "holds lengths, not times: the numbers are too small for Unix seconds"
LONGEST = 100_000_000  # a column of `Time` whose median is below it holds lengths, in seconds or milliseconds
ZONED = (
    "is in another zone than UTC, as it, a heading or a column says; write times in UTC, or with the hours east of it"
)
ZONES = {"cet", "cest", "mez", "mesz", "bst", "ist", "jst", "aest"}  # other than UTC
ZONES |= {"et", "est", "edt", "ct", "cst", "cdt", "mt", "mst", "mdt", "pt", "pst", "pdt"}
SAID = {OUT_OF_RANGE, SERIAL, LENGTHS, dates.UNCLEAR}
NO_DATE = "has no date; put date and time into one column, such as 2026-01-31 08:15"
NO_TIME = "must be a time such as 2026-01-31T12:00:00Z, or Unix seconds"
PLAIN = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?(?:Z|[+-][0-9]{2}:[0-9]{2})?"
)
PLAIN_HOUR = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ](?:[01][0-9]|2[0-3])")
HOUR = len("2026-01-31T12")
MOST_HOURS = 2048  # that are kept
CLOCK = re.compile(
    r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:[.,]([0-9]{1,9}))?)? ?(?:([AP])\.? ?M\.?)? ?"
    r"(?:Z|UTC|GMT|Uhr)?(?:([+-][0-9]{1,2})(?::?([0-9]{2}))?)?",
    re.IGNORECASE,
)
COMPACT = re.compile(r"([0-9]{8})T([0-9]{2})([0-9]{2})([0-9]{2})(Z?)")
NOON = 12


def _moment(text: str, order: str) -> int | None:
    if packed := COMPACT.fullmatch(text):
        text = "{} {}:{}:{}{}".format(*packed.groups())
    day, clock = dates.without_clock(text)
    found = CLOCK.fullmatch(clock)
    named = dates.parts(day, order) if found else None
    if found is None or named is None or not all(named):
        return None
    hour, minute, second, fraction, half, offset, more = found.groups()
    if half:
        hour = int(hour) % NOON + NOON * (half in "pP") if 0 < int(hour) <= NOON else LATEST
    at = datetime.combine(
        dates.existing(dates.whole_year(named[0]), int(named[1]), int(named[2])), datetime.min.time(), UTC
    ).replace(hour=int(hour), minute=int(minute), second=int(second or 0))
    east = timedelta(hours=int(offset or 0), minutes=int(f"{(offset or '+')[0]}{more or 0}"))
    return (at - EPOCH - east) // datetime.resolution + int((fraction or "").ljust(6, "0")[:6])


def _unix(value: Any) -> int | None:
    try:
        seconds = number(value)
    except ValueError:
        return None
    if seconds is not None and seconds >= MILLISECONDS:
        seconds /= 1000
    if seconds is not None and abs(seconds) > LATEST:
        raise ValueError(OUT_OF_RANGE)
    if seconds is not None and (int(seconds) in SERIALS or 0 < seconds < 1):
        raise ValueError(SERIAL)
    return None if seconds is None else int(seconds * SECOND)


NOTATIONS = (
    Notation("month/day/year and time, also with points, if the column shows it or `--date-format` says it",
             partial(_moment, order="MDY"), "1/31/26 12:00 pm = 2026-01-31T12:00:00Z |"
             " 01.31.2026 12:00 = 2026-01-31T12:00:00Z", "MDY", "American sheets"),
    Notation("date and time, in UTC or with the hours east of it", partial(_moment, order="YMD"), " | ".join(
             f"{each} = 2026-01-31T12:00:00Z" for each in (
                 "2026-01-31T12:00:00Z", "2026-01-31 12:00:00 UTC", "2026-01-31T13:00+01", "20260131T120000Z",
                 "31.01.2026 12:00", "31 Jan 2026, 12:00", "Sat, 31 Jan 2026 14:00 +0200", "January 31, 2026 12:00 PM",
             )), source="ISO 8601, RFC 5322, Last.fm, databases"),
    Notation("day/month/year and time, likewise",
             partial(_moment, order="DMY"), "31/01/2026 12:00 = 2026-01-31T12:00:00Z", "DMY", "British sheets"),
    Notation("the same number for day and month", partial(_moment, order="either"),
             "02/02/2026 12:00 = 2026-02-02T12:00:00Z", "either"),
    Notation("seconds since 1970", _unix, "1769860800 = 2026-01-31T12:00:00Z | 1769860800.5 = 2026-01-31T12:00:00.5Z",
             source="Last.fm, ListenBrainz"),
    Notation("milliseconds since 1970, from September 2001 on", _unix, "1769860800000 = 2026-01-31T12:00:00Z",
             source="Java, JavaScript"),
)  # fmt: skip


@cache
def reader(order: str | None) -> Parse:
    """Return the parser of instants, in microseconds, in a column that has this order of days and months."""

    def parse(value: Any) -> int | None:
        text = value.strip() if isinstance(value, str) else None
        if is_blank(value) if text is None else not text:
            return None
        found: int | None = None
        try:
            if text is not None:
                plain = datetime.fromisoformat(text) if PLAIN.fullmatch(text) else None
                found = since(plain) if plain else read(NOTATIONS, " ".join(text.split()), order or "either")
            elif isinstance(value, datetime):
                found = since(value)
            elif not isinstance(value, date):
                found = _unix(value)
        except (ValueError, OverflowError) as error:
            raise (error if str(error) in SAID else ValueError(NO_TIME)) from None
        if found is None:
            if text is not None and text.rpartition(" ")[2].lower() in ZONES:
                raise ValueError(ZONED)
            raise ValueError(NO_DATE if text is not None and CLOCK.fullmatch(text) else NO_TIME)
        return found

    return parse


def since(moment: datetime) -> int:
    """Return the microseconds from 1970 to a moment, which is in UTC unless it has an offset."""
    passed = moment - (EPOCH if moment.tzinfo else PLAIN_EPOCH)
    return (passed.days * DAY_SECONDS + passed.seconds) * SECOND + passed.microseconds


instant = reader(None)


@cache
def _within_hour() -> dict[str, int]:
    """Return the microseconds since the hour of each text of minutes and seconds, as of `:31:07Z` and `:31:07`."""
    return {f":{at // 60:02}:{at % 60:02}{zone}": at * SECOND for at in range(3600) for zone in ("Z", "")}


def _by_hour(parse: Parse) -> Parse:
    """Return `parse`, which is asked only once for the hour of plain times."""
    within = _within_hour()
    hours: dict[str, int] = {}

    def parse_by_hour(value: Any) -> Any:
        if type(value) is not str or (passed := within.get(value[HOUR:])) is None:
            return parse(value)
        begun = hours.get(value[:HOUR])
        if begun is None:
            if not PLAIN_HOUR.fullmatch(value[:HOUR]):
                return parse(value)
            if len(hours) >= MOST_HOURS:
                hours.clear()
            begun = hours[value[:HOUR]] = parse(f"{value[:HOUR]}:00:00Z")
        return begun + passed

    return parse_by_hour


class Minute(int):
    """An instant that is cut to the minute."""


def fit(sample: Sample) -> Fitted:
    """Decide on the order of days and months in a column. A cell that leaves it open is refused.

    If no cell has seconds, all are cut to the minute.
    """
    order, _ = dates.order_of(sample)
    parse, written = reader(order), dates.ORDERS.get(order or "")
    numbers = [*filter(None, (number_or_none(cell) for _, cell in sample.cells))]
    if sample.zoned and any(is_plain(cell) for _, cell in sample.cells):
        return Fitted(partial(refuse, ZONED))
    if not sample.ours and 2 * len(numbers) > len(sample.cells) and median(numbers) < LONGEST:
        return Fitted(partial(refuse, LENGTHS))
    if not sample.cells or not all(isinstance(cell, str) and _is_cut(cell) for _, cell in sample.cells):
        return Fitted(_by_hour(parse), written)
    said = "to the minute" if written is None else f"{written}, to the minute"
    return Fitted(lambda cell: None if (found := parse(cell)) is None else Minute(found), said)


def is_plain(cell: Any) -> bool:
    """Return True for a cell with a time that has neither an offset nor the name of a zone."""
    _, colon, rest = str(cell).upper().partition(":")
    return bool(colon) and {*"TZ+-"}.isdisjoint(rest)


def _is_cut(text: str) -> bool:
    _, colon, rest = text.partition(":")
    return bool(colon) and rest[2:3] != ":"
