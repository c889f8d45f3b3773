"""Current listeners and latest plays of a track, read from the database, so that all server processes agree."""

import hmac
from typing import NamedTuple

from musicsvc.clock import MINUTE
from musicsvc.store import security
from musicsvc.store.plays import log as play_log
from musicsvc.store.plays.ingest import AHEAD
from musicsvc.store.plays.periods import SLOT
from musicsvc.store.plays.subjects import Subject

ACTIVE = 5 * MINUTE
HOUR = 60 * MINUTE
RECENT = 20
HASH_LENGTH = 32  # hexadecimal digits, of 64


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
    plays = play_log.between(track.id, (now - HOUR) // SLOT, (now + AHEAD) // SLOT + 1)
    last_hour = [play for play in plays if play.played_at > now - HOUR]
    active = {play.listener for play in last_hour if play.played_at > now - ACTIVE}
    newest = last_hour[:RECENT] if len(last_hour) >= RECENT else play_log.newest(track.id, RECENT)
    secret = security.key("listener")
    return Realtime(
        len(active), len(last_hour), [RecentPlay(play.played_at, _hash(secret, play.listener)) for play in newest]
    )


def _hash(secret: bytes, listener: str) -> str:
    return hmac.new(secret, listener.encode(), "sha256").hexdigest()[:HASH_LENGTH]
