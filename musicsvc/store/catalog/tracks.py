"""Tracks: their rows with artists, genres and tags, and who may make them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from peewee import JOIN, fn

from musicsvc.errors import Forbidden, NotFound
from musicsvc.store.catalog import artists, genres, sizes, tags
from musicsvc.store.engine import dialect
from musicsvc.store.engine.pagination import Listing, Page, paginate
from musicsvc.store.engine.sql import fetch
from musicsvc.store.models import Album, Genre, Tag, Track, TrackArtist, TrackGenre, TrackPlays, TrackTag

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from musicsvc.store.accounts.tokens import Identity
    from musicsvc.store.catalog.artists import ArtistRow


@dataclass(slots=True)
class TrackRow:
    """A track; `duration` in milliseconds, `image` its own or its album's."""

    id: int
    name: str
    release_date: str | None
    image: str | None
    duration: int
    description: str | None
    album_id: int | None
    bpm: int | None
    key: str | None
    scale: str | None
    price: float | None
    currency: str
    licensing_type: str
    exclusive_status: str
    exclusive_price: float | None
    plays: int
    likes_count: int
    reposts_count: int
    fingerprint_status: str
    created_at: int
    artists: Iterable[ArtistRow] = ()
    genres: list[tuple[int, str, str]] = field(default_factory=list)
    tags: list[tuple[int, str]] = field(default_factory=list)


COLUMNS = (
    Track.id,
    Track.name,
    Track.release_date,
    fn.COALESCE(Track.image, Album.image),
    Track.duration,
    Track.description,
    Track.album,
    Track.bpm,
    Track.key,
    Track.scale,
    Track.price,
    Track.currency,
    Track.licensing_type,
    Track.exclusive_status,
    Track.exclusive_price,
    fn.COALESCE(TrackPlays.plays, 0),
    Track.likes_count,
    Track.reposts_count,
    Track.fingerprint_status,
    Track.created_at,
)


def select() -> Any:
    """The query of track rows, to be narrowed."""
    query = Track.select(*COLUMNS).join(Album, JOIN.LEFT_OUTER, on=(Track.album == Album.id))
    return query.join_from(Track, TrackPlays, JOIN.LEFT_OUTER, on=(TrackPlays.track == Track.id))


def get(track_id: int) -> TrackRow:
    """The track with its artists, genres and tags; raises NotFound."""
    for values in select().where(Track.id == track_id).tuples().iterator():
        return with_words(with_artists([TrackRow(*values)]))[0]
    raise NotFound("There is no such track.")


def known(track_id: int) -> int:
    """The id itself, where there is such a track; raises NotFound."""
    if not Track.select().where(Track.id == track_id).exists():
        raise NotFound("There is no such track.")
    return track_id


def find(ids: Sequence[int]) -> list[TrackRow]:
    """The tracks of these ids with their artists, in this order; the ids exist."""
    rows = [TrackRow(*values) for values in select().where(Track.id.in_(set(ids))).tuples().iterator()]
    known = {row.id: row for row in with_artists(rows)}
    return [known[track_id] for track_id in ids]


def of_artist(artist_id: int, page: Page) -> Listing[TrackRow]:
    """The artist's tracks, most played first."""
    keys = Track.select(Track.id).join(TrackArtist, on=(TrackArtist.track == Track.id))
    keys = keys.join_from(Track, TrackPlays, JOIN.LEFT_OUTER, on=(TrackPlays.track == Track.id))
    order = (fn.COALESCE(TrackPlays.plays, 0).desc(), Track.id.desc())
    total = TrackArtist.select().where(TrackArtist.artist == artist_id).count()
    return paginate(keys.where(TrackArtist.artist == artist_id), select(), order, page, TrackRow, total)


def of_albums(album_ids: Iterable[int]) -> dict[int, list[TrackRow]]:
    """The tracks of each album with their artists, in the order in which they came."""
    condition = Track.album.in_(list(album_ids))
    rows = [TrackRow(*values) for values in select().where(condition).order_by(Track.id).tuples().iterator()]
    credit = artists.credits_of(TrackArtist, TrackArtist.track, TrackArtist.track.in_(_ids(condition)))
    found: dict[int, list[TrackRow]] = {}
    for row in rows:
        row.artists = credit.get(row.id, ())
        found.setdefault(row.album_id or 0, []).append(row)
    return found


def with_artists(rows: Sequence[TrackRow]) -> Sequence[TrackRow]:
    """The same rows with their artists filled in."""
    condition = TrackArtist.track.in_([row.id for row in rows])
    credit = artists.credits_of(TrackArtist, TrackArtist.track, condition) if rows else {}
    for row in rows:
        row.artists = credit.get(row.id, ())
    return rows


def with_words(rows: Sequence[TrackRow]) -> Sequence[TrackRow]:
    """The same rows with their genres and tags filled in."""
    if not rows:
        return rows
    ids = [row.id for row in rows]
    by_id = {row.id: row for row in rows}
    for track_id, *genre in genre_links(TrackGenre.track.in_(ids)):
        by_id[track_id].genres.append(tuple(genre))
    for track_id, *tag in tag_links(TrackTag.track.in_(ids)):
        by_id[track_id].tags.append(tuple(tag))
    return rows


def complete(rows: Sequence[TrackRow]) -> list[TrackRow]:
    """The same rows with artists, genres and tags; those given stay without, so that these can be let go."""
    once = {row.id: replace(row, genres=[], tags=[]) for row in rows}
    with_words(with_artists(list(once.values())))
    return [once[row.id] for row in rows]


def measure(rows: Sequence[TrackRow]) -> list[int]:
    """The bytes of each track with artists, genres and tags as JSON, at most."""
    found = sizes.of_tracks({row.id for row in rows}, full=True)
    return [found[row.id] for row in rows]


def measure_nested(ids: Sequence[int]) -> list[int]:
    """The bytes of each track within another resource as JSON, at most."""
    found = sizes.of_tracks(set(ids))
    return [found[track_id] for track_id in ids]


def genre_links(condition: Any) -> Iterable[Any]:
    """(track id, genre id, name, display name) of the links that meet the condition, by genre id."""
    columns = (TrackGenre.track, Genre.id, Genre.name, Genre.display_name)
    return TrackGenre.select(*columns).join(Genre).where(condition).order_by(Genre.id).tuples().iterator()


def tag_links(condition: Any) -> Iterable[Any]:
    """(track id, tag id, name) of the links that meet the condition, by tag id."""
    columns = (TrackTag.track, Tag.id, Tag.name)
    return TrackTag.select(*columns).join(Tag).where(condition).order_by(Tag.id).tuples().iterator()


def _ids(condition: Any) -> Any:
    return Track.select(Track.id).where(condition)


def create(
    values: Mapping[str, Any],
    artist_ids: Sequence[int],
    *,
    genre: str | None,
    words: Iterable[str],
    now: int,
    actor: Identity,
) -> TrackRow:
    """A new track; `values` are columns of the table. Forbidden where the caller manages none of its artists.

    Raises Invalid where its album has no room for it.
    """
    if not artists.managed(artist_ids, actor=actor):
        raise Forbidden("You manage none of these artists.")
    album_id = values.get("album_id")
    if album_id is not None:
        sizes.lock_album(album_id)
    track_id = Track.create(**values, created_at=now).id
    TrackArtist.insert_many(
        [{"track": track_id, "artist": artist_id, "position": at} for at, artist_id in enumerate(artist_ids)]
    ).execute()
    if album_id is not None:
        sizes.require_bounds(album_id, "album_id")
    if genre is not None:
        links = [{"track": track_id, "genre": genre_id} for genre_id in genres.ensure([genre]).values()]
        TrackGenre.insert_many(links).execute()
    if tag_ids := tags.ensure(words).values():
        TrackTag.insert_many([{"track": track_id, "tag": tag_id} for tag_id in tag_ids]).execute()
    return get(track_id)


def missing(ids: Collection[int]) -> set[int]:
    """Those of the ids that are no track's."""
    condition, values = dialect.in_list(ids)
    rows = fetch(f"SELECT id FROM track WHERE id {condition}", values)  # noqa: S608 - our own condition
    return set(ids) - {row[0] for row in rows}
