"""Current listeners and latest plays of a track, read from the database, so that all server processes agree."""

import hmac
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from peewee import SQL

from musicsvc.clock import HOUR, MINUTE
from musicsvc.store import security
from musicsvc.store.engine.sql import compiled
from musicsvc.store.models import Listener, Play
from musicsvc.store.plays.ingest import AHEAD
from musicsvc.store.plays.periods import SLOT, SLOTS_PER_DAY
from musicsvc.store.plays.rollups import counts, reader
from musicsvc.store.plays.subjects import TRACK, Subject

ACTIVE = 5 * MINUTE
RECENT = 20
HASH_LENGTH = 32  # hexadecimal digits, of 64


class LoggedPlay(NamedTuple):
    """A play: its time in microseconds since 1970, and its listener's key (an account or a name chosen by a client)."""

    played_at: int
    listener: str


class RecentPlay(NamedTuple):
    """A play: its time in microseconds, and a hash that is the same in all plays of the same listener."""

    played_at: int
    listener_hash: str


class Realtime(NamedTuple):
    """A track's listeners in the last five minutes, its number of plays in the last hour, and its 20 latest plays."""

    active_listeners: int
    plays_last_hour: int
    recent: list[RecentPlay]


def load(track: Subject, now: int) -> Realtime:
    """Return the track's current listeners and latest plays. Plays up to five minutes after `now` are included."""
    plays = between(track.id, (now - HOUR) // SLOT, (now + AHEAD) // SLOT + 1)
    last_hour = [play for play in plays if play.played_at > now - HOUR]
    active = {play.listener for play in last_hour if play.played_at > now - ACTIVE}
    recent = last_hour[:RECENT] if len(last_hour) >= RECENT else newest(track.id, RECENT)
    secret = security.key("listener")
    return Realtime(
        len(active), len(last_hour), [RecentPlay(play.played_at, _hash(secret, play.listener)) for play in recent]
    )


def newest(track: int, limit: int) -> list[LoggedPlay]:
    found: list[LoggedPlay] = []
    for day in days_played(Subject(TRACK, track)):
        found += [LoggedPlay(*row) for row in _newest_of(day, track, limit - len(found))]
        if len(found) == limit:
            break
    return found


def between(track: int, first: int, end: int) -> list[LoggedPlay]:
    """Return a track's plays in slots `first` to `end` - 1 (numbers of 30 seconds since 1970), newest first."""
    return [LoggedPlay(*row) for row in _plays(range(first, end), track)]


@compiled
def _plays(slots: Sequence[int], track: int) -> Any:
    return _newest_first(Play.slot.in_(slots), Play.track == track)


@compiled
def _newest_of(day: int, track: int, limit: int) -> Any:
    # Read by the index play_of_day, backwards from the end of the day: a search for each slot takes 100 times as long.
    return _newest_first(Play.slot / SQL(str(SLOTS_PER_DAY)) == day, Play.track == track).limit(limit)


def _newest_first(*condition: Any) -> Any:
    query = Play.select(Play.played_at, Listener.key).join(Listener, on=Listener.id == Play.listener).where(*condition)
    return query.order_by(Play.slot.desc(), Play.played_at.desc(), Play.listener, Play.client_key)


def days_played(subject: Subject) -> Iterator[int]:
    """Yield the days (since 1970-01-01) on which a track or all of an account was played, newest first."""
    for days, some in reversed(reader.spans(subject.kind, [subject.id])):
        yield from reversed(counts.days_stored(days, subject.kind, some))


def _hash(secret: bytes, listener: str) -> str:
    return hmac.new(secret, listener.encode(), "sha256").hexdigest()[:HASH_LENGTH]
