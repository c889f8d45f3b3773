"""Split an artist: other artists take its place on its tracks and albums. There is no undo.

Imports find these artists by the name of the one that was split (`store/catalog/merged.py`).
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from peewee import SQL, fn

from musicsvc.errors import Conflict, Failure, Forbidden, Invalid, NotFound
from musicsvc.store.accounts import managing
from musicsvc.store.accounts.callers import Caller
from musicsvc.store.catalog import album_sizes, artists, identifiers, merged, names
from musicsvc.store.catalog.artists import ArtistRow
from musicsvc.store.catalog.import_lock import lock_imports
from musicsvc.store.editing import links, notices
from musicsvc.store.engagement import engagement_days
from musicsvc.store.engine.name_keys import name_key
from musicsvc.store.engine.sql import lock_rows
from musicsvc.store.models import Artist, Track, TrackArtist
from musicsvc.store.plays import counting, reattribution, subjects
from musicsvc.store.plays.rollups import reader
from musicsvc.store.plays.subjects import ARTIST
from musicsvc.store.security.security_events import Actor
from musicsvc.wording import quantity

FEWEST, MOST = 2, 50  # parts; as many artists as a track can have


class Part(NamedTuple):
    """An artist that takes the place of the one that is split. `id`: None if it is to be created."""

    id: int | None
    name: str

    @property
    def text(self) -> str:
        """The text by which `preview` and `split` find this part."""
        return self.name if self.id is None else names.with_id(self.name, self.id)


class Split(NamedTuple):
    """The effects of a split. `into`: the parts, in the order of the credits. `tracks`, `albums`, `plays`: numbers."""

    id: int
    name: str
    into: Sequence[Part]
    tracks: int
    albums: int
    plays: int

    @property
    def gains(self) -> list[str]:
        """The rows that each part gets, in words, such as `3 tracks`."""
        found = {"track": self.tracks, "album": self.albums, "play": self.plays}
        return [quantity(number, noun) for noun, number in found.items() if number]


def preview(artist_id: int, into: Sequence[str], *, caller: Caller | None = None) -> Split:
    """Return what `split` would do now. Raises as `split`, except for an album that would be too large."""
    return _load(artist_id, into, caller)[1]


def split(
    artist_id: int, into: Sequence[str], *, now: int, caller: Caller | None = None, actor: Actor = "cli"
) -> Split:
    """Split an artist into others, given by names or ids. Without `caller`, no right is checked.

    Parts that its manager lacks are created. Raises NotFound for an unknown artist, Forbidden unless the caller manages
    all or is an administrator, Invalid for invalid parts, Conflict for a track or album that would be too large.
    """
    lock_imports()
    identifiers.lock()
    counting.lock()
    engagement_days.lock()
    artist, found = _load(artist_id, into, caller, locking=True)
    parts = [_created(part, artist, now) for part in found.into]
    ids = [part.id for part in parts if part.id is not None]
    albums = album_sizes.with_artist(artist_id)
    managers = {each for part in (artist_id, *ids) for each in managing.managers_of("artist", part)}
    with reattribution.rebuilding(subjects.tracks_of(ARTIST, [artist_id])):
        links.divide(artist_id, ids)
        Artist.delete().where(Artist.id == artist_id).execute()
        merged.divide(artist_id, artist.name, ids)
    if excess := album_sizes.excess(albums):
        raise Conflict(excess)
    done = found._replace(into=parts)
    account = None if caller is None else caller.user_id
    notices.log("artist.split", about(done), managers, account=account, now=now, actor=actor)
    return done


def about(found: Split) -> str:
    """Return the ids and names of an artist and its parts."""
    parts = [f"{part.name} ({'new' if part.id is None else f'artist {part.id}'})" for part in found.into]
    return f"{found.name} (artist {found.id}) into {', '.join(parts[:-1])} and {parts[-1]}"


def wrong_number(parts: int) -> str:
    """Return the message for a number of parts that is too small or too large."""
    return f"Name {FEWEST} to {MOST} artists, not {parts}."


def _load(
    artist_id: int, into: Sequence[str], caller: Caller | None, *, locking: bool = False
) -> tuple[ArtistRow, Split]:
    artist = _find(artist_id, caller)
    if not FEWEST <= len(into) <= MOST:
        raise Invalid({"into": wrong_number(len(into))})
    parts = [_part(text, artist, caller) for text in into]
    _require_different(parts, artist)
    known = [part.id for part in parts if part.id is not None]
    if locking:
        _lock((artist_id, *known))
        # One may have been handed over until the lock was free.
        artist, *_ = (_find(number, caller) for number in (artist_id, *known))
    _require_room(artist_id, len(parts), known)
    counted = links.count(ARTIST, artist_id, 0)
    plays = reader.all_time_plays(ARTIST, [artist_id]).get(artist_id, 0)
    return artist, Split(artist_id, artist.name, parts, counted.get("tracks", 0), counted.get("albums", 0), plays)


def _find(artist_id: int, caller: Caller | None) -> ArtistRow:
    """Return an artist. Raises NotFound, or Forbidden for an artist of others."""
    if artists.missing([artist_id]):
        raise NotFound(f"There is no artist {artist_id}.")
    found = artists.get(artist_id)
    if caller is not None and not caller.admin and caller.user_id not in managing.managers_of("artist", artist_id):
        raise Forbidden(f"You do not manage artist {artist_id}.")
    return found


def _part(text: str, artist: ArtistRow, caller: Caller | None) -> Part:
    """Return the artist with this id, or the one with this name that has the same manager, or a new one."""
    name = text.strip()
    try:
        number = names.as_id("artist", name)
        number = names.find_managed("artist", name, artist.manager_id) if number is None else number
        return Part(None, name) if number is None else Part(number, _find(number, caller).name)
    except Forbidden:
        raise
    except Failure as failure:
        raise Invalid({"into": failure.message}) from None


def _require_different(parts: Sequence[Part], artist: ArtistRow) -> None:
    """Raise Invalid if a part is the artist itself, or if two parts are the same."""
    keys = [name_key(part.name) if part.id is None else part.id for part in parts]
    if {artist.id, name_key(artist.name)} & {*keys}:
        raise Invalid({"into": f"{artist.name} (artist {artist.id}) cannot be a part of itself."})
    for place, key in enumerate(keys):
        if key in keys[:place]:
            raise Invalid({"into": f"{parts[place].name} is named twice."})


def _lock(ids: Collection[int]) -> None:
    """Let nobody change or credit these artists before the transaction ends. Raises NotFound."""
    query = lock_rows(Artist.select(Artist.id).where(Artist.id.in_(sorted(ids))).order_by(Artist.id), deleting=True)
    found = {number for (number,) in query.tuples().iterator()}
    for number in ids:
        if number not in found:
            raise NotFound(f"There is no artist {number}.")


def _require_room(artist_id: int, parts: int, known: Collection[int]) -> None:
    """Raise Conflict for a track that would have too many artists. `known`: the parts that exist."""
    on = TrackArtist.select(TrackArtist.track).where(TrackArtist.artist == artist_id)
    others = fn.COUNT(SQL("*"))
    query = (
        TrackArtist.select(TrackArtist.track, Track.name, others).join(Track).group_by(TrackArtist.track, Track.name)
    )
    query = query.where(TrackArtist.track.in_(on), TrackArtist.artist.not_in((artist_id, *known)))
    for track, name, number in (
        query.having(others > MOST - parts).order_by(TrackArtist.track).limit(1).tuples().iterator()
    ):
        total = number + parts
        raise Conflict(f"{name} (track {track}) would have {total} artists. A track has at most {MOST}.")


def _created(part: Part, artist: ArtistRow, now: int) -> Part:
    """Return a part with its id. One that does not exist is created for the manager of the artist."""
    if part.id is not None:
        return part
    return part._replace(id=Artist.create(name=part.name, manager=artist.manager_id, created_at=now).id)
