"""Managed tracks, albums or artists whose plays grew or fell most, and tracks that have reached a milestone."""

import heapq
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from peewee import fn

from musicsvc.store.accounts.managing import managed_by
from musicsvc.store.engine import sql
from musicsvc.store.engine.sql import compiled, fetch
from musicsvc.store.insights import belonging, tops
from musicsvc.store.insights.listening import milestones
from musicsvc.store.insights.scopes import Scope
from musicsvc.store.insights.tops import Bounds, Ids
from musicsvc.store.models import Artist, TrackArtist
from musicsvc.store.plays.ingest import AHEAD
from musicsvc.store.plays.periods import Window, day_of
from musicsvc.store.plays.rollups import reader
from musicsvc.store.plays.rollups.reader import PART_OF_SLOT, Reader, all_time_plays
from musicsvc.store.plays.subjects import TRACK

OF_DAY = (
    "SELECT p.track_id, COUNT(*), 1 FROM play p WHERE {time} AND p.track_id {among} GROUP BY 1 HAVING COUNT(*) >= ?"
)
NEAR = f"""
    SELECT track_id, plays FROM track_plays WHERE track_id {{among}} AND plays >= {milestones.FIRST} AND ({{near}})
"""  # noqa: S608 - our own numbers
POPULAR, CHANCE = 16, 0.5  # the plays of a popular track differ by the square root of their number by chance
TOP = 512  # tracks whose plays of all time are read one by one
MOST_DIGITS = 18  # of a number of plays


class Change(NamedTuple):
    """A track, album or artist with its plays in the window and in the window before."""

    id: int
    plays: int
    before: int


class Trends(NamedTuple):
    """The tracks whose plays grew or fell most, and those that have passed the 100th, 1,000th … play in the window."""

    up: list[Change]
    down: list[Change]
    passed: list[int]


def read(user_id: int, window: Window, now: int, movers: int, most: int) -> Trends:
    """Return the trends of an account's tracks: `movers` in each direction, and the `most` highest milestones."""
    tracks = _tracks(user_id)
    if not tracks:
        return Trends([], [], [])
    found = _Build(user_id, window, tracks)
    up, down = found.movers(movers) if window.compared_with else ([], [])
    return Trends(up, down, found.passed(Window("", window.end, max(window.end, day_of(now + AHEAD) + 1)), most))


def read_movers(user_id: int, kind: int, window: Window, most: int) -> tuple[list[Change], list[Change]]:
    """Return what the account has of a kind whose plays grew most, and whose plays fell most; of equal ones the oldest.

    Of each there are at most `most`.
    """
    if kind == TRACK:
        tracks = _tracks(user_id)
        return _Build(user_id, window, tracks).movers(most) if tracks else ([], [])
    ids = sorted(Scope(manager=user_id).ids(kind))
    now, before = (Reader(each, all_time=False).plays(kind, ids) if ids else {} for each in (window, window.before))
    changes = [Change(each, now.get(each, 0), before.get(each, 0)) for each in ids]
    sides = ([(sign * (each.plays - each.before), -each.id, each) for each in changes] for sign in (1, -1))
    up, down = ([each for size, _, each in heapq.nlargest(most, side) if size > 0] for side in sides)
    return up, down


def _tracks(user_id: int) -> Ids:
    """Return the tracks of the account, or a range with few others."""
    ((count, first, last),) = _range(user_id)
    if count and last - first < sql.DENSE * count:
        return range(first, last + 1)
    return [track for (track,) in _ids(user_id)] if count else []


class _Build:
    """Collects the trends of the tracks of an account: all of `tracks` unless it is a range."""

    def __init__(self, user_id: int, window: Window, tracks: Ids) -> None:
        self._user, self._window, self._tracks = user_id, window, tracks
        self._within = self._read(window)
        self._changes: dict[int, Change] = {}

    def movers(self, most: int) -> tuple[list[Change], list[Change]]:
        """Return the tracks whose plays grew most, and those whose plays fell most."""
        before = self._read(self._window.before)
        up = self._most_changed(1, self._window, self._within, before, most)
        return up, self._most_changed(-1, self._window.before, before, self._within, most)

    def _most_changed(self, sign: int, window: Window, more: Bounds, less: Bounds, most: int) -> list[Change]:
        exactly = partial(self._differ, sign)
        found = tops.best(more, less, most, exactly, newest=False)
        if found is None:
            found = tops.best(self._read(window, every=True), less, most, exactly, newest=False)
        return [self._changes[each] for each in found or ()]

    def _read(self, window: Window, *, every: bool = False) -> Bounds:
        every = every or not sql.is_sqlite()  # PostgreSQL adds up all rows as fast, and reads single ones slowly
        found, least = tops.read(window, TRACK, self._tracks, 0 if every else POPULAR, CHANCE)
        among, ids = tops.among(self._tracks)
        for time, instants in reader.last_day(window):
            fewest = 1 if time is PART_OF_SLOT else least
            rows = fetch(OF_DAY.format(time=time, among=among), *instants, *ids, fewest)
            found.add(rows, 1, fewest)
        return found

    def _differ(self, sign: int, tracks: Sequence[int]) -> dict[int, int]:
        """Return how much the plays of the account's own tracks among these grew, or fell if `sign` is negative."""
        own = self._own(tracks)
        now, before = (Reader(each, all_time=False).plays(TRACK, own) for each in (self._window, self._window.before))
        self._changes |= {each: Change(each, now.get(each, 0), before.get(each, 0)) for each in own}
        return {each: sign * (self._changes[each].plays - self._changes[each].before) for each in own}

    def _own(self, tracks: Sequence[int]) -> list[int]:
        if not isinstance(self._tracks, range):
            return [*tracks]
        return [track for (track,) in belonging.managed(tracks, self._user, kind=TRACK)] if tracks else []

    def passed(self, later: Window, most: int) -> list[int]:
        """Return the tracks that have passed a milestone in the window. `later`: the days after it."""
        after = self._read(later)
        often, few = set[int](), 0
        for some in (self._within, after):
            least = min(heapq.nlargest(TOP, some.low.values()), default=0)
            often |= {track for track, plays in some.low.items() if plays > least}
            few += least + some.rest
        totals = self._near(few) | all_time_plays(TRACK, often)
        near = defaultdict(list)  # tracks by the digits of a number that they may have passed
        for track, total in totals.items():
            most_plays = self._within.high(track) + after.high(track) if track in often else few
            for digits in range(len(str(max(0, total - most_plays))), len(str(total))):
                near[digits].append(track)
        found: list[tuple[int, int, int]] = []
        for digits in sorted(near, reverse=True):
            if len(found) < most and 10**digits >= milestones.FIRST:
                found += self._passed(near[digits], totals, later, digits)
        return [track for *_, track in sorted(found, reverse=True)[:most]]

    def _near(self, plays: int) -> dict[int, int]:
        """Return the plays of all time of tracks that may have passed a milestone within these many plays."""
        goals = [10**digits for digits in range(2, MOST_DIGITS)]
        near = " OR ".join(f"plays >= {goal} AND plays < {goal + plays}" for goal in goals)
        among, ids = tops.among(self._tracks)
        return dict(fetch(NEAR.format(among=among, near=near), *ids)) if plays else {}

    def _passed(self, tracks: Sequence[int], totals: Mapping[int, int], later: Window, digits: int) -> Iterator[Any]:
        """Yield digits, plays in the window, and the track, of those that have passed the milestone."""
        after, now = (Reader(each, all_time=False).plays(TRACK, tracks) for each in (later, self._window))
        own = set(self._own([track for track in tracks if now.get(track)]))
        for track in own:
            total = totals[track] - after.get(track, 0)
            if len(str(total - now[track])) <= digits == len(str(total)) - 1:
                yield digits, now[track], track


@compiled
def _range(user_id: int) -> Any:
    """Select the number of credits of the account's artists, and their lowest and highest track."""
    track = TrackArtist.track
    query = TrackArtist.select(fn.COUNT(track), fn.MIN(track), fn.MAX(track)).join(Artist)
    return query.where(managed_by(user_id))


@compiled
def _ids(user_id: int) -> Any:
    query = TrackArtist.select(TrackArtist.track).distinct().join(Artist)
    return query.where(managed_by(user_id)).order_by(TrackArtist.track)
