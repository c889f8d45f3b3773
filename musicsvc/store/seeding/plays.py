"""A year of plays for the small world, the same for the same day, so that its figures live."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING

from musicsvc.clock import DAY, SECOND
from musicsvc.store.models import Track
from musicsvc.store.plays import ingest, periods
from musicsvc.store.plays.rollups import listeners
from musicsvc.store.seeding import fixtures

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

DAYS = 730  # a year, and the one before it
AUDIENCE = 240
BUSIEST = 9.0  # plays on an ordinary day of the most played track
FALL = 0.8  # each next track is played so much less
WEEKEND = {2, 3}  # 1970-01-01 was a Thursday


def load(*, now: int) -> int:
    """Store the plays of the fixtures' tracks; how many were new. A day's plays are always the same."""
    mine = Track.select(Track.id).where(Track.external_id.startswith(fixtures.PREFIX)).order_by(Track.id)
    names = [listeners.opaque_key(f"fixture-{number}") for number in range(AUDIENCE)]
    known = listeners.ensure(names)
    audience = [known[name] for name in names]
    today = periods.day_of(now)
    return ingest.record(
        row
        for at, (track,) in enumerate(mine.tuples().iterator())
        for day in range(today - DAYS, today + 1)
        for row in _day(at, track, day, audience)
        if row.played_at <= now
    )


def _day(at: int, track: int, day: int, audience: Sequence[int]) -> Iterator[ingest.PlayRow]:
    """The plays of one track on a day: more at weekends, in waves, by listeners of whom some come back often."""
    chance = random.Random(f"{at} {day}")  # noqa: S311 - the same plays every time
    mood = 1 + 0.4 * (day % 7 in WEEKEND) + 0.25 * math.sin(day / 23 + at) + 0.3 * math.sin(day / 90)
    wanted = BUSIEST * FALL**at * mood
    for _ in range(int(wanted) + (chance.random() < wanted % 1)):
        listener = audience[int(len(audience) * chance.random() ** 2)]
        played_at = day * DAY + chance.randrange(86_400) * SECOND
        yield ingest.PlayRow(played_at // periods.SLOT, track, listener, ingest.WITHOUT_ID, played_at, None, 0)
