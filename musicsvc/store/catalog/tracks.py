"""Create and load tracks with their artists, genres and tags."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from peewee import JOIN, SQL, fn

from musicsvc.errors import Conflict, Forbidden, existing, first
from musicsvc.store.accounts.callers import Caller
from musicsvc.store.catalog import album_sizes, artists, fields, genres, identifiers, merged
from musicsvc.store.catalog.artists import ArtistRow
from musicsvc.store.engine import bulk, list_blocks, sql
from musicsvc.store.engine.pagination import Listing, ListQuery, Page, columns, paginate
from musicsvc.store.engine.sql import compiled, lock_rows
from musicsvc.store.models import Album, Genre, Tag, Track, TrackArtist, TrackGenre, TrackPlays, TrackRank, TrackTag


@dataclass(slots=True)
class TrackRow:
    """A track. `duration` is in milliseconds. `image` is the album's image if the track has none."""

    id: int
    name: str
    release_date: str | None
    image: str | None
    duration: int
    description: str | None
    album_id: int | None
    plays: int
    likes_count: int
    reposts_count: int
    fingerprint_status: str
    created_at: int
    details: Sequence[Any] = ()  # values of further fields (`fields.groups`)
    artists: Iterable[ArtistRow] = ()
    genres: list[tuple[int, str, str]] = field(default_factory=list)  # (id, slug, display name)
    tags: list[tuple[int, str]] = field(default_factory=list)  # (id, name)


UNKNOWN = "There is no such track."
NONE_MANAGED = "You manage none of these artists."
OWN = columns(TrackRow, Track, image=fn.COALESCE(Track.image, Album.image), plays=fn.COALESCE(TrackPlays.plays, 0))
COLUMNS = (*OWN, *fields.details("track", Track))
MOST_PLAYED = (fn.COALESCE(TrackPlays.plays, 0).desc(), Track.id.desc())


def row(*values: Any) -> TrackRow:
    """Return the track with these values of COLUMNS."""
    return TrackRow(*(*values[: len(OWN)], values[len(OWN) :]))


def select() -> Any:
    """Return a query that selects COLUMNS of all tracks. Callers add conditions to it."""
    query = Track.select(*COLUMNS).join(Album, JOIN.LEFT_OUTER)
    return query.join_from(Track, TrackPlays, JOIN.LEFT_OUTER, on=(TrackPlays.track == Track.id))


def get(track_id: int) -> TrackRow:
    """Return the track with its artists, genres and tags. Raises NotFound."""
    return with_labels(with_artists([row(*first(_by_id(track_id), UNKNOWN))]))[0]


@compiled
def _by_id(track_id: int) -> Any:
    return select().where(Track.id == track_id)


def require(track_id: int) -> int:
    """Return `track_id`. Raises NotFound if the track does not exist."""
    first(_existing(track_id), UNKNOWN)
    return track_id


@compiled
def _existing(track_id: int) -> Any:
    return Track.select(Track.id).where(Track.id == track_id)


def find(ids: Sequence[int]) -> list[TrackRow]:
    """Return the tracks with these ids, in the order of `ids`, with their artists. All of these tracks must exist."""
    rows = [row(*values) for values in _by_ids(set(ids))]
    known = {each.id: each for each in with_artists(rows)}
    return [known[track_id] for track_id in ids]


@compiled
def _by_ids(ids: Collection[int]) -> Any:
    return select().where(Track.id.in_(ids))


def list_by_artist(artist_id: int, page: Page) -> Listing[TrackRow]:
    """Return the artist's tracks, most played first."""
    if _any_rank(artist_id):
        found = paginate(_ranked, page, row, artist_id, counted=list_blocks.TRACK_RANKS)
        return Listing(found.ids, found.total, page, lambda ids: [row(*each) for each in _by_plays(ids)])
    return paginate(_by_artist, page, row, artist_id, counted=list_blocks.ARTIST_TRACKS)


def _by_artist(artist_id: int) -> ListQuery:
    keys = Track.select(Track.id).join(TrackArtist)
    keys = keys.join_from(Track, TrackPlays, JOIN.LEFT_OUTER, on=(TrackPlays.track == Track.id))
    return ListQuery(keys.where(TrackArtist.artist == artist_id), select(), MOST_PLAYED)


@compiled
def _any_rank(artist_id: int) -> Any:
    return TrackRank.select(TrackRank.track).where(TrackRank.artist == artist_id).limit(1)


def _ranked(artist_id: int) -> ListQuery:
    keys = TrackRank.select(TrackRank.track).where(TrackRank.artist == artist_id)
    return ListQuery(keys, select(), (TrackRank.plays.desc(), TrackRank.track.desc()))


@compiled
def _by_plays(ids: Collection[int]) -> Any:
    return select().where(Track.id.in_(ids)).order_by(*MOST_PLAYED)


def load_by_album(album_ids: Collection[int]) -> dict[int, list[TrackRow]]:
    """Return album id → tracks of the album, oldest first, with their artists."""
    credit = artists.of_tracks_on(album_ids)
    found: dict[int, list[TrackRow]] = {}
    for track in (row(*values) for values in _on_albums(album_ids)):
        track.artists = credit.get(track.id, ())
        found.setdefault(track.album_id or 0, []).append(track)
    return found


@compiled
def _on_albums(album_ids: Collection[int]) -> Any:
    return select().where(Track.album.in_(album_ids)).order_by(Track.id)


def with_artists(rows: Sequence[TrackRow]) -> Sequence[TrackRow]:
    credit = artists.of_tracks([row.id for row in rows]) if rows else {}
    for row in rows:
        row.artists = credit.get(row.id, ())
    return rows


def with_labels(rows: Sequence[TrackRow]) -> Sequence[TrackRow]:
    if not rows:
        return rows
    ids = [row.id for row in rows]
    by_id = {row.id: row for row in rows}
    for track_id, label_id, name, display_name in _labels(ids):
        if display_name is None:
            by_id[track_id].tags.append((label_id, name))
        else:
            by_id[track_id].genres.append((label_id, name, display_name))
    return rows


def complete(rows: Sequence[TrackRow]) -> list[TrackRow]:
    """Return copies of the rows with artists, genres and tags. The given rows are not changed."""
    once = {row.id: replace(row, genres=[], tags=[]) for row in rows}
    with_labels(with_artists(list(once.values())))
    return [once[row.id] for row in rows]


@compiled
def _labels(track_ids: Collection[int]) -> Any:
    """Return a query for the genres and tags of tracks: (track id, genre or tag id, name, display name or NULL)."""
    genre = (TrackGenre.track, Genre.id, Genre.name, Genre.display_name)
    genres = TrackGenre.select(*genre).join(Genre).where(TrackGenre.track.in_(track_ids))
    tag = (TrackTag.track, Tag.id, Tag.name, SQL("NULL"))
    tags = TrackTag.select(*tag).join(Tag).where(TrackTag.track.in_(track_ids))
    return genres.union_all(tags).order_by(SQL("2"))


def create(
    values: Mapping[str, Any],
    artist_ids: Sequence[int],
    *,
    genre: str | None,
    tag_names: Iterable[str],
    now: int,
    actor: Caller,
) -> TrackRow:
    """Create a track. Raises Forbidden if the actor manages none of the artists, Invalid if the album is too large."""
    if not artists.managed(artist_ids, actor=actor):
        raise Forbidden(NONE_MANAGED)
    if (code := values.get("isrc")) is not None:
        identifiers.require_free(code, actor=actor)
    album_id = values.get("album_id")
    if album_id is not None:
        album_sizes.lock_album(album_id)
    track_id = Track.create(**values, created_at=now).id
    bulk.link(TrackArtist, track_id, artist_ids)
    if album_id is not None:
        album_sizes.require_within_limits(album_id, "album_id")
    if genre is not None:
        bulk.link(TrackGenre, track_id, genres.ensure([genre]).values())
    bulk.link(TrackTag, track_id, genres.ensure_tags(tag_names).values())
    return get(track_id)


def missing(ids: Collection[int]) -> set[int]:
    return sql.missing(ids, Track)


def gone(ids: Collection[int]) -> dict[int, int | None]:
    """Return, for those of the ids that no track has any more, the track into which it was merged, or None."""
    former = missing(ids)
    others = merged.targets(merged.TRACK, former)
    return {each: others.get(each) for each in former}


FINGERPRINT_TRANSITIONS: dict[str, tuple[str, ...]] = {
    "pending": ("processing",),
    "processing": ("completed", "failed"),
    "completed": (),
    "failed": ("pending",),
}


def set_fingerprint_status(track_id: int, wanted: str) -> None:
    """Change the fingerprint status of a track to `wanted`. Raises NotFound; Conflict if it may not."""
    row = lock_rows(Track.select(Track.fingerprint_status).where(Track.id == track_id)).tuples().first()
    present: str = existing(row, f"There is no track {track_id}.")[0]
    if wanted not in FINGERPRINT_TRANSITIONS[present]:
        following = " or ".join(FINGERPRINT_TRANSITIONS[present])
        change = f"can only become {following}" if following else "cannot change any more"
        raise Conflict(f"The fingerprint of track {track_id} is {present}; it {change}.")
    Track.update(fingerprint_status=wanted).where(Track.id == track_id).execute()
