"""Plays by hour of the week in a time zone.

Play counts have the plays of each hour in UTC. Each hour is moved by the zone's offset at that time, so the numbers are
exact, also where the clocks change within the window. The window stays one of days in UTC.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time
from functools import cache
from itertools import groupby
from typing import NamedTuple
from zoneinfo import ZoneInfo, available_timezones

from musicsvc.store.insights.listening.listening import HOURS_OF_DAY, Hours, by_day, histogram
from musicsvc.store.plays.periods import Window, to_date, to_day
from musicsvc.store.plays.rollups import blocks
from musicsvc.store.plays.rollups.histograms import HOURS
from musicsvc.store.plays.subjects import Subject

HOUR, MINUTE = 3600, 60  # seconds
IN_UTC = "UTC"
AREAS = frozenset(
    ["Africa", "America", "Antarctica", "Arctic", "Asia", "Atlantic", "Australia", "Europe", "Indian", "Pacific"]
)
OLDEST = to_day(date(1900, 1, 1))  # days before it have its offset


class LocalHours(NamedTuple):
    """Plays by hour of the week. Each hour begins `minute` minutes after a full hour of the zone.

    `mixed`: in a part of the window it begins at another minute, so some plays are less than an hour off.
    """

    hours: Hours
    minute: int = 0
    mixed: bool = False


@cache
def zones() -> tuple[str, ...]:
    """Return the names of time zones: UTC, then areas with a place, such as `Europe/Berlin`."""
    return IN_UTC, *sorted(name for name in available_timezones() if name.partition("/")[0] in AREAS)


def load(subject: Subject, window: Window, zone: str) -> LocalHours:
    """Return the plays of a track, album or artist in the window by hour of the week. `zone`: one of `zones()`."""
    plays, minute, minutes = [0] * HOURS, 0, set()
    for days, offsets in _stretches(blocks.progress().within(window.numbers), ZoneInfo(zone)):
        minute = _minute(offsets[-1])
        for place, count in enumerate(histogram(subject, Window("", days.start, days.stop)).hours):
            offset = offsets[place % HOURS_OF_DAY]
            plays[(place + offset // HOUR) % HOURS] += count
            if count:
                minutes.add(_minute(offset))
    return LocalHours(Hours(window, by_day(plays)), minute, mixed=not minutes <= {minute})


def _minute(offset: int) -> int:
    return offset % HOUR // MINUTE


def _stretches(days: range, zone: ZoneInfo) -> Iterator[tuple[range, Sequence[int]]]:
    """Yield ranges of days with the same offsets from UTC, in seconds, at the beginning of each of their hours."""
    for (before, after), some in groupby(days, lambda day: (_offset(day, 0, zone), _offset(day + 1, 0, zone))):
        first, *others = some
        alike = before == after
        offsets = [before if alike else _offset(first, hour, zone) for hour in range(HOURS_OF_DAY)]
        yield range(first, first + 1 + len(others)), offsets


def _offset(day: int, hour: int, zone: ZoneInfo) -> int:
    at = datetime.combine(to_date(max(day, OLDEST)), time(hour), UTC)
    offset = at.astimezone(zone).utcoffset()
    return 0 if offset is None else round(offset.total_seconds())
