"""Cells with lengths of time, in milliseconds."""

import re
from collections.abc import Sequence
from datetime import time, timedelta
from decimal import Decimal
from functools import cache, partial
from statistics import median
from typing import Any

from musicsvc.store.catalog.fields import MAX_DURATION
from musicsvc.store.importing.cells.blanks import is_blank
from musicsvc.store.importing.cells.notations import Fitted, Notation, Parse, Sample, read
from musicsvc.store.importing.cells.numbers import LONGEST_NUMBER, readings, whole

CLOCK = re.compile(r"(?:([0-9]{1,3}):)?([0-9]{1,3}):([0-5][0-9])(?:[.,]([0-9]{1,9}))?(?: ([AP])M)?")
AMOUNT = r"([0-9]{1,9}(?:[.,][0-9]{1,9})?)"
ISO = re.compile(rf"P(?=.*[DHMS])(?:{AMOUNT}D)?(?:T(?:{AMOUNT}H)?(?:{AMOUNT}M)?(?:{AMOUNT}S)?)?", re.IGNORECASE)
PART = re.compile(
    rf"{AMOUNT} ?([a-z]{{1,15}}\.?|['\"\u2019\u201d\u2032\u2033]{{1,2}}) ?(?:,|and |und )? ?", re.IGNORECASE
)
POINTED = re.compile(r"[1-9][0-9]{0,2}(?:\.[0-9]{3})+")
OF_MINUTE = re.compile(r"[0-9]{1,2}[.,][0-5][0-9]")
MINUTE, HOUR, NOON = 60, 3600, 12
WORDS = {
    1: "ms msec msecs millis milliseconds millisekunden",
    1000: "s sec secs second seconds sek sekunde sekunden \" '' \u201d \u2019\u2019 \u2033 \u2032\u2032",
    60_000: "m min mins minute minutes minuten ' \u2019 \u2032",
    3_600_000: "h hr hrs hour hours std stunde stunden",
}
UNITS = {word: length for length, words in WORDS.items() for word in words.split()}  # milliseconds
FORMS = {"milliseconds": 1, "seconds": 1000, "minutes": 60_000, "pointed": 1}
SECONDS_BELOW = 10_000  # a median below is seconds: hardly a track takes ten seconds, or three hours
MINUTES_BELOW = 10  # a median below may be minutes
FRAMES = -1  # the unit of a heading such as `Length (mm:ss:ff)`
FEWEST, FEW_FRAMES = 5, 30  # lengths that look like h:mm:ss but may have frames; video has no more a second
SHIFTED = "m:ss, which the spreadsheet holds as hours and minutes"
POINTS = "milliseconds, with points between thousands"
WRITTEN = {"shifted": SHIFTED, "unclear": None, "either": None, "pointed": POINTS, "frames": "mm:ss:ff"}
WRONG = {
    "clock": "must be a duration as m:ss or h:mm:ss, like most of its column",
    "shifted": f"must be a duration as {SHIFTED} in this column",
    "frames": "must be a duration as mm:ss:ff, as the heading says",
    "either": "can be h:mm:ss, or m:ss and frames; name it in the heading, such as Length (h:mm:ss) or (mm:ss:ff)",
    "unclear": "can be minutes, or minutes.seconds, or seconds; name the unit in the heading, such as Length (sec)",
}


def _clock(text: str) -> int | None:
    found = CLOCK.fullmatch(text)
    if found is None or (found[1] and int(found[2]) >= MINUTE):
        return None
    if found[5]:  # as a spreadsheet shows a length that it takes for a time of day
        first, _, rest = text.partition(":")
        return _clock(f"{int(first) % NOON + NOON * (found[5] == 'P')}:{rest[:-3]}")
    seconds = int(found[1] or 0) * HOUR + int(found[2]) * MINUTE + int(found[3])
    return seconds * 1000 + int((found[4] or "")[:3].ljust(3, "0"))


def _shifted(text: str) -> int | None:
    """Return the length of h:mm:00 that means m:ss. A text of two numbers is one of minutes and seconds."""
    found = _clock(text)
    if found is None or text.count(":") == 1:
        return found
    return None if found % (MINUTE * 1000) else found // MINUTE


def _framed(text: str) -> int | None:
    """Return the length of mm:ss:ff to the second. How many frames a second has is not known."""
    clock, _, frames = text.rpartition(":")
    return _clock(clock) if frames.isdecimal() and clock.count(":") == 1 else None


def _iso(text: str) -> Decimal | None:
    found = ISO.fullmatch(text)
    return found and _sum(zip(found.groups(), (86_400_000, 3_600_000, 60_000, 1000), strict=True))


def _worded(text: str) -> Decimal | None:
    """Return the length of `3m 45s`, whose numbers have units. The last one may lack that of seconds: `3 min 45`."""
    parts, at = [], 0
    while found := PART.match(text, at):
        parts.append((found[1], UNITS.get(found[2].lower().rstrip("."))))
        at = found.end()
    if parts and parts[-1][1] == 60_000 and text[at:].isdecimal():  # noqa: PLR2004 - minutes
        parts.append((text[at:], 1000))
        at = len(text)
    lengths = [length for _, length in parts]
    if at < len(text) or None in lengths or lengths != sorted({*lengths}, reverse=True):  # type: ignore[type-var]
        return None
    return _sum(parts) if parts else None


def _sum(parts: Any) -> Decimal:
    return sum((Decimal(amount.replace(",", ".")) * length for amount, length in parts if amount), Decimal(0))


def _numbers(text: str, form: str) -> Decimal | None:
    """Return the length of a number in a unit. `225,000` are thousands of milliseconds, but a fraction of seconds."""
    found = readings(text)
    return (found[-1] if form == "milliseconds" else found[0]) * FORMS[form] if found else None


def _pointed(text: str) -> int | None:
    return int(text.replace(".", "")) if POINTED.fullmatch(text) else None


NOTATIONS = (
    Notation("m:ss or h:mm:ss", _clock, "3:45 = 225000 | 1:02:03 = 3723000 | 3:45.5 = 225500", "clock", "players"),
    Notation("m:ss that a spreadsheet took for hours and minutes: most seconds are 00, and most have an hour or more",
             _shifted, "3:45:00 = 225000 | 12:30:00 = 750000 | 3:45:00 AM = 225000", "shifted", "Excel, LibreOffice"),
    Notation("mm:ss:ff, with frames, which are left out: the heading says so", _framed,
             "03:45:24 = 225000 | 1:07:74 = 67000", "frames", "radio, audio CDs"),
    Notation("ISO 8601", _iso, "PT3M45S = 225000 | PT225.5S = 225500 | P0DT0H3M45S = 225000", source="DDEX, YouTube"),
    Notation("numbers with units", _worded, "3m 45s = 225000 | 3 min 45 sec = 225000 | 3'45\" = 225000 |"
             " 225 s = 225000 | 3 Min. 45 Sek. = 225000", source="people"),
    Notation("seconds: the heading says so, or the median of a column without a unit is from 10 to 10,000",
             partial(_numbers, form="seconds"), "225 = 225000 | 222.5 = 222500 | 222,5 = 222500", "seconds", "iTunes"),
    Notation("minutes: the heading says so", partial(_numbers, form="minutes"),
             "3.75 = 225000 | 3,75 = 225000", "minutes"),
    Notation("milliseconds", partial(_numbers, form="milliseconds"),
             "225000 = 225000 | 225,000 = 225000 | 225000.4 = 225000", "milliseconds", "Spotify, MusicBrainz"),
    Notation("milliseconds with points between thousands, if all points of the column stand so", _pointed,
             "222.500 = 222500 | 1.225.000 = 1225000", "pointed", "German sheets"),
)  # fmt: skip


def _of_time(value: time | timedelta, form: str) -> Decimal | None:
    length = Decimal(str(span(value))) * 1000
    if form == "frames":
        return length // (MINUTE * 1000) * 1000
    return length if form != "shifted" else None if length % (MINUTE * 1000) else length / MINUTE


@cache
def reader(form: str) -> Parse:
    """Return the parser of durations in a column: a form of NOTATIONS, or `unclear`."""
    scale = FORMS.get(form)

    def parse(value: Any) -> int | None:
        if scale and isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < LONGEST_NUMBER:
            length = int(value) * scale
            return length if length <= MAX_DURATION else whole(length, 0, MAX_DURATION)
        if is_blank(value):
            return None
        found: Decimal | int | None = None
        if isinstance(value, time | timedelta):
            found = _of_time(value, form)
        elif isinstance(value, str):
            found = read(NOTATIONS, value.strip(), form)
        elif scale and not isinstance(value, bool):
            found = _numbers(str(value), form)
        if found is None:
            raise ValueError(WRONG.get(form, "must be a number"))
        return whole(found, 0, MAX_DURATION)

    return parse


milliseconds = reader("milliseconds")


def fit(sample: Sample) -> Fitted:
    """Decide on the form of a column. In one that is ours, numbers are milliseconds."""
    form = _form(sample)
    written = WRITTEN.get(form, form)
    if form == "clock":
        longer = any(isinstance(each, time | timedelta) or str(each).count(":") > 1 for _, each in sample.cells)
        written = "h:mm:ss" if longer else "m:ss"
    return Fitted(reader(form), None if form == "milliseconds" and sample.ours else written)


def _form(sample: Sample) -> str:
    values = [value for _, value in sample.cells]
    spans = [span(value) for value in values if isinstance(value, time | timedelta)]
    clocks = [value.strip() for value in values if isinstance(value, str) and ":" in value]
    if 2 * (len(spans) + len(clocks)) > len(values):
        # Typed as 3:45, a spreadsheet takes it for a quarter to four.
        long = [*spans, *(found / 1000 for text in clocks if text.count(":") > 1 and (found := _clock(text)))]
        whole_minutes = 2 * sum(length % MINUTE == 0 for length in long) > len(long)
        is_shifted = 2 * len(long) > len(spans) + len(clocks) and whole_minutes and median(long) >= HOUR
        if sample.unit == FRAMES or is_shifted:
            return "frames" if sample.unit == FRAMES else "shifted"
        is_framed = len(long) >= FEWEST and median(long) >= HOUR and max(each % MINUTE for each in long) < FEW_FRAMES
        return "either" if is_framed and not sample.unit else "clock"
    named = next((form for form, length in FORMS.items() if length == sample.unit), None)
    if named in {"seconds", "milliseconds"} or sample.ours:
        # As fractions they would be lengths below a second.
        texts = [value.strip() for value in values if isinstance(value, str) and "." in value]
        is_pointed = named != "seconds" and texts and all(POINTED.fullmatch(text) for text in texts)
        return "pointed" if is_pointed else named or "milliseconds"
    return _unit(values, named)


def _unit(values: Sequence[Any], named: str | None) -> str:
    """Return the unit of the numbers in a column that does not name it, or only as minutes."""
    texts = [str(value).strip() for value in values if not isinstance(value, time | timedelta)]
    numbers = [(text, abs(found[0])) for text in texts if (found := readings(text))]
    of_minute = [OF_MINUTE.fullmatch(text) is not None for text, _ in numbers if text[-3:-2] in {".", ","}]
    if all(of_minute) and 2 * len(of_minute) > len(numbers):
        return "unclear"
    if named or not numbers:
        return named or "milliseconds"
    middle = median(number for _, number in numbers)
    return "unclear" if 0 < middle < MINUTES_BELOW else "seconds" if middle < SECONDS_BELOW else "milliseconds"


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
