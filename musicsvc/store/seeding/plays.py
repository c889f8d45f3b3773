"""Create two years of random plays of the example tracks. The plays of a day are the same in every run."""

import math
import random
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from musicsvc.clock import DAY, HOUR, MINUTE, SECOND
from musicsvc.store.models import Track
from musicsvc.store.models.plays import PlayRow
from musicsvc.store.plays import counting, ingest, periods
from musicsvc.store.plays.rollups import blocks, listeners
from musicsvc.store.seeding.world import PREFIX

DAYS = 730  # a year, and the one before it
AUDIENCE = 240
NEWCOMER = 2  # days until the audience has one more listener, and lost the oldest
BUSIEST = 9.0  # plays on an ordinary day of the most played track
DECLINE = 0.8  # factor from each track to the next
HEARD = 40  # tracks; each further one would be played less than once
WEEKEND = {2, 3}  # 1970-01-01 was a Thursday
SWING, SEASON = 113, 565  # days of the two cycles in which a track rises and falls
APART = 2.4  # radians between the cycles of a track and of the next, so that at any time some rise and some fall
LIVE = 5 * MINUTE  # between plays of the most played track in the last hour; three times as long for the next one
LIVE_TRACKS = 3
LONGEST_HEARD = 10 * MINUTE // 1000  # milliseconds
SKIPPED, UNKNOWN = 0.15, 0.25  # shares of plays that were skipped, and up to which the duration is not known


class FixtureTrack(NamedTuple):
    """An example track: its rank by plays (`place`, from 0), its id, and its length in milliseconds."""

    place: int
    id: int
    duration: int


def load(*, now: int) -> int:
    """Store the plays of the example tracks. Return the number of new plays."""
    mine = Track.select(Track.id, Track.duration).where(Track.external_id.startswith(PREFIX)).order_by(Track.id)
    counting.lock()
    tracks = [FixtureTrack(place, each.id, each.duration) for place, each in enumerate(mine.limit(HEARD))]
    today = periods.day_of(now)
    numbers = range(_oldest(today - DAYS), _oldest(today) + AUDIENCE)
    names = {number: listeners.opaque_key(f"fixture-{number}") for number in numbers}
    known = listeners.ensure(names.values())
    audience = {number: known[name] for number, name in names.items()}
    stored = ingest.record(
        row
        for track in tracks
        for rows in (
            *(_day(track, day, audience) for day in range(today - DAYS, today + 1)),
            _live(track, audience, now),
        )
        for row in rows
        if row.played_at <= now
    )
    while blocks.advance(counting.ROLLED_UP_AT_ONCE):
        pass
    return stored


def _oldest(day: int) -> int:
    """Return the lowest listener number of the audience on this day. Later days have newer listeners."""
    return day // NEWCOMER


def _day(track: FixtureTrack, day: int, audience: Mapping[int, int]) -> Iterator[PlayRow]:
    """Yield a track's random plays on a day: more on weekends, in some seasons, and for tracks with a low `place`."""
    chance = random.Random(f"{track.place} {day}")  # noqa: S311 - plays must be reproducible
    phase = APART * track.place
    mood = (
        1
        + 0.4 * (day % 7 in WEEKEND)
        + 0.3 * math.sin(math.tau * day / SWING + phase)
        + 0.3 * math.sin(math.tau * day / SEASON + phase)
    )
    wanted = BUSIEST * DECLINE**track.place * mood
    for _ in range(int(wanted) + (chance.random() < wanted % 1)):
        yield _play(track, day * DAY + chance.randrange(86_400) * SECOND, audience, chance)


def _live(track: FixtureTrack, audience: Mapping[int, int], now: int) -> Iterator[PlayRow]:
    """Yield evenly spaced plays of the last hour for the top tracks, so that they have current listeners."""
    if track.place < LIVE_TRACKS:
        every = LIVE * 3**track.place
        for at in range(now - now % every, now - HOUR, -every):
            yield _play(track, at, audience, random.Random(f"{track.place} {at}"))  # noqa: S311 - the same


def _play(track: FixtureTrack, played_at: int, audience: Mapping[int, int], chance: random.Random) -> PlayRow:
    number = _oldest(periods.day_of(played_at)) + int(AUDIENCE * chance.random() ** 2)
    return PlayRow(
        slot=played_at // periods.SLOT,
        track=track.id,
        listener=audience[number],
        client_key=ingest.WITHOUT_ID,
        played_at=played_at,
        duration_ms=_heard(track, chance),
        reporter=0,
    )


def _heard(track: FixtureTrack, chance: random.Random) -> int | None:
    """Return a random duration of a play in milliseconds: short if the track was skipped, None if unknown."""
    luck, share = chance.random(), chance.random()
    if luck < SKIPPED:
        return int(min(30_000, track.duration / 2) * share)
    if luck < UNKNOWN:
        return None
    return int(min(track.duration, LONGEST_HEARD) * (1 - share**3 / 2))
