"""Compare the plays and listeners of albums on the days since their release."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, NamedTuple

from pyroaring import BitMap

from musicsvc.errors import Invalid
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.catalog import albums
from musicsvc.store.engine.sql import compiled
from musicsvc.store.insights import figures
from musicsvc.store.insights.listening import DEFAULT_DAYS
from musicsvc.store.insights.scopes import Scope
from musicsvc.store.models import Album
from musicsvc.store.plays.periods import Window, day_of, to_date, to_day
from musicsvc.store.plays.rollups import counts, listeners
from musicsvc.store.plays.subjects import ALBUM, Subject

DAYS = f"SELECT {counts.SUBJECT}, {counts.OF_DAY}, plays, listeners FROM {{rows}}"  # noqa: S608 - our own names
NO_PLAYS = 0, b""
MOST_CHOSEN = 4  # albums that a report compares by itself


class Compared(NamedTuple):
    """The ids of the albums that a report compares (None: its newest albums), and the number of days to compare."""

    albums: tuple[int, ...] | None = None
    days: int = DEFAULT_DAYS


NEWEST = Compared()


class ReleasePoint(NamedTuple):
    """The plays on a day, and the distinct listeners up to that day. Day 0 is the release date."""

    day: int
    plays: int
    listeners: int


class Release(NamedTuple):
    """An album with a point for each day since its release. Without a release date, `points` is empty."""

    id: int
    name: str
    release_date: str | None
    points: list[ReleasePoint]


def build(ids: Sequence[int], days: int, now: int) -> list[Release]:
    """Return each album with its plays and listeners on the first `days` days since its release, up to `now`."""
    found = {each: (each, name, released) for each, name, released in _albums(ids)}
    numbers = {each: _numbers(released, days, now) for each, _, released in found.values()}
    played: dict[int, dict[int, tuple[int, bytes]]] = {each: {} for each in ids}
    keys = [counts.key(counts.DAY, day, ALBUM, each) for each, of_album in numbers.items() for day in of_album]
    for each, day, plays, packed in counts.fetch_keys(DAYS, keys):
        played[each][day] = plays, packed
    return [Release(*found[each], _points(numbers[each], played[each])) for each in ids]


@compiled
def _albums(ids: Sequence[int]) -> Any:
    return Album.select(Album.id, Album.name, Album.release_date).where(Album.id.in_(ids))


def compare(scope: Scope, window: Window, now: int, compared: Compared) -> list[Release]:
    """Return the albums to compare in a report on `scope` (an account, an artist or all) and `window`.

    By default, these are the newest albums of the scope that were released by the end of the window and were played.
    Raises Invalid if `compared` names an album that is not in the scope.
    """
    if compared.albums is None:
        newest = scope.newest_albums(to_date(window.end - 1), MOST_CHOSEN)
        found = build(newest, compared.days, now)
        return [each for each in found if any(point.plays for point in each.points)]
    if outside := set(compared.albums).difference(scope.ids(ALBUM)):
        raise Invalid({"releases": f"Album {min(outside)} is not one of the report's albums."})
    return build(compared.albums, compared.days, now)


def window(release: Release) -> Window:
    """Return the window of the days for which `release` has points."""
    first = to_day(date.fromisoformat(release.release_date or ""))
    return Window("", first, first + len(release.points))


def open_day(release: Release, now: int) -> int | None:
    """Return the last day with a point if that day is not over at `now`, else None."""
    return release.points[-1].day if release.points and now < window(release).ends else None


def albums_of(album: Subject, against: Sequence[int], *, actor: Identity) -> list[int]:
    """Return the id of the album, followed by the distinct ids of the albums to compare it with (`against`).

    Raises Invalid if an album of `against` does not exist, Forbidden if the actor manages none of its artists.
    """
    others = [each for each in dict.fromkeys(against) if each != album.id]
    require_existing(others)
    figures.check_albums(others, actor=actor)
    return [album.id, *others]


def require_existing(against: Sequence[int]) -> None:
    """Raise Invalid for the request field `against` if one of these albums does not exist."""
    if unknown := albums.missing(against):
        raise Invalid({"against": f"{min(unknown)} does not exist."})


def _numbers(release_date: str | None, days: int, now: int) -> range:
    """Return the first `days` days since the release, but none after `now`, as days since 1970-01-01."""
    if release_date is None:
        return range(0)
    first = to_day(date.fromisoformat(release_date))
    return range(first, min(first + days, day_of(now) + 1))


def _points(numbers: range, played: Mapping[int, tuple[int, bytes]]) -> list[ReleasePoint]:
    """Return a point for each day. `played`: plays and packed listeners of the days with plays."""
    heard = BitMap()
    points = []
    for number, day in enumerate(numbers):
        plays, packed = played.get(day, NO_PLAYS)
        heard |= listeners.union([packed])  # one set at a time: many do not fit into the processor's cache
        points.append(ReleasePoint(number, plays, len(heard)))
    return points
