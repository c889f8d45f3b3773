"""Create two years of random plays of the example tracks. The plays of a day are the same in every run."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING

from musicsvc.clock import DAY, SECOND
from musicsvc.store.models import Track
from musicsvc.store.plays import ingest, periods
from musicsvc.store.plays.rollups import listeners
from musicsvc.store.seeding.world import PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

DAYS = 730  # a year, and the one before it
AUDIENCE = 240
BUSIEST = 9.0  # plays on an ordinary day of the most played track
DECLINE = 0.8  # factor from each track to the next
WEEKEND = {2, 3}  # 1970-01-01 was a Thursday


def load(*, now: int) -> int:
    """Store the plays of the example tracks. Return the number of new plays."""
    mine = Track.select(Track.id).where(Track.external_id.startswith(PREFIX)).order_by(Track.id)
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
    """Yield a track's plays on a day. More plays fall on weekends, some seasons, and tracks at a low position `at`."""
    chance = random.Random(f"{at} {day}")  # noqa: S311 - plays must be reproducible
    mood = 1 + 0.4 * (day % 7 in WEEKEND) + 0.25 * math.sin(day / 23 + at) + 0.3 * math.sin(day / 90)
    wanted = BUSIEST * DECLINE**at * mood
    for _ in range(int(wanted) + (chance.random() < wanted % 1)):
        listener = audience[int(len(audience) * chance.random() ** 2)]
        played_at = day * DAY + chance.randrange(86_400) * SECOND
        yield ingest.PlayRow(played_at // periods.SLOT, track, listener, ingest.WITHOUT_ID, played_at, None, 0)
