"""Contents of the overview of an account: figures of everything that it manages, and what has changed."""

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any, NamedTuple

from peewee import Select, fn

from musicsvc.store.accounts.managing import managed_by
from musicsvc.store.dashboards import trends
from musicsvc.store.dashboards.dashboards import Dashboard
from musicsvc.store.dashboards.trends import Change
from musicsvc.store.engine.sql import compiled, fetch
from musicsvc.store.insights import belonging, export_rows, figures, realtime
from musicsvc.store.insights.export_rows import Titled
from musicsvc.store.insights.figures import Figures
from musicsvc.store.insights.listening import milestones
from musicsvc.store.models import Album, AlbumArtist, Artist, DeletedTrack, Play
from musicsvc.store.plays import subjects
from musicsvc.store.plays.periods import SLOTS_PER_DAY, Window, day_of, to_date
from musicsvc.store.plays.rollups.reader import Reader
from musicsvc.store.plays.subjects import ALBUM, ARTIST, TRACK, Subject

SHOWN = 5  # movers in each direction
MOST = 10  # releases, milestones, plays
LOOKED_AT = 200  # plays of everybody, among which the latest of a large label are
NEWEST = f"""
    SELECT p.played_at, p.track_id FROM {{plays}} AND p.slot / {SLOTS_PER_DAY} = ?
    ORDER BY p.slot DESC, p.played_at DESC, p.track_id LIMIT ?
"""  # noqa: S608 - our own names


class Mover(NamedTuple):
    """A track with its plays in the window and in the window before, and their growth in percent."""

    track: Titled
    plays: int
    before: int
    change: float | None


class Released(NamedTuple):
    """An album, its release date, and its plays in the window."""

    album: Titled
    date: str
    plays: int


class Reached(NamedTuple):
    """A milestone that a track, or everything together (None), has reached."""

    track: Titled | None
    number: int
    at: int


class NewPlay(NamedTuple):
    """A play, at a time in microseconds since 1970, of a track (None if it was deleted)."""

    track: Titled | None
    at: int


class AccountOverview(NamedTuple):
    """The figures of everything that an account manages, and what has changed in the window.

    `up`, `down`: the tracks whose plays grew or fell most. `month`: the first day of the month of the window's end, in
    which `released` albums were released; `releases` are the newest of them. `milestones`: the MOST highest, the
    highest first; `more_milestones`: whether there are others.
    """

    dashboard: Dashboard
    up: Sequence[Mover]
    down: Sequence[Mover]
    month: date
    released: int
    releases: Sequence[Released]
    milestones: Sequence[Reached]
    more_milestones: bool
    newest: Sequence[NewPlay]


def build(dashboard: Dashboard, now: int) -> AccountOverview:
    """Return the overview of an account whose figures are given. Call in a transaction."""
    account, window = dashboard.subject, dashboard.figures.window
    found = trends.read(account.id, window, now, SHOWN, MOST + 1)
    month = to_date(window.end - 1).replace(day=1)
    after = (month + timedelta(days=31)).replace(day=1)
    released = _released(account.id, month.isoformat(), after.isoformat())
    reached = _milestones(account, found.passed, dashboard.figures, day_of(now))
    return AccountOverview(
        dashboard,
        _movers(found.up),
        _movers(found.down),
        month,
        len(released),
        _releases(released[:MOST], window),
        reached[:MOST],
        len(reached) > MOST,
        _newest(account),
    )


@compiled
def _released(user_id: int, first: str, end: str) -> Any:
    """Select the albums that the account manages and that were released on these days, with the date, newest first."""
    query = AlbumArtist.select(Album.id, Album.release_date).distinct().join(Artist).switch(AlbumArtist).join(Album)
    query = query.where(managed_by(user_id), Album.release_date >= first, Album.release_date < end)
    return query.order_by(Album.release_date.desc(), Album.id.desc())


def _movers(some: Sequence[Change]) -> list[Mover]:
    titled = export_rows.titled(TRACK, [each.id for each in some])
    return [Mover(titled[track], plays, before, figures.change(plays, before)) for track, plays, before in some]


def _releases(rows: Sequence[tuple[int, str]], window: Window) -> list[Released]:
    ids = [each for each, _ in rows]
    titled = export_rows.titled(ALBUM, ids)
    plays = Reader(window, all_time=False).plays(ALBUM, ids) if ids else {}
    return [Released(titled[each], day, plays.get(each, 0)) for each, day in rows]


def _milestones(account: Subject, tracks: Sequence[int], found: Figures, today: int) -> list[Reached]:
    """Return the milestones that the account and these tracks have reached in the window, the highest first."""
    window, titled = found.window, export_rows.titled(TRACK, tracks)
    reached = milestones.build_each(TRACK, tracks)
    some = [Reached(titled[track], *each) for track in tracks for each in reached[track].plays]
    earlier = found.plays_total - found.plays  # of a window up to today; a milestone has one more digit
    if found.plays and (window.end <= today or len(str(found.plays_total)) > len(str(earlier))):
        some += [Reached(None, *each) for each in milestones.build(account).plays]
    within = [each for each in some if window.starts <= each.at < window.ends]
    return sorted(within, key=lambda each: (-each.number, -each.at))


def _newest(account: Subject) -> list[NewPlay]:
    """Return the latest plays of all tracks."""
    found: list[tuple[int, int]] = _latest(account.id)[:MOST]
    if len(found) < MOST:  # of a small part of all plays
        found = []
        plays = subjects.plays(account.kind, [account.id])[1].format(among="= ?")
        for day in realtime.days_played(account):
            found += fetch(NEWEST.format(plays=plays), account.id, day, MOST - len(found))
            if len(found) == MOST:
                break
    titled = export_rows.titled(TRACK, [track for _, track in found])
    return [NewPlay(titled.get(track), at) for at, track in found]


@compiled
def _latest(user_id: int) -> Any:
    """Select the plays of the account's tracks, deleted ones included, among the latest of everybody."""
    columns = Play.played_at, Play.track, Play.slot
    plays = Play.select(*columns).order_by(Play.slot.desc(), Play.track.desc()).limit(LOOKED_AT).alias("plays")
    gone = DeletedTrack.select(DeletedTrack.track).join(Artist, on=DeletedTrack.subject == Artist.id)
    gone = gone.where(DeletedTrack.track == plays.c.track_id, DeletedTrack.kind == ARTIST, managed_by(user_id))
    query = Select([plays], [plays.c.played_at, plays.c.track_id])
    query = query.where(belonging.is_managed(TRACK, plays.c.track_id, user_id) | fn.EXISTS(gone))
    return query.order_by(plays.c.slot.desc(), plays.c.played_at.desc(), plays.c.track_id)
