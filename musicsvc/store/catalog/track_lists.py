"""List all tracks, or the tracks that match filters, newest first, and those that an account likes or has reposted."""

from collections.abc import Callable, Collection, Sequence
from functools import cache
from typing import Any, NamedTuple

from peewee import SQL, NodeList, fn

from musicsvc.errors import Invalid
from musicsvc.store.catalog import artists, external_ids, genres, merged, tracks
from musicsvc.store.catalog.tracks import TrackRow
from musicsvc.store.engine import list_blocks
from musicsvc.store.engine.name_index import TRACKS
from musicsvc.store.engine.pagination import Listing, ListQuery, Page, paginate
from musicsvc.store.engine.sql import compiled
from musicsvc.store.models import Merged, Track, TrackArtist, TrackGenre, TrackLike, TrackRepost

NAME = "name"
# The lists whose rows need not be counted, by the names of their filters.
COUNTED = {
    (): list_blocks.TRACKS,
    ("artist_id",): list_blocks.NEWEST_ARTIST_TRACKS,
    ("genre_id",): list_blocks.GENRE_TRACKS,
}


class TrackFilters(NamedTuple):
    """Conditions on tracks. A condition of None matches every track.

    `genre` is a slug, `external_id` the id in another service in any notation, `name` a text to search for in the
    track's name. A track also has the ISRC and the external id of what was merged into it.
    """

    artist_id: int | None = None
    genre: str | None = None
    external_id: str | None = None
    isrc: str | None = None
    name: str | None = None


def find(filters: TrackFilters, page: Page) -> Listing[TrackRow]:
    """Return the tracks that match all filters, newest first. Raises Invalid if the artist does not exist."""
    wanted: dict[str, Any] = {name: value for name, value in filters._asdict().items() if value is not None}
    if filters.artist_id is not None and artists.missing([filters.artist_id]):
        raise Invalid({"artist_id": f"{filters.artist_id} does not exist."})
    if (slug := wanted.pop("genre", None)) is not None:
        wanted["genre_id"] = genres.find([slug]).get(slug, 0)
    if filters.external_id is not None:
        wanted["external_id"] = external_ids.bare(filters.external_id, "track")
    text = wanted.pop("name", None)
    if text is not None and not wanted:
        return _listing(*TRACKS.newest(text, page.size, page.offset), page)
    if text is not None:
        conditions = TRACKS.conditions(text)
        if not conditions:
            return _listing([], 0, page)
        wanted |= {f"{NAME} {number}": each for number, each in enumerate(conditions)}
    names = tuple(wanted)
    found = paginate(_query(names), page, tracks.row, *wanted.values(), counted=COUNTED.get(names))
    return _listing(found.ids, found.total, page)


def liked_by(user_id: int, page: Page) -> Listing[TrackRow]:
    """Return the tracks that the account likes, the last liked first."""
    return paginate(_liked, page, tracks.row, user_id, counted=None)


def reposted_by(user_id: int, page: Page) -> Listing[TrackRow]:
    """Return the tracks that the account has reposted, the last reposted first."""
    return paginate(_reposted, page, tracks.row, user_id, counted=None)


def _liked(user_id: int) -> ListQuery:
    return _given(TrackLike, user_id)


def _reposted(user_id: int) -> ListQuery:
    return _given(TrackRepost, user_id)


def _given(kind: type[TrackLike | TrackRepost], user_id: int) -> ListQuery:
    rows = tracks.select().join_from(Track, kind, on=((kind.track == Track.id) & (kind.user == user_id)))
    keys = kind.select(kind.track).where(kind.user == user_id)
    return ListQuery(keys, rows, [kind.created_at.desc(), kind.track.desc()])


def _listing(ids: list[int], total: int, page: Page) -> Listing[TrackRow]:
    return Listing(ids, total, page, lambda some: [tracks.row(*each) for each in _newest(some)])


@cache
def _query(names: tuple[str, ...]) -> Callable[..., ListQuery]:
    """Return a function that takes the values of the filters with these names, and builds the query for them."""

    def build(*values: Any) -> ListQuery:
        wanted = dict(zip(names, values, strict=True))
        key = _shortest(wanted)
        phrases = [wanted.pop(name) for name in names if name.startswith(NAME)]
        conditions = [_condition(key, name, value) for name, value in wanted.items()]
        if phrases:
            conditions.append(key.in_(_named(phrases)))
        keys = key.model.select(key)
        return ListQuery(keys.where(*conditions) if conditions else keys, tracks.select(), [key.desc()])

    return build


def _shortest(names: Collection[str]) -> Any:
    """Return the track id column of the table that has the fewest rows for these filters, to select from it."""
    if "isrc" in names or "external_id" in names:
        return Track.id
    if "artist_id" in names:
        return TrackArtist.track
    return TrackGenre.track if "genre_id" in names else Track.id


def _condition(key: Any, name: str, value: Any) -> Any:
    """Return the SQL condition for the filter `name` with this value. `key`: the track id column of the query."""
    if name in {"isrc", "external_id"}:
        former = Merged.code if name == "isrc" else Merged.external_id
        others = Merged.select(Merged.into).where(Merged.kind == merged.TRACK, former == value)
        return key.in_(Track.select(Track.id).where(getattr(Track, name) == value).union_all(others))
    link, column = (TrackArtist, TrackArtist.artist) if name == "artist_id" else (TrackGenre, TrackGenre.genre)
    if key.model is link:
        return column == value
    return fn.EXISTS(link.select(link.track).where(link.track == key, column == value))


def _named(phrases: Sequence[Any]) -> Any:
    """Return SQL for the ids of tracks whose names match one of `phrases`, patterns for the search index."""
    before, between = TRACKS.ids_where()
    first, *others = phrases
    rest = [each for other in others for each in (SQL(between), other)]
    return NodeList((SQL(f"({before}"), first, *rest, SQL(")")))


@compiled
def _newest(ids: Collection[int]) -> Any:
    return tracks.select().where(Track.id.in_(ids)).order_by(Track.id.desc())
